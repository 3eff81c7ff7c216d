package quantity

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"
)

var sizeUnits = map[string]float64{
	"": 1, "B": 1,
	"K": 1e3, "KB": 1e3, "M": 1e6, "MB": 1e6, "G": 1e9, "GB": 1e9, "T": 1e12, "TB": 1e12, "P": 1e15, "PB": 1e15,
	"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40, "PiB": 1 << 50,
}

// Unit tells how many bytes a unit of sizes has; no unit at all is one byte.
func Unit(name string) (bytes float64, ok bool) {
	bytes, ok = sizeUnits[strings.Replace(name, "k", "K", 1)]
	return bytes, ok
}

// Size reads a number of bytes: 500MB, 2.5GB, 1GiB, 4096. Units of
// thousands (KB) and of 1024 (KiB) are told apart.
func Size(text string) (int64, error) {
	digits := strings.TrimRight(text, "BKMGTPki")
	factor, ok := Unit(text[len(digits):])
	digits = strings.TrimSpace(digits)
	if whole, err := Whole(digits); err == nil && ok && whole <= math.MaxInt64/int64(factor) {
		return whole * int64(factor), nil
	}
	value, err := Decimal(digits)
	if err != nil || !ok || value*factor >= math.MaxInt64 {
		return 0,
			fmt.Errorf("%q is no size; write a number with B, KB, MB, GB, TB, KiB, MiB, GiB or TiB, as in 500MB or 1GiB", text)
	}
	return int64(math.Round(value * factor)), nil
}

// leastBare is the smallest number of bytes that may stand without a unit for a size of memory or disk. A smaller one
// is meant in the megabytes or gigabytes that other systems count in.
const leastBare = 1_000_000

// Room reads a size of memory, a disk or a cache as Size does, and refuses a small number without a unit.
func Room(text string) (int64, error) {
	bytes, err := Size(text)
	if _, bare := Decimal(text); err == nil && bare == nil && bytes > 0 && bytes < leastBare {
		return 0, fmt.Errorf("%s without a unit would be %s bytes; write %sGB or %sMB, or %sB if bytes are meant",
			text, text, text, text, text)
	}
	return bytes, err
}

// maxDays is what a duration can hold.
const maxDays = 1 << 16

// Duration reads a duration as Go writes it, with days in front of it: 10m,
// 1h30m, 2d, 1d12h.
func Duration(text string) (time.Duration, error) {
	d, err := duration(text)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("%q is no duration; write a number with ms, s, m, h or d, as in 90s or 1h30m", text)
	}
	return d, nil
}

func duration(text string) (time.Duration, error) {
	if strings.ContainsAny(text, "+-") {
		return 0, errors.New("it has a sign")
	}
	days, rest, ok := strings.Cut(text, "d")
	if !ok {
		return time.ParseDuration(text)
	}
	n, err := Whole(days)
	if err != nil || n > maxDays {
		return 0, errors.New("no number of days")
	}
	whole := time.Duration(n) * 24 * time.Hour
	if rest == "" {
		return whole, nil
	}
	d, err := time.ParseDuration(rest)
	return whole + d, err
}

// MilliCPUs reads a number of processors, such as 2 or 0.5.
func MilliCPUs(text string) (int64, error) {
	value, err := Decimal(text)
	if err != nil || value >= 1e9 {
		return 0, fmt.Errorf("%q is no number of processors; write a number such as 1 or 0.5", text)
	}
	return int64(math.Ceil(value * 1000)), nil
}

// ClockTime reads a time as batch systems write what is left of a job: D-HH:MM:SS,
// HH:MM:SS or MM:SS. Others, such as UNLIMITED, are 0.
func ClockTime(text string) time.Duration {
	days, clock, some := strings.Cut(strings.TrimSpace(text), "-")
	if !some {
		days, clock = "0", days
	}
	var seconds int64
	parts := strings.Split(clock, ":")
	for _, part := range parts {
		n, err := Whole(part)
		if err != nil || n > 1<<20 {
			return 0
		}
		seconds = seconds*60 + n
	}
	n, err := Whole(days)
	if err != nil || n > 1<<16 || len(parts) > 3 || len(parts) < 2 {
		return 0
	}
	return time.Duration(n*24*3600+seconds) * time.Second
}
