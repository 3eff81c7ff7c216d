package cache

import (
	"fmt"
	"strconv"
	"strings"
)

// maxName is what file systems allow.
const maxName = 255

// newPrefix begins the names of files that are being written, partPrefix those
// of the reservations for them: what follows is a number and the size, so that
// peers can count it.
const (
	newPrefix  = ".new-"
	partPrefix = ".part-"
)

const hexDigits = "0123456789ABCDEF"

// fileName is the name of a version in a cache folder: the LFN with everything
// but letters, digits and "-_+=,." as %XX, then version and size. A dot in
// front is escaped too, so that names with one are free for other things.
func fileName(ref Ref, size int64) string {
	b := make([]byte, 0, len(ref.LFN)+16)
	for i := range len(ref.LFN) {
		if c := ref.LFN[i]; plain(c) && (c != '.' || i > 0) {
			b = append(b, c)
		} else {
			b = append(b, '%', hexDigits[c>>4], hexDigits[c&15])
		}
	}
	b = append(b, '@')
	b = strconv.AppendUint(b, uint64(ref.Version), 10)
	b = append(b, '@')
	return string(strconv.AppendInt(b, size, 10))
}

func plain(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-_+=,.", c) >= 0
}

// parseName is the inverse of fileName; it accepts what fileName makes and
// nothing else.
func parseName(name string) (ref Ref, size int64, ok bool) {
	fields := strings.Split(name, "@")
	if len(fields) != 3 {
		return Ref{}, 0, false
	}
	version, err := strconv.ParseUint(fields[1], 10, 32)
	if err != nil {
		return Ref{}, 0, false
	}
	if size, err = strconv.ParseInt(fields[2], 10, 64); err != nil || size < 0 {
		return Ref{}, 0, false
	}
	lfn, ok := unescape(fields[0])
	ref = Ref{lfn, uint32(version)}
	return ref, size, ok && fileName(ref, size) == name
}

func unescape(s string) (string, bool) {
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] != '%' {
			b = append(b, s[i])
			continue
		}
		if i+2 >= len(s) {
			return "", false
		}
		c, err := strconv.ParseUint(s[i+1:i+3], 16, 8)
		if err != nil {
			return "", false
		}
		b = append(b, byte(c))
		i += 2
	}
	return string(b), true
}

func partName(number int, size int64) string { return fmt.Sprintf("%s%d@%d", partPrefix, number, size) }

// partSize returns the size that a file being written has reserved.
func partSize(name string) (int64, bool) {
	_, text, found := strings.Cut(name, "@")
	size, err := strconv.ParseInt(text, 10, 64)
	return size, found && err == nil && size >= 0 && strings.HasPrefix(name, partPrefix)
}
