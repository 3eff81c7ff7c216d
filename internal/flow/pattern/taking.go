package pattern

import (
	"fmt"
	"slices"
	"strings"
)

// Taking is how the files that one pattern makes are read by another: that of
// a step which takes them. A file carries the values that it was made with:
//
//   - a placeholder that both patterns have stands for the value of the file;
//   - the others, and wildcards and literal text, cover values as a whole,
//     where the patterns permit that at all;
//   - where they do not, as when a step takes `x/{name}.bam` of `x/{file}`,
//     values are cut.
//
// What then leaves two readings with different values is refused.
type Taking struct {
	Maker, Taker *Pattern
	Same         bool              // the values are those of the file
	renamed      map[string]string // placeholders of the taker to those of the maker, if they differ in names only
	shared       []string          // placeholders that both have
	Whole        bool              // values are not cut
}

// NewTaking tells how the names of one pattern, maker, are read by another.
func NewTaking(maker, taker *Pattern) Taking {
	t := Taking{Maker: maker, Taker: taker}
	for _, name := range taker.Names {
		if PlaceholderName.MatchString(name) && maker.Has(name) {
			t.shared = append(t.shared, name)
		}
	}
	t.Whole = t.CanMeet(true)
	t.renamed, t.Same = t.renames()
	return t
}

// renames pairs the placeholders of patterns that differ in nothing else.
func (t *Taking) renames() (renamed map[string]string, same bool) {
	if !t.Taker.SameShape(t.Maker) {
		return nil, false
	}
	renamed, same = map[string]string{}, true
	for i, token := range t.Taker.Tokens {
		made := t.Maker.Tokens[i]
		if token.String() == made.String() && !token.isPlaceholder() {
			continue
		}
		before, ok := renamed[token.Name]
		switch {
		case !token.isPlaceholder(), !made.isPlaceholder():
			return nil, false
		case ok && before != made.Name, t.Maker.Has(token.Name) && made.Name != token.Name:
			return nil, false
		}
		renamed[token.Name] = made.Name
		same = same && token.Name == made.Name
	}
	return renamed, same
}

// Read gives the values by which the taker knows a file; nil if it does not
// take it. A second reading means that the name does not tell.
func (t *Taking) Read(lfn string, values Binding) (first, second Binding) {
	switch {
	case t.Same:
		return values, nil
	case t.renamed != nil:
		read := make(Binding, len(t.renamed))
		for name, made := range t.renamed {
			read[name] = values[made]
		}
		return read, nil
	}
	var whole []bool
	if t.Whole {
		whole = t.Maker.wholes(lfn, values)
	}
	return t.Taker.Read(lfn, values.Of(t.shared), whole)
}

// Problem says why the patterns must not be used together, or "".
func (t *Taking) Problem() (what, instead string) {
	if !t.Whole && !t.CanMeet(false) {
		return fmt.Sprintf("%q fits %q as text, but only where {%s} is not what it is there", t.Taker.Text, t.Maker.Text,
				strings.Join(t.shared, "}, {")),
			fmt.Sprintf("take %q, or give placeholders that are something else other names", t.Maker.Text)
	}
	if t.Whole {
		return t.twoWays()
	}
	if a, b := t.Taker.Touching(t.shared); a != "" {
		return fmt.Sprintf("nothing in %q tells where %s ends and %s begins", t.Taker.Text, a, b), "put text between them"
	}
	return "", ""
}

// twoWays finds two readings that every file has, whatever its values are.
func (t *Taking) twoWays() (what, instead string) {
	if t.Maker.AnyWildcard() {
		return "", ""
	}
	imagined, show := Binding{}, []string{}
	for i, name := range t.Maker.Names {
		imagined[name] = string(rune(imaginedValue + i))
		show = append(show, imagined[name], "{"+name+"}")
	}
	name, _ := t.Maker.Expand(imagined)
	first, second := t.Taker.Read(name, imagined.Of(t.shared), nil)
	if second == nil {
		return "", ""
	}
	shown := strings.NewReplacer(show...)
	return fmt.Sprintf("%q fits %q in two ways, as %s and as %s", t.Taker.Text, t.Maker.Text,
			shown.Replace(first.String()), shown.Replace(second.String())),
		fmt.Sprintf("take %q", t.Maker.Text)
}

