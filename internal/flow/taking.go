package flow

import (
	"fmt"
	"slices"
	"strings"
)

// taking is how the files that one pattern makes are read by another: that of
// a step which takes them. A file carries the values that it was made with:
//
//   - a placeholder that both patterns have stands for the value of the file;
//   - the others, and wildcards and literal text, cover values as a whole,
//     where the patterns permit that at all;
//   - where they do not, as when a step takes `x/{name}.bam` of `x/{file}`,
//     values are cut.
//
// What then leaves two readings with different values is refused.
type taking struct {
	maker, taker *pattern
	same         bool              // the values are those of the file
	renamed      map[string]string // placeholders of the taker to those of the maker, if they differ in names only
	shared       []string          // placeholders that both have
	whole        bool              // values are not cut
}

func newTaking(maker, taker *pattern) taking {
	t := taking{maker: maker, taker: taker}
	for _, name := range taker.names {
		if placeholderName.MatchString(name) && maker.has(name) {
			t.shared = append(t.shared, name)
		}
	}
	t.whole = t.canMeet(true)
	t.renamed, t.same = t.renames()
	return t
}

// renames pairs the placeholders of patterns that differ in nothing else.
func (t *taking) renames() (renamed map[string]string, same bool) {
	if !t.taker.sameShape(t.maker) {
		return nil, false
	}
	renamed, same = map[string]string{}, true
	for i, token := range t.taker.tokens {
		made := t.maker.tokens[i]
		if token.String() == made.String() && !token.isPlaceholder() {
			continue
		}
		before, ok := renamed[token.name]
		switch {
		case !token.isPlaceholder(), !made.isPlaceholder():
			return nil, false
		case ok && before != made.name, t.maker.has(token.name) && made.name != token.name:
			return nil, false
		}
		renamed[token.name] = made.name
		same = same && token.name == made.name
	}
	return renamed, same
}

// read gives the values by which the taker knows a file; nil if it does not
// take it. A second reading means that the name does not tell.
func (t *taking) read(lfn string, values binding) (first, second binding) {
	switch {
	case t.same:
		return values, nil
	case t.renamed != nil:
		read := make(binding, len(t.renamed))
		for name, made := range t.renamed {
			read[name] = values[made]
		}
		return read, nil
	}
	var whole []bool
	if t.whole {
		whole = t.maker.wholes(lfn, values)
	}
	return t.taker.read(lfn, values.of(t.shared), whole)
}

// problem says why the patterns must not be used together, or "".
func (t *taking) problem() (what, instead string) {
	if !t.whole && !t.canMeet(false) {
		return fmt.Sprintf("%q fits %q as text, but only where {%s} is not what it is there", t.taker.text, t.maker.text,
				strings.Join(t.shared, "}, {")),
			fmt.Sprintf("take %q, or give placeholders that are something else other names", t.maker.text)
	}
	if t.whole {
		return t.twoWays()
	}
	if a, b := t.taker.touching(t.shared); a != "" {
		return fmt.Sprintf("nothing in %q tells where %s ends and %s begins", t.taker.text, a, b), "put text between them"
	}
	return "", ""
}

// twoWays finds two readings that every file has, whatever its values are.
func (t *taking) twoWays() (what, instead string) {
	if t.maker.anyWildcard() {
		return "", ""
	}
	imagined, show := binding{}, []string{}
	for i, name := range t.maker.names {
		imagined[name] = string(rune(imaginedValue + i))
		show = append(show, imagined[name], "{"+name+"}")
	}
	name, _ := t.maker.expand(imagined)
	first, second := t.taker.read(name, imagined.of(t.shared), nil)
	if second == nil {
		return "", ""
	}
	shown := strings.NewReplacer(show...)
	return fmt.Sprintf("%q fits %q in two ways, as %s and as %s", t.taker.text, t.maker.text,
			shown.Replace(first.String()), shown.Replace(second.String())),
		fmt.Sprintf("take %q", t.maker.text)
}

// imaginedValue is the first of the characters that stand for values nobody
// knows yet: they are for private use, and not those that hide others.
const imaginedValue = 0xe100

// canMeet reports whether the taker can read some file of the maker so that
// placeholders of both have the values of the file, and, if whole, no value is
// cut.
func (t *taking) canMeet(whole bool) bool {
	m := meeting{maker: t.maker.atoms(t.maker, whole, t.shared), taker: t.taker.atoms(t.maker, false, t.shared),
		failed: map[[2]int]bool{}}
	return m.from(0, 0, false)
}

// atoms are the symbols of p, with placeholders of the maker as one symbol
// each: all of them, or those that are shared.
func (p *pattern) atoms(maker *pattern, all bool, shared []string) []int {
	var s []int
	for _, t := range p.tokens {
		atom := -1
		for i, name := range maker.names {
			if t.name == name && t.isPlaceholder() {
				atom = anAtom + i
			}
		}
		if atom >= 0 && (all || slices.Contains(shared, t.name)) {
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

// touching finds two placeholders, or one and a wildcard, of which no name
// tells where one ends and the other begins. Values of known placeholders are
// put in before.
func (p *pattern) touching(known []string) (a, b string) {
	times := map[string]int{}
	for _, t := range p.tokens {
		times[t.name]++
	}
	open := func(t token) bool {
		return t.name != "" && t.name[0] != '?' && times[t.name] == 1 && !slices.Contains(known, t.name)
	}
	for i := 1; i < len(p.tokens); i++ {
		x, y := p.tokens[i-1], p.tokens[i]
		if open(x) && open(y) && (x.isPlaceholder() || y.isPlaceholder()) {
			return x.String(), y.String()
		}
	}
	return "", ""
}

// disagree says why a reader must not read a file whose name fits, or "": it
// was made with another value of a placeholder that both have.
func (p *pattern) disagree(reader binding, made binding) string {
	for _, name := range p.names {
		value, bound := made[name]
		if own, ok := reader[name]; bound && ok && own != value {
			return fmt.Sprintf("it was made with %v, and not with %v", made, reader.of(p.names))
		}
	}
	return ""
}
