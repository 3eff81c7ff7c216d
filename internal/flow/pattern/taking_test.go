package pattern

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// texts are what a placeholder may stand for, up to a length; a wildcard may also stand for nothing.
func texts(longest int) []string {
	all, last := []string{}, []string{""}
	for range longest {
		var next []string
		for _, t := range last {
			next = append(next, t+"a", t+"b")
		}
		all, last = append(all, next...), next
	}
	return all
}

// files are names that a pattern makes, with the values that they were made with, until found returns true.
func files(p *Pattern, values map[string][]string, longest int, found func(name string, values Binding) bool) bool {
	var from func(i int, name string, bound Binding) bool
	from = func(i int, name string, bound Binding) bool {
		if i == len(p.Tokens) {
			return found(name, bound)
		}
		t := p.Tokens[i]
		if value, ok := bound[t.Name]; ok {
			return from(i+1, name+value, bound)
		}
		of := texts(longest)
		switch {
		case t.Name == "":
			return from(i+1, name+t.Literal, bound)
		case t.Name[0] == '*':
			return slices.ContainsFunc(append(of, ""), func(v string) bool { return from(i+1, name+v, bound) })
		case t.Name[0] == '?':
			return from(i+1, name+"a", bound) || from(i+1, name+"b", bound)
		}
		if values[t.Name] != nil {
			of = values[t.Name]
		}
		return slices.ContainsFunc(of, func(v string) bool {
			with := maps.Clone(bound)
			with[t.Name] = v
			return from(i+1, name+v, with)
		})
	}
	return from(0, "", Binding{})
}

// meets compares what CanMeet says with all files of the maker that there are. Values that both patterns have are
// first such that nothing else is like them, and then any. Placeholders that stand twice are taken for themselves
// each time, so that patterns may be said to meet that do not.
func meets(t interface{ Fatalf(string, ...any) }, maker, taker *Pattern, longest int) {
	taking := NewTaking(maker, taker)
	only, any := map[string][]string{}, map[string][]string{}
	for i, name := range taking.shared {
		like := string(rune(imaginedValue + i))
		only[name], any[name] = []string{like}, append(texts(longest), like)
	}
	for _, whole := range []bool{false, true} {
		reads := func(name string, values Binding) bool {
			var mask []bool
			if whole {
				mask = maker.wholes(name, values)
			}
			first, _ := taker.Read(name, values.Of(taking.shared), mask)
			return first != nil
		}
		got := taking.CanMeet(whole)
		if !got && files(maker, only, longest, reads) {
			t.Fatalf("%q does not meet %q, whole %v, but reads a file", taker.Text, maker.Text, whole)
		}
		twice := len(maker.repeated())+len(taker.repeated()) > 0
		if got && !twice && !files(maker, any, longest, reads) {
			t.Fatalf("%q meets %q, whole %v, but reads no file", taker.Text, maker.Text, whole)
		}
	}
}

func TestPatternsMeetWhereOneReadsAFileOfTheOther(t *testing.T) {
	parts := []string{"a", "b", "/", "{x}", "{y}", "*", "?"}
	short := []*Pattern{mustPattern(t, "")}
	for _, p := range parts {
		short = append(short, mustPattern(t, p))
		for _, q := range parts {
			short = append(short, mustPattern(t, p+q))
		}
	}
	for _, maker := range short {
		for _, taker := range short {
			meets(t, maker, taker, 2)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		draw := func(label string, of ...string) *Pattern {
			text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(append(parts, of...)), 3, 3).Draw(t, label), "")
			p, err := NewPattern(text)
			if err != nil {
				t.Fatal(err)
			}
			return p
		}
		meets(t, draw("maker"), draw("taker", "{z}"), 3)
	})
}

// What is read of a file does not hang on what its name looks like where patterns differ in names only.
func TestRenamedPlaceholdersHaveTheValuesOfTheFile(t *testing.T) {
	taking := NewTaking(mustPattern(t, "{a}{b}"), mustPattern(t, "{c}{d}"))
	for _, values := range []Binding{{"a": "1", "b": "23"}, {"a": "12", "b": "3"}} {
		first, second := taking.Read("123", values)
		if first["c"] != values["a"] || first["d"] != values["b"] || second != nil {
			t.Errorf("%v is read as %v, %v", values, first, second)
		}
	}
	if what, _ := taking.Problem(); what != "" {
		t.Error(what)
	}
	for _, other := range [][2]string{
		{"{a}-{b}", "{c}-{c}"}, {"{a}-{b}", "{b}-{c}"}, {"{a}-*", "{c}-{d}"}, {"{a}-x", "{c}-y"},
	} {
		if taking := NewTaking(mustPattern(t, other[0]), mustPattern(t, other[1])); taking.renamed != nil {
			t.Errorf("%v are renamed: %v", other, taking.renamed)
		}
	}
}

// Problems name the patterns and what to write.
func TestProblemsOfTaking(t *testing.T) {
	for _, c := range []struct{ maker, taker, what, instead string }{
		{"x/{file}", "x/{file}", "", ""},
		{"x/{file}", "x/{name}.bam", "", ""},
		{"x/{a}.{b}", "x/{c}.{d}", "", ""},
		{"{a}.{b}.{c}", "{d}.{e}", `"{d}.{e}" fits "{a}.{b}.{c}" in two ways, as d={a}, e={b}.{c} and as d={a}.{b}, e={c}`,
			`take "{a}.{b}.{c}"`},
		{"{a}.*.{c}", "{d}.{e}", "", ""}, // a file tells
		{"x/{a}", "x/{a}{b}", `"x/{a}{b}" fits "x/{a}" as text, but only where {a} is not what it is there`,
			`take "x/{a}", or give placeholders that are something else other names`},
		{"{file}", "{c}{d}.bam", `nothing in "{c}{d}.bam" tells where {c} ends and {d} begins`, "put text between them"},
	} {
		taking := NewTaking(mustPattern(t, c.maker), mustPattern(t, c.taker))
		if what, instead := taking.Problem(); what != c.what || instead != c.instead {
			t.Errorf("%q of %q: %s: %s", c.taker, c.maker, what, instead)
		}
	}
}

func TestPlaceholdersThatTouch(t *testing.T) {
	for _, c := range []struct{ pattern, known, want string }{
		{"{a}{b}", "", "{a} {b}"},
		{"x{a}{b}", "", "{a} {b}"},
		{"{a}-{b}", "", " "},
		{"{a}{b}", "a", " "},
		{"{a}{b}-{a}", "", " "}, // the second tells where the first ends
		{"{a}*", "", "{a} *"},
		{"*{a}", "", "* {a}"},
		{"**", "", " "},
		{"?{a}", "", " "}, // one character
		{"", "", " "},
	} {
		if a, b := mustPattern(t, c.pattern).Touching([]string{c.known}); a+" "+b != c.want {
			t.Errorf("in %q %s touches %s", c.pattern, a, b)
		}
	}
}

func TestReadersDisagreeWithWhatAFileWasMadeWith(t *testing.T) {
	p := mustPattern(t, "{a}.{b}")
	made := Binding{"a": "1", "b": "2", "c": "3"}
	for _, c := range []struct {
		reader Binding
		want   string
	}{
		{Binding{"a": "1", "c": "4"}, ""},
		{Binding{"d": "4"}, ""},
		{Binding{"a": "2", "c": "4"}, "it was made with a=1, b=2, c=3, and not with a=2"},
	} {
		if got := p.Disagree(c.reader, made); got != c.want {
			t.Errorf("%v: %s", c.reader, got)
		}
	}
}
