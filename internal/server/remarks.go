package server

import (
	"slices"
	"strings"
	"sync"
)

// remarks are lines for a person, each once, in the order in which they came
// up. What comes when there are as many as the limit is left out. Any goroutine
// may use them: what is tidied up after the loop has ended is told, too, while
// somebody still watches.
type remarks struct {
	mu    sync.Mutex // guards lines
	lines []string
}

func (r *remarks) add(text string, limit int) {
	text = strings.ToValidUTF8(text, "?") // it may name a file, and could not be sent otherwise
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.lines) < limit && !slices.Contains(r.lines, text) {
		r.lines = append(r.lines, text)
	}
}

func (r *remarks) list() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.lines)
}
