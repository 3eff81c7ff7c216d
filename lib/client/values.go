package client

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Int64 is a number in a map of a message, which JSON has as a text.
type Int64 int64

// MarshalJSON is part of json.Marshaler.
func (i Int64) MarshalJSON() ([]byte, error) {
	return strconv.AppendQuote(nil, strconv.FormatInt(int64(i), 10)), nil
}

// UnmarshalJSON is part of json.Unmarshaler.
func (i *Int64) UnmarshalJSON(text []byte) error {
	n, err := strconv.ParseInt(strings.Trim(string(text), `"`), 10, 64)
	if err != nil {
		return fmt.Errorf("a number of 64 bits: %w", err)
	}
	*i = Int64(n)
	return nil
}

// Duration is a span of time in a message, which JSON has in seconds, such as "1.5s".
type Duration time.Duration

// MarshalJSON is part of json.Marshaler.
func (d Duration) MarshalJSON() ([]byte, error) {
	text := strconv.FormatInt(int64(d)/1e9, 10)
	if rest := int64(d) % 1e9; rest != 0 {
		if d < 0 {
			rest = -rest
			text = "-" + strings.TrimPrefix(text, "-")
		}
		text += fmt.Sprintf(".%09d", rest)
	}
	return json.Marshal(text + "s")
}

// UnmarshalJSON is part of json.Unmarshaler.
func (d *Duration) UnmarshalJSON(text []byte) error {
	parsed, err := time.ParseDuration(strings.Trim(string(text), `"`))
	if err != nil {
		return fmt.Errorf("a span of time: %w", err)
	}
	*d = Duration(parsed)
	return nil
}
