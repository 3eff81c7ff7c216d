package server

import "slices"

// remarks are lines for a person, each once, in the order in which they came
// up. What comes when there are as many as the limit is left out.
type remarks []string

func (r *remarks) add(text string, limit int) {
	if len(*r) < limit && !slices.Contains(*r, text) {
		*r = append(*r, text)
	}
}
