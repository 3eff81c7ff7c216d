package flow

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// reading finds out what the placeholders of a pattern stand for in a name.
// A name may be read in several ways; those that differ in what wildcards
// stand for only are one.
type reading struct {
	pattern *pattern
	known   binding // values that are put in before the name is looked at
	name    string
	whole   []bool // by position: within a value that is not to be cut; nil: none

	values   binding
	ends     []int   // of the tokens in name
	other    binding // a reading is to differ from it
	tried    map[tokenStart]bool
	work     int    // done so far, at most maxWork
	repeated []bool // by token: its placeholder stands before too
	later    [][]string
}

// tokenStart is a token and where it would begin. What follows depends on nothing
// else but the values of placeholders that come again.
type tokenStart struct {
	token, at int
	differs   bool
	values    string
}

// maxWork bounds the work of one reading, some tenths of a second at most: what is tried, and the
// values that are kept meanwhile. Only a name of hundreds of characters and a pattern with
// several placeholders that stand twice need more. Such a name counts as one that can be
// read in two ways, for nobody knows which it is.
const maxWork = 1 << 19

// read gives the values of the placeholders for which p is the name, as few
// characters for the first as possible, and a second reading if there is one.
// Without any, first is nil. known values are put in literally; whole says
// between which positions of the name nothing may end or begin.
func (p *pattern) read(name string, known binding, whole []bool) (first, second binding) {
	if !p.mayFit(name) {
		return nil, nil
	}
	if free, before, after := p.only(known); free != nil && whole == nil {
		return readOnly(name, free, before, after, known), nil
	}
	r := p.reading(name, known, whole)
	switch {
	case r.matchFrom(0, 0, true):
		first = r.bound()
	case r.tooMuch():
		return unread, unread
	default:
		return nil, nil
	}
	if len(p.names) < 2 {
		return first, nil // the length of the name decides
	}
	r.other, r.tried, r.work = first, nil, 0
	r.values = binding{}
	switch {
	case r.matchFrom(0, 0, false):
		return first, r.bound()
	case r.tooMuch():
		return first, unread
	}
	return first, nil
}

// unread stands for a reading that was not found within maxWork.
var unread = binding{}

func (r *reading) tooMuch() bool { return r.work >= maxWork }

// only gives the one placeholder that stands once and is not known, if all else
// is text, with what stands before it and after it.
func (p *pattern) only(known binding) (free *token, before, after string) {
	for i, t := range p.tokens {
		text, ok := known[t.name]
		switch {
		case t.name == "":
			text = t.literal
		case ok:
		case free != nil || t.isWildcard():
			return nil, "", ""
		default:
			free = &p.tokens[i]
			continue
		}
		if free == nil {
			before += text
		} else {
			after += text
		}
	}
	return free, before, after
}

func readOnly(name string, free *token, before, after string, known binding) binding {
	rest, begins := strings.CutPrefix(name, before)
	value, ends := strings.CutSuffix(rest, after)
	if !begins || !ends || value == "" || strings.Contains(value, "/") {
		return nil
	}
	b := make(binding, len(known)+1)
	maps.Copy(b, known)
	b[free.name] = value
	return b
}

// fits reports whether p can be the name. One that is too much work counts: who reads it
// tells.
func (p *pattern) fits(name string) bool {
	fits, err := p.matches(name)
	return fits || err != nil
}

// matches is fits, with an error for a name that is too much work.
func (p *pattern) matches(name string) (bool, error) {
	if !p.mayFit(name) {
		return false, nil
	}
	r := p.reading(name, nil, nil)
	if r.matchFrom(0, 0, true) {
		return true, nil
	}
	if r.tooMuch() {
		return false, errors.New(twoReadings(name, p, unread, unread))
	}
	return false, nil
}

// Matching returns a function that reports whether a name fits a pattern, written as in
// workflow files. Errors say what is wrong with the pattern.
func Matching(text string) (fits func(name string) (bool, error), err error) {
	p, err := newPattern(text)
	if err != nil {
		return nil, err
	}
	return p.matches, nil
}

func (p *pattern) mayFit(name string) bool {
	return strings.HasPrefix(name, p.prefix()) && strings.HasSuffix(name, p.suffix())
}

func (p *pattern) anyWildcard() bool {
	for _, t := range p.tokens {
		if t.isWildcard() {
			return true
		}
	}
	return false
}

