package pattern

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"fairway/internal/logical"
)

// A token of a pattern is literal text, a placeholder, or a wildcard.
type token struct {
	Literal string
	Name    string // of a placeholder; wildcards are named "*1", "*2", ... and "?1", ...
}

func (t token) isPlaceholder() bool { return t.Name != "" && !t.isWildcard() }

func (t token) String() string {
	switch {
	case t.isPlaceholder():
		return "{" + t.Name + "}"
	case t.isWildcard():
		return t.Name[:1]
	}
	return t.Literal
}

func (t token) isWildcard() bool { return t.Name != "" && (t.Name[0] == '*' || t.Name[0] == '?') }

// Pattern is a name with placeholders. A placeholder stands for one or more
// characters but '/'; '*' for any number of them and '?' for one.
type Pattern struct {
	Text   string
	Tokens []token
	Line   int
	Column int
	Names  []string // placeholders and wildcards in the order of their first appearance
}

// PlaceholderName is what the name of a placeholder, or of a variable, looks like.
var PlaceholderName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// NewPattern reads a pattern. In text, characters that [literal] hides are
// themselves and nothing else.
func NewPattern(text string) (*Pattern, error) {
	p := &Pattern{Text: showLiteral.Replace(text)}
	return p, p.tokenize(text)
}

func (p *Pattern) tokenize(rest string) error {
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
			if !ok || !PlaceholderName.MatchString(name) {
				return fmt.Errorf("%q has a '{' that starts no placeholder; a placeholder is {name}, of letters, digits and '_'",
					p.Text)
			}
			p.placeholder(name)
			rest = after
		default:
			return fmt.Errorf("%q has a '}' without a '{'", p.Text)
		}
	}
	return nil
}

func (p *Pattern) literal(s string) {
	if s != "" {
		p.Tokens = append(p.Tokens, token{Literal: showLiteral.Replace(s)})
	}
}

func (p *Pattern) placeholder(name string) {
	p.Tokens = append(p.Tokens, token{Name: name})
	if !p.Has(name) {
		p.Names = append(p.Names, name)
	}
}

// Has reports whether there is a placeholder of this name.
func (p *Pattern) Has(name string) bool { return slices.Contains(p.Names, name) }

// Binding gives placeholders their values. One that a file or job has is never
// changed.
type Binding map[string]string

// Of are the values of some placeholders.
func (b Binding) Of(names []string) Binding {
	if b.isOf(names) {
		return b // millions of files share it with their job
	}
	some := make(Binding, len(names))
	for _, name := range names {
		if value, ok := b[name]; ok {
			some[name] = value
		}
	}
	return some
}

// isOf reports whether all values are of some placeholders.
func (b Binding) isOf(names []string) bool {
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
func (b Binding) String() string {
	var s strings.Builder
	for i, name := range slices.Sorted(maps.Keys(b)) {
		if i > 0 {
			s.WriteString(", ")
		}
		fmt.Fprintf(&s, "%s=%s", name, b[name])
	}
	return s.String()
}

// Expand puts values in place of placeholders. If b leaves any open, the name is a pattern of
// package logical with '*' for each of those, and else it is a name, which is never a pattern.
func (p *Pattern) Expand(b Binding) (name string, open bool) {
	var s strings.Builder
	open = slices.ContainsFunc(p.Tokens, func(t token) bool { return !t.isBound(b) })
	for _, t := range p.Tokens {
		text := t.Literal
		switch {
		case !t.isBound(b):
			s.WriteByte('*')
			continue
		case t.Name != "":
			text = b[t.Name]
		}
		if open {
			text = logical.Escape(text)
		}
		s.WriteString(text)
	}
	return s.String(), open
}

func (t token) isBound(b Binding) bool {
	_, ok := b[t.Name]
	return t.Name == "" || ok && t.isPlaceholder()
}

var globEscapes = strings.NewReplacer(`[`, `\[`, `\`, `\\`, `*`, `\*`, `?`, `\?`)

// Glob is for filepath.Glob, which finds what p matches and perhaps more.
func (p *Pattern) Glob() string {
	var s strings.Builder
	for _, t := range p.Tokens {
		switch {
		case t.Name == "":
			s.WriteString(globEscapes.Replace(t.Literal))
		case t.Name[0] == '?':
			s.WriteByte('?')
		default:
			s.WriteByte('*')
		}
	}
	return s.String()
}

// prefix is the literal text before the first placeholder, suffix that after
// the last.
func (p *Pattern) prefix() string {
	if len(p.Tokens) > 0 {
		return p.Tokens[0].Literal
	}
	return ""
}

func (p *Pattern) suffix() string {
	if len(p.Tokens) > 0 {
		return p.Tokens[len(p.Tokens)-1].Literal
	}
	return ""
}

// Overlaps reports whether some name matches both patterns, each placeholder
// taken for itself.
func (p *Pattern) Overlaps(q *Pattern) bool {
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

// SameShape reports whether the patterns differ in the names of placeholders
// only.
func (p *Pattern) SameShape(q *Pattern) bool {
	if len(p.Tokens) != len(q.Tokens) {
		return false
	}
	for i, t := range p.Tokens {
		u := q.Tokens[i]
		if t.Literal != u.Literal || (t.Name == "") != (u.Name == "") {
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

func (p *Pattern) symbols() []int {
	var s []int
	for _, t := range p.Tokens {
		s = append(s, t.symbols()...)
	}
	return s
}

func (t token) symbols() []int {
	switch {
	case t.Name == "":
		s := make([]int, len(t.Literal))
		for i := range len(t.Literal) {
			s[i] = int(t.Literal[i])
		}
		return s
	case t.Name[0] == '*':
		return []int{anyMany}
	case t.Name[0] == '?':
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

// LongPart gives the first part of an output's name that is too long, or "".
// Placeholders count as nothing.
func (p *Pattern) LongPart() string {
	var literal strings.Builder
	for _, t := range p.Tokens {
		literal.WriteString(t.Literal)
	}
	return logical.LongPart(literal.String())
}

// The values of parameters stand in patterns for themselves: hideLiteral hides what would be
// special there, until the pattern is read.
var HideLiteral = strings.NewReplacer("{", "\ue002", "}", "\ue003", "*", "\ue004", "?", "\ue005")

var showLiteral = strings.NewReplacer("\ue002", "{", "\ue003", "}", "\ue004", "*", "\ue005", "?")

// HiddenLiterals are the characters behind which hideLiteral hides others.
const HiddenLiterals = "\ue002\ue003\ue004\ue005"
