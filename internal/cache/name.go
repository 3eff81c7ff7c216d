package cache

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxName is what file systems allow.
const maxName = 255

// changesName is the file whose time is that of the last change in its folder:
// the system gives notice of that, while it gives none of a folder to those who
// look at the folder from above. It holds what the cache claims (claim.go).
const changesName = ".changes"

// isBookkeeping reports whether a file in a cache folder is one that setUp opens for as long as
// the cache is open.
func isBookkeeping(name string) bool {
	return name == lockName || name == changesName || name == usesName
}

// isOfCache reports whether a name in a cache folder is one that a cache gives.
func isOfCache(name string) bool {
	_, isFile := parseName(name)
	return isFile || isBookkeeping(name) || name == trustName || name == partsName ||
		strings.HasPrefix(name, newPrefix) || strings.HasPrefix(name, dropPrefix)
}

// newPrefix begins the names of files that are being written (partOf).
const newPrefix = ".new-"

// dropPrefix begins the names of empty files that have peers drop their links to a file (dropOf).
const dropPrefix = ".drop-"

const hexDigits = "0123456789ABCDEF"

// fileName is the name of a file in a cache folder: the LFN with everything but
// letters, digits and "-_+=,." as %XX, then version, tag (16 hexadecimal digits)
// and size. A dot in front is escaped too, so that names with one are free for
// other things.
func fileName(i Item) string {
	b := make([]byte, 0, len(i.LFN)+36)
	for at := range len(i.LFN) {
		if c := i.LFN[at]; plain(c) && (c != '.' || at > 0) {
			b = append(b, c)
		} else {
			b = append(b, '%', hexDigits[c>>4], hexDigits[c&15])
		}
	}
	b = strconv.AppendUint(append(b, '@'), uint64(i.Version), 10)
	b = append(b, '@')
	for shift := 60; shift >= 0; shift -= 4 {
		b = append(b, hexDigits[i.Tag>>shift&15])
	}
	return string(strconv.AppendInt(append(b, '@'), i.Size, 10))
}

func plain(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-_+=,.", c) >= 0
}

// parseName is the inverse of fileName; it accepts what fileName makes and
// nothing else.
func parseName(name string) (i Item, ok bool) {
	fields := strings.Split(name, "@")
	if len(fields) != 4 {
		return Item{}, false
	}
	i.LFN, ok = unescape(fields[0])
	version, errVersion := strconv.ParseUint(fields[1], 10, 32)
	tag, errTag := strconv.ParseUint(fields[2], 16, 64)
	size, errSize := strconv.ParseInt(fields[3], 10, 64)
	if !ok || errVersion != nil || errTag != nil || errSize != nil || size < 0 {
		return Item{}, false
	}
	i.Version, i.Tag, i.Size = uint32(version), tag, size
	return i, fileName(i) == name
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
	return string(b), utf8.Valid(b) // what else stands there the TaskQueue could not be told
}