func (p *pattern) reading(name string, known binding, whole []bool) *reading {
	r := &reading{pattern: p, known: known, name: name, whole: whole, values: binding{}, ends: make([]int, len(p.tokens))}
	r.repeated = make([]bool, len(p.tokens))
	r.later = make([][]string, len(p.tokens))
	for i, t := range p.tokens {
		for k := range i {
			if t.name == "" || p.tokens[k].name != t.name {
				continue
			}
			r.repeated[i] = true
			for between := k + 1; between <= i; between++ {
				r.later[between] = append(r.later[between], t.name)
			}
			break
		}
	}
	return r
}

// bound are the values of placeholders, without those of wildcards.
func (r *reading) bound() binding {
	b := make(binding, len(r.pattern.names))
	for _, name := range r.pattern.names {
		if value, ok := r.known[name]; ok {
			b[name] = value
		} else if placeholderName.MatchString(name) {
			b[name] = r.values[name]
		}
	}
	return b
}

// matchFrom reports whether the tokens from i on can be the name from at on.
func (r *reading) matchFrom(i, at int, differs bool) bool {
	if i == len(r.pattern.tokens) {
		return at == len(r.name) && differs
	}
	t := r.pattern.tokens[i]
	value, ok := r.known[t.name]
	switch {
	case t.name == "":
		return r.matchText(i, at, t.literal, differs)
	case ok:
		return r.matchText(i, at, value, differs)
	case r.repeated[i]:
		return r.matchText(i, at, r.values[t.name], differs)
	}
	here := r.place(i, at, differs)
	if r.tried[here] || r.tooMuch() {
		return false
	}
	if r.tried == nil {
		r.tried = map[tokenStart]bool{}
	}
	r.tried[here] = true
	return r.matchFree(i, at, t, differs)
}

func (r *reading) place(i, at int, differs bool) tokenStart {
	here := tokenStart{token: i, at: at, differs: differs}
	for _, name := range r.later[i] {
		here.values += r.values[name] + "/"
	}
	r.work += len(here.values) / 16
	return here
}

func (r *reading) matchText(i, at int, text string, differs bool) bool {
	end := at + len(text)
	if !strings.HasPrefix(r.name[at:], text) || r.cuts(end) {
		return false
	}
	r.ends[i] = end
	return r.matchFrom(i+1, end, differs)
}

// matchFree tries what a placeholder or wildcard could stand for, shortest first.
func (r *reading) matchFree(i, at int, t token, differs bool) bool {
	try := func(end int) bool {
		if r.cuts(end) || r.tooMuch() {
			return false
		}
		r.work++
		r.values[t.name], r.ends[i] = r.name[at:end], end
		differs := differs || r.other != nil && t.isPlaceholder() && r.other[t.name] != r.name[at:end]
		return r.matchFrom(i+1, end, differs)
	}
	if t.name[0] == '*' && try(at) {
		return true
	}
	for end := at; end < len(r.name) && r.name[end] != '/'; {
		_, width := utf8.DecodeRuneInString(r.name[end:])
		end += width
		if try(end) {
			return true
		}
		if t.name[0] == '?' {
			return false
		}
	}
	return false
}

func (r *reading) cuts(at int) bool { return r.whole != nil && at < len(r.whole) && r.whole[at] }

// wholes marks the positions within the values that a name was made with.
func (p *pattern) wholes(name string, values binding) []bool {
	r := p.reading(name, values, nil)
	whole := make([]bool, len(name)+1)
	if !r.matchFrom(0, 0, true) {
		return whole
	}
	start := 0
	for i, t := range p.tokens {
		if t.isPlaceholder() {
			for at := start + 1; at < r.ends[i]; at++ {
				whole[at] = true
			}
		}
		start = r.ends[i]
	}
	return whole
}

// twoReadings says that a name does not tell its values.
func twoReadings(name string, p *pattern, first, second binding) string {
	if len(second) == 0 {
		text := fmt.Sprintf("%s can be divided among the placeholders of %q in too many ways to try them all", name, p.text)
		if again := p.repeated(); len(again) > 0 {
			text += fmt.Sprintf(", since {%s} stand there more than once", strings.Join(again, "}, {"))
		}
		return text
	}
	return fmt.Sprintf("%s fits %q in two ways, as %v and as %v", name, p.text, first, second)
}

// repeated are the placeholders that stand more than once.
func (p *pattern) repeated() (names []string) {
	for i, t := range p.tokens {
		same := func(u token) bool { return u.name == t.name }
		if t.isPlaceholder() && slices.ContainsFunc(p.tokens[:i], same) && !slices.Contains(names, t.name) {
			names = append(names, t.name)
		}
	}
	return names
}
