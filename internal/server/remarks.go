package server

import (
	"slices"
	"strings"
)

// remarks are lines for a person, each once, in the order in which they came
// up. What comes when there are as many as the limit is left out.
type remarks []string

func (r *remarks) add(text string, limit int) {
	text = strings.ToValidUTF8(text, "?") // it may name a file, and could not be sent otherwise
	if len(*r) < limit && !slices.Contains(*r, text) {
		*r = append(*r, text)
	}
}
