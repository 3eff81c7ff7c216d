package flow

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"fairway/internal/logical"
)

// A token of a pattern is literal text, a placeholder, or a wildcard.
type token struct {
	literal string
	name    string // of a placeholder; wildcards are named "*1", "*2", ... and "?1", ...
}

func (t token) isPlaceholder() bool { return t.name != "" && !t.isWildcard() }

// String gives the token as it was written.
func (t token) String() string {
	switch {
	case t.isPlaceholder():
		return "{" + t.name + "}"
	case t.isWildcard():
		return t.name[:1]
	}
	return t.literal
}

func (t token) isWildcard() bool { return t.name != "" && (t.name[0] == '*' || t.name[0] == '?') }

// pattern is a name with placeholders. A placeholder stands for one or more
// characters but '/'; '*' for any number of them and '?' for one.
type pattern struct {
	text   string
	tokens []token
	line   int
	column int
	names  []string // placeholders and wildcards in the order of their first appearance
}

var placeholderName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// newPattern reads a pattern. In text, characters that [literal] hides are
// themselves and nothing else.
func newPattern(text string) (*pattern, error) {
	p := &pattern{text: showLiteral.Replace(text)}
	return p, p.tokenize(text)
}

func (p *pattern) tokenize(rest string) error {
	wildcards := 0
	for rest != "" {
		at := strings.IndexAny(rest, "{}*?")
		if at < 0 {
			p.literal(rest)
			return nil
		}
		p.literal(rest[:at])
		c := rest[at]
		rest = rest[at+1:]
		switch c {
		case '*', '?':
			wildcards++
			p.placeholder(fmt.Sprintf("%c%d", c, wildcards))
		case '{':
			name, after, ok := strings.Cut(rest, "}")
			if !ok || !placeholderName.MatchString(name) {
				return fmt.Errorf("%q has a '{' that starts no placeholder; a placeholder is {name}, of letters, digits and '_'",
					p.text)
			}
			p.placeholder(name)
			rest = after
		default:
			return fmt.Errorf("%q has a '}' without a '{'", p.text)
		}
	}
	return nil
}

func (p *pattern) literal(s string) {
	if s != "" {
		p.tokens = append(p.tokens, token{literal: showLiteral.Replace(s)})
	}
}

func (p *pattern) placeholder(name string) {
	p.tokens = append(p.tokens, token{name: name})
	if !p.has(name) {
		p.names = append(p.names, name)
	}
}

func (p *pattern) has(name string) bool { return slices.Contains(p.names, name) }

// binding gives placeholders their values. One that a file or job has is never
// changed.
type binding map[string]string

// of are the values of some placeholders.
func (b binding) of(names []string) binding {
	if b.isOf(names) {
		return b // millions of files share it with their job
	}
	some := make(binding, len(names))
	for _, name := range names {
		if value, ok := b[name]; ok {
			some[name] = value
		}
	}
	return some
}

// isOf reports whether all values are of some placeholders.
func (b binding) isOf(names []string) bool {
	if len(b) > len(names) {
		return false
	}
	for name := range b {
		if !slices.Contains(names, name) {
			return false
		}
	}
	return true
}

// String lists the values for a person, by name.
func (b binding) String() string {
	var s strings.Builder
	for i, name := range sortedKeys(b) {
		if i > 0 {
			s.WriteString(", ")
		}
		fmt.Fprintf(&s, "%s=%s", name, b[name])
	}
	return s.String()
}

// expand puts values in place of placeholders. If b leaves any open, the name is a pattern of
// package logical with '*' for each of those, and else it is a name, which is never a pattern.
func (p *pattern) expand(b binding) (name string, open bool) {
	var s strings.Builder
	open = slices.ContainsFunc(p.tokens, func(t token) bool { return !t.isBound(b) })
	for _, t := range p.tokens {
		text := t.literal
		switch {
		case !t.isBound(b):
			s.WriteByte('*')
			continue
		case t.name != "":
			text = b[t.name]
		}
		if open {
			text = logical.Escape(text)
		}
		s.WriteString(text)
	}
	return s.String(), open
}

