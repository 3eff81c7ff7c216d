package workflow

import "fmt"

// From says where the files of an input come from.
func (in *DeclaredInput) From() string {
	if in.URLList != "" {
		return in.URLList
	}
	if len(in.Patterns) == 1 {
		return in.Patterns[0]
	}
	return fmt.Sprintf("%s and %d more", in.Patterns[0], len(in.Patterns)-1)
}
