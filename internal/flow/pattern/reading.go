package pattern

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
	pattern *Pattern
	known   Binding // values that are put in before the name is looked at
	name    string
	whole   []bool // by position: within a value that is not to be cut; nil: none

	values   Binding
	ends     []int   // of the tokens in name
	other    Binding // a reading is to differ from it
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

// Read gives the values of the placeholders for which p is the name, as few
// characters for the first as possible, and a second reading if there is one.
// Without any, first is nil. known values are put in literally; whole says
// between which positions of the name nothing may end or begin.
func (p *Pattern) Read(name string, known Binding, whole []bool) (first, second Binding) {
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
	if len(p.Names) < 2 {
		return first, nil // the length of the name decides
	}
	r.other, r.tried, r.work = first, nil, 0
	r.values = Binding{}
	switch {
	case r.matchFrom(0, 0, false):
		return first, r.bound()
	case r.tooMuch():
		return first, unread
	}
	return first, nil
}

// unread stands for a reading that was not found within maxWork.
var unread = Binding{}

func (r *reading) tooMuch() bool { return r.work >= maxWork }

// only gives the one placeholder that stands once and is not known, if all else
// is text, with what stands before it and after it.
func (p *Pattern) only(known Binding) (free *token, before, after string) {
	for i, t := range p.Tokens {
		text, ok := known[t.Name]
		switch {
		case t.Name == "":
			text = t.Literal
		case ok:
		case free != nil || t.isWildcard():
			return nil, "", ""
		default:
			free = &p.Tokens[i]
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

func readOnly(name string, free *token, before, after string, known Binding) Binding {
	rest, begins := strings.CutPrefix(name, before)
	value, ends := strings.CutSuffix(rest, after)
	if !begins || !ends || value == "" || strings.Contains(value, "/") {
		return nil
	}
	b := make(Binding, len(known)+1)
	maps.Copy(b, known)
	b[free.Name] = value
	return b
}

// Fits reports whether p can be the name. One that is too much work counts: who reads it
// tells.
func (p *Pattern) Fits(name string) bool {
	fits, err := p.matches(name)
	return fits || err != nil
}

// matches is fits, with an error for a name that is too much work.
func (p *Pattern) matches(name string) (bool, error) {
	if !p.mayFit(name) {
		return false, nil
	}
	r := p.reading(name, nil, nil)
	if r.matchFrom(0, 0, true) {
		return true, nil
	}
	if r.tooMuch() {
		return false, errors.New(TwoReadings(name, p, unread, unread))
	}
	return false, nil
}

// Matching returns a function that reports whether a name fits a pattern, written as in
// workflow files. Errors say what is wrong with the pattern.
func Matching(text string) (fits func(name string) (bool, error), err error) {
	p, err := NewPattern(text)
	if err != nil {
		return nil, err
	}
	return p.matches, nil
}

func (p *Pattern) mayFit(name string) bool {
	return strings.HasPrefix(name, p.prefix()) && strings.HasSuffix(name, p.suffix())
}

// AnyWildcard reports whether there is a wildcard.
func (p *Pattern) AnyWildcard() bool {
	for _, t := range p.Tokens {
		if t.isWildcard() {
			return true
		}
	}
	return false
}

func (p *Pattern) reading(name string, known Binding, whole []bool) *reading {
	r := &reading{pattern: p, known: known, name: name, whole: whole, values: Binding{}, ends: make([]int, len(p.Tokens))}
	r.repeated = make([]bool, len(p.Tokens))
	r.later = make([][]string, len(p.Tokens))
	for i, t := range p.Tokens {
		for k := range i {
			if t.Name == "" || p.Tokens[k].Name != t.Name {
				continue
			}
			r.repeated[i] = true
			for between := k + 1; between <= i; between++ {
				r.later[between] = append(r.later[between], t.Name)
			}
			break
		}
	}
	return r
}

// bound are the values of placeholders, without those of wildcards.
func (r *reading) bound() Binding {
	b := make(Binding, len(r.pattern.Names))
	for _, name := range r.pattern.Names {
		if value, ok := r.known[name]; ok {
			b[name] = value
		} else if PlaceholderName.MatchString(name) {
			b[name] = r.values[name]
		}
	}
	return b
}

// matchFrom reports whether the tokens from i on can be the name from at on.
func (r *reading) matchFrom(i, at int, differs bool) bool {
	if i == len(r.pattern.Tokens) {
		return at == len(r.name) && differs
	}
	t := r.pattern.Tokens[i]
	value, ok := r.known[t.Name]
	switch {
	case t.Name == "":
		return r.matchText(i, at, t.Literal, differs)
	case ok:
		return r.matchText(i, at, value, differs)
	case r.repeated[i]:
		return r.matchText(i, at, r.values[t.Name], differs)
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
		r.values[t.Name], r.ends[i] = r.name[at:end], end
		differs := differs || r.other != nil && t.isPlaceholder() && r.other[t.Name] != r.name[at:end]
		return r.matchFrom(i+1, end, differs)
	}
	if t.Name[0] == '*' && try(at) {
		return true
	}
	for end := at; end < len(r.name) && r.name[end] != '/'; {
		_, width := utf8.DecodeRuneInString(r.name[end:])
		end += width
		if try(end) {
			return true
		}
		if t.Name[0] == '?' {
			return false
		}
	}
	return false
}

func (r *reading) cuts(at int) bool { return r.whole != nil && at < len(r.whole) && r.whole[at] }

// wholes marks the positions within the values that a name was made with.
func (p *Pattern) wholes(name string, values Binding) []bool {
	r := p.reading(name, values, nil)
	whole := make([]bool, len(name)+1)
	if !r.matchFrom(0, 0, true) {
		return whole
	}
	start := 0
	for i, t := range p.Tokens {
		if t.isPlaceholder() {
			for at := start + 1; at < r.ends[i]; at++ {
				whole[at] = true
			}
		}
		start = r.ends[i]
	}
	return whole
}

// TwoReadings says that a name does not tell its values.
func TwoReadings(name string, p *Pattern, first, second Binding) string {
	if len(second) == 0 {
		text := fmt.Sprintf("%s can be divided among the placeholders of %q in too many ways to try them all", name, p.Text)
		if again := p.repeated(); len(again) > 0 {
			text += fmt.Sprintf(", since {%s} stand there more than once", strings.Join(again, "}, {"))
		}
		return text
	}
	return fmt.Sprintf("%s fits %q in two ways, as %v and as %v", name, p.Text, first, second)
}

// repeated are the placeholders that stand more than once.
func (p *Pattern) repeated() (names []string) {
	for i, t := range p.Tokens {
		same := func(u token) bool { return u.Name == t.Name }
		if t.isPlaceholder() && slices.ContainsFunc(p.Tokens[:i], same) && !slices.Contains(names, t.Name) {
			names = append(names, t.Name)
		}
	}
	return names
}