// isBound reports whether a token stands for one text.
func (t token) isBound(b binding) bool {
	_, ok := b[t.name]
	return t.name == "" || ok && t.isPlaceholder()
}

var globEscapes = strings.NewReplacer(`[`, `\[`, `\`, `\\`, `*`, `\*`, `?`, `\?`)

// glob is for filepath.Glob, which finds what p matches and perhaps more.
func (p *pattern) glob() string {
	var s strings.Builder
	for _, t := range p.tokens {
		switch {
		case t.name == "":
			s.WriteString(globEscapes.Replace(t.literal))
		case t.name[0] == '?':
			s.WriteByte('?')
		default:
			s.WriteByte('*')
		}
	}
	return s.String()
}

// prefix is the literal text before the first placeholder, suffix that after
// the last.
func (p *pattern) prefix() string {
	if len(p.tokens) > 0 {
		return p.tokens[0].literal
	}
	return ""
}

func (p *pattern) suffix() string {
	if len(p.tokens) > 0 {
		return p.tokens[len(p.tokens)-1].literal
	}
	return ""
}

// overlaps reports whether some name matches both patterns, each placeholder
// taken for itself.
func (p *pattern) overlaps(q *pattern) bool {
	a, b := p.prefix(), q.prefix()
	if n := min(len(a), len(b)); a[:n] != b[:n] {
		return false
	}
	a, b = p.suffix(), q.suffix()
	if n := min(len(a), len(b)); a[len(a)-n:] != b[len(b)-n:] {
		return false
	}
	return meet(p.symbols(), q.symbols())
}

// sameShape reports whether the patterns differ in the names of placeholders
// only.
func (p *pattern) sameShape(q *pattern) bool {
	if len(p.tokens) != len(q.tokens) {
		return false
	}
	for i, t := range p.tokens {
		u := q.tokens[i]
		if t.literal != u.literal || (t.name == "") != (u.name == "") {
			return false
		}
	}
	return true
}

// symbols of a pattern as a wildcard expression: bytes, anyOne and anyMany,
// neither of which stands for '/'.
const (
	anyOne  = 256
	anyMany = 257
)

func (p *pattern) symbols() []int {
	var s []int
	for _, t := range p.tokens {
		s = append(s, t.symbols()...)
	}
	return s
}

func (t token) symbols() []int {
	switch {
	case t.name == "":
		s := make([]int, len(t.literal))
		for i := range len(t.literal) {
			s[i] = int(t.literal[i])
		}
		return s
	case t.name[0] == '*':
		return []int{anyMany}
	case t.name[0] == '?':
		return []int{anyOne}
	}
	return []int{anyOne, anyMany}
}

// meet reports whether two wildcard expressions share a word. reach[j] holds
// whether the suffixes from i and j do, computed from the ends.
func meet(a, b []int) bool {
	next := make([]bool, len(b)+1)
	for i := len(a); i >= 0; i-- {
		row := make([]bool, len(b)+1)
		for j := len(b); j >= 0; j-- {
			row[j] = meetAt(a, b, i, j, row, next)
		}
		next = row
	}
	return next[0]
}

func meetAt(a, b []int, i, j int, row, next []bool) bool {
	switch {
	case i == len(a) && j == len(b):
		return true
	case i < len(a) && a[i] == anyMany && (next[j] || j < len(b) && b[j] != '/' && row[j+1]):
		return true
	case j < len(b) && b[j] == anyMany && (row[j+1] || i < len(a) && a[i] != '/' && next[j]):
		return true
	case i == len(a) || j == len(b) || a[i] == anyMany || b[j] == anyMany:
		return false
	case a[i] == b[j], a[i] == anyOne && b[j] != '/', b[j] == anyOne && a[i] != '/':
		return next[j+1]
	}
	return false
}

// longPart gives the first part of an output's name that is too long, or "".
// Placeholders count as nothing.
func (p *pattern) longPart() string {
	var literal strings.Builder
	for _, t := range p.tokens {
		literal.WriteString(t.literal)
	}
	return logical.LongPart(literal.String())
}
