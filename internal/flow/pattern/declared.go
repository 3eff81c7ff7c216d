package pattern

import (
	"fmt"
	"strings"
)

// ReadFirst reads a name by the first pattern that it fits; -1 if there is none.
func ReadFirst(patterns []*Pattern, name string) (at int, values Binding, err error) {
	for i, p := range patterns {
		first, second := p.Read(name, nil, nil)
		if second != nil {
			return -1, nil, fmt.Errorf("%s; give the file another name, or write a pattern that leaves one way",
				TwoReadings(name, p, first, second))
		}
		if first != nil {
			return i, first, nil
		}
	}
	return -1, nil, nil
}

// Wildcard is what Placeholders and Named call all wildcards together.
const Wildcard = "*"

// Imagine puts values in place of placeholders and, under the name [Wildcard], of wildcards; 1 where there is none.
func (p *Pattern) Imagine(values map[string]string) string {
	var s strings.Builder
	for _, t := range p.Tokens {
		name := t.Name
		if t.isWildcard() {
			name = Wildcard
		}
		value, ok := values[name]
		switch {
		case name == "":
			s.WriteString(t.Literal)
		case ok:
			s.WriteString(value)
		default:
			s.WriteByte('1')
		}
	}
	return s.String()
}
