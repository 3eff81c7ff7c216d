package pattern

import (
	"fmt"
	"strings"

	"fairway/internal/logical"
)

// Shape is the text of p without the names of placeholders.
func (p *Pattern) Shape() string {
	var s strings.Builder
	for _, t := range p.Tokens {
		switch {
		case t.isPlaceholder():
			s.WriteByte(0)
		default:
			s.WriteString(t.String())
		}
	}
	return s.String()
}

// Nested says that an inner name is in an outer one, or that both stand for the
// same, as a file and as a folder.
func Nested(outer, inner string) string {
	switch {
	case logical.Path(outer) == logical.Path(inner):
		return fmt.Sprintf("%s is a file and %s/ a folder of that name: give one of them another name", logical.Path(outer),
			logical.Path(outer))
	case logical.IsFolder(outer):
		return fmt.Sprintf("%s is a folder that is kept as a whole, and %s is in it: write it as part of the folder, or "+
			"give one of them another name", outer, inner)
	}
	return fmt.Sprintf("%s is a file, and %s one in a folder of that name: give one of them another name", outer, inner)
}

// FoldersOf gives the folders that a file is in, innermost first.
func FoldersOf(lfn string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for at := strings.LastIndexByte(lfn, '/'); at >= 0; at = strings.LastIndexByte(lfn[:at], '/') {
			if !yield(lfn[:at]) {
				return
			}
		}
	}
}
