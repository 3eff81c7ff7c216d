package flow

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// A token of a pattern is literal text, a placeholder, or a wildcard.
type token struct {
	literal string
	name    string // of a placeholder; wildcards are named "*1", "*2", ... and "?1", ...
}

// pattern is a name with placeholders. A placeholder stands for one or more
// characters but '/', as few as make the whole match; '*' for any number of
// them and '?' for one.
type pattern struct {
	text   string
	tokens []token
	line   int
	column int
	names  []string // placeholders in the order of their first appearance
	regexp *regexp.Regexp
	groups []string // name of each group of regexp
}

var placeholderName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// newPattern compiles text.
func newPattern(text string) (*pattern, error) {
	p := &pattern{text: text}
	if err := p.tokenize(); err != nil {
		return nil, err
	}
	p.compile()
	return p, nil
}

func (p *pattern) tokenize() error {
	rest, wildcards := p.text, 0
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
			name, after, found := strings.Cut(rest, "}")
			if !found || !placeholderName.MatchString(name) {
				return fmt.Errorf("%q has a '{' that starts no placeholder; a placeholder is {name}, of letters, digits and '_'", p.text)
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
		p.tokens = append(p.tokens, token{literal: s})
	}
}

func (p *pattern) placeholder(name string) {
	p.tokens = append(p.tokens, token{name: name})
	if !p.has(name) {
		p.names = append(p.names, name)
	}
}

func (p *pattern) compile() {
	var b strings.Builder
	b.WriteString(`^`)
	for _, t := range p.tokens {
		switch {
		case t.name == "":
			b.WriteString(regexp.QuoteMeta(t.literal))
			continue
		case t.name[0] == '*':
			b.WriteString(`([^/]*?)`)
		case t.name[0] == '?':
			b.WriteString(`([^/])`)
		default:
			b.WriteString(`([^/]+?)`)
		}
		p.groups = append(p.groups, t.name)
	}
	b.WriteString(`$`)
	p.regexp = regexp.MustCompile(b.String())
}

func (p *pattern) has(name string) bool {
	for _, n := range p.names {
		if n == name {
			return true
		}
	}
	return false
}

// binding gives placeholders their values.
type binding map[string]string

// match binds the placeholders so that p expands to name, or says that no
// values do.
func (p *pattern) match(name string) (binding, bool) {
	if len(p.groups) == 0 {
		return binding{}, name == p.text
	}
	found := p.regexp.FindStringSubmatch(name)
	if found == nil {
		return nil, false
	}
	b := make(binding, len(p.groups))
	for i, group := range p.groups {
		value := found[i+1]
		if before, bound := b[group]; bound && before != value {
			return nil, false
		}
		b[group] = value
	}
	return b, true
}

// expand puts values in place of placeholders; what b does not bind becomes
// '*', and open says so.
func (p *pattern) expand(b binding) (name string, open bool) {
	var s strings.Builder
	for _, t := range p.tokens {
		value, bound := b[t.name]
		switch {
		case t.name == "":
			s.WriteString(t.literal)
		case bound:
			s.WriteString(value)
		default:
			s.WriteByte('*')
			open = true
		}
	}
	return s.String(), open
}

var globEscapes = strings.NewReplacer(`[`, `\[`, `\`, `\\`)

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

// overlaps says whether some name matches both patterns, each placeholder
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

// sameShape says that the patterns differ in the names of placeholders only.
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
		switch {
		case t.name == "":
			for i := range len(t.literal) {
				s = append(s, int(t.literal[i]))
			}
		case t.name[0] == '*':
			s = append(s, anyMany)
		case t.name[0] == '?':
			s = append(s, anyOne)
		default:
			s = append(s, anyOne, anyMany)
		}
	}
	return s
}

// meet says whether two wildcard expressions share a word. reach[j] holds
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

// legalLFN says why name cannot be a logical file name, or "".
func legalLFN(name string) string {
	switch {
	case name == "":
		return "is empty"
	case strings.HasPrefix(name, "/"):
		return "starts with '/'"
	case strings.ContainsAny(name, "\x00\n"):
		return "contains a line break or a zero byte"
	case !utf8.ValidString(name):
		return "is not UTF-8"
	case len(name) > 1024:
		return "is longer than 1024 bytes"
	}
	for _, part := range strings.Split(name, "/") {
		if part == "" || part == "." || part == ".." {
			return fmt.Sprintf("has the part %q", part)
		}
	}
	return ""
}
