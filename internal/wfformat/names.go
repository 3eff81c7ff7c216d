package wfformat

import (
	"fmt"
	"strings"

	"github.com/zeebo/blake3"
)

// lfns makes logical names from names of any kind, such as absolute paths:
// relative, without '.' and '..', no part too long for a file system, no name
// the folder of another, none twice.
type lfns struct {
	taken   map[string]bool
	folders map[string]bool
}

// maxNameBytes bounds one part of a name, so that a suffix still fits.
const maxNameBytes = 150

// of gives a new name that resembles id.
func (l *lfns) of(id string) string {
	parts := strings.Split(sanitise(id), "/")
	lfn := ""
	for i, part := range parts {
		last := i == len(parts)-1
		next := lfn + part
		for n := 2; l.taken[next] || last && l.folders[next]; n++ {
			next = fmt.Sprintf("%s%s~%d", lfn, part, n)
		}
		if last {
			l.taken[next] = true
			return next
		}
		l.folders[next] = true
		lfn = next + "/"
	}
	return lfn
}

func sanitise(id string) string {
	var parts []string
	for _, part := range strings.Split(id, "/") {
		switch part {
		case "":
			continue
		case ".", "..":
			part = strings.Repeat("_", len(part))
		}
		parts = append(parts, shorten(strings.Map(printable, part)))
	}
	if len(parts) == 0 {
		return "_"
	}
	lfn := strings.Join(parts, "/")
	if len(lfn) > 600 {
		return shorten(strings.ReplaceAll(lfn, "/", "_"))
	}
	return lfn
}

func printable(r rune) rune {
	if r < ' ' || r == 0x7f || r == '\ufffd' {
		return '_'
	}
	return r
}

func shorten(part string) string {
	if len(part) <= maxNameBytes {
		return part
	}
	sum := blake3.Sum256([]byte(part))
	return fmt.Sprintf("%s~%x", strings.ToValidUTF8(part[:maxNameBytes-20], ""), sum[:8])
}