// imaginedValue is the first of the characters that stand for values nobody
// knows yet: they are for private use, and not those that hide others.
const imaginedValue = 0xe100

// CanMeet reports whether the taker can read some file of the maker so that
// placeholders of both have the values of the file, and, if whole, no value is
// cut.
func (t *Taking) CanMeet(whole bool) bool {
	m := meeting{maker: t.Maker.atoms(t.Maker, whole, t.shared), taker: t.Taker.atoms(t.Maker, false, t.shared),
		failed: map[[2]int]bool{}}
	return m.from(0, 0, false)
}

// atoms are the symbols of p, with placeholders of the maker as one symbol
// each: all of them, or those that are shared.
func (p *Pattern) atoms(maker *Pattern, all bool, shared []string) []int {
	var s []int
	for _, t := range p.Tokens {
		atom := -1
		for i, name := range maker.Names {
			if t.Name == name && t.isPlaceholder() {
				atom = anAtom + i
			}
		}
		if atom >= 0 && (all || slices.Contains(shared, t.Name)) {
			s = append(s, atom)
		} else {
			s = append(s, t.symbols()...)
		}
	}
	return s
}

// anAtom is the first symbol of values that are not cut.
const anAtom = anyMany + 1

// meeting compares the symbols of a maker and a taker. The text of a taker may
// cover a whole value of the maker.
type meeting struct {
	maker, taker []int
	failed       map[[2]int]bool
}

func (m *meeting) from(i, j int, covering bool) bool {
	key := [2]int{i, 2 * j}
	if covering {
		key[1]++
	}
	if m.failed[key] {
		return false
	}
	if m.step(i, j, covering) {
		return true
	}
	m.failed[key] = true
	return false
}

func (m *meeting) step(i, j int, covering bool) bool {
	if i == len(m.maker) && j == len(m.taker) {
		return true
	}
	made, taken := -1, -1
	if i < len(m.maker) {
		made = m.maker[i]
	}
	if j < len(m.taker) {
		taken = m.taker[j]
	}
	isText := 0 <= taken && taken < anyOne && taken != '/'
	if covering { // a value, by text: it ends here, or has one more character
		return m.from(i+1, j, false) || isText && m.from(i, j+1, true)
	}
	if taken == anyMany && (m.from(i, j+1, false) || made >= 0 && made != '/' && m.from(i+1, j, false)) {
		return true
	}
	if made == anyMany && (m.from(i+1, j, false) || (isText || taken == anyOne || taken == anyMany) &&
		m.from(i, j+1, false)) {
		return true
	}
	switch {
	case made < 0 || taken < 0 || made == anyMany || taken == anyMany:
		return false
	case made == taken, taken == anyOne && made != '/', made == anyOne && isText:
		return m.from(i+1, j+1, false)
	case made >= anAtom && isText:
		return m.from(i, j+1, true)
	}
	return false
}

// Touching finds two placeholders, or one and a wildcard, of which no name
// tells where one ends and the other begins. Values of known placeholders are
// put in before.
func (p *Pattern) Touching(known []string) (a, b string) {
	times := map[string]int{}
	for _, t := range p.Tokens {
		times[t.Name]++
	}
	open := func(t token) bool {
		return t.Name != "" && t.Name[0] != '?' && times[t.Name] == 1 && !slices.Contains(known, t.Name)
	}
	for i := 1; i < len(p.Tokens); i++ {
		x, y := p.Tokens[i-1], p.Tokens[i]
		if open(x) && open(y) && (x.isPlaceholder() || y.isPlaceholder()) {
			return x.String(), y.String()
		}
	}
	return "", ""
}

// Disagree says why a reader must not read a file whose name fits, or "": it
// was made with another value of a placeholder that both have.
func (p *Pattern) Disagree(reader Binding, made Binding) string {
	for _, name := range p.Names {
		value, bound := made[name]
		if own, ok := reader[name]; bound && ok && own != value {
			return fmt.Sprintf("it was made with %v, and not with %v", made, reader.Of(p.Names))
		}
	}
	return ""
}
