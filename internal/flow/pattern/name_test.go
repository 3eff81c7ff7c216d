package pattern

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"fairway/internal/logical"
)

// Natural orders all short names as people do: piece by piece, runs of digits as numbers, and names of equal pieces by
// their bytes.
func TestNaturalAgainstNumbers(t *testing.T) {
	type piece struct {
		number int
		letter byte
	}
	pieces := func(name string) (all []piece) {
		for name != "" {
			digits := len(name) - len(strings.TrimLeft(name, "0123456789"))
			if digits == 0 {
				all, name = append(all, piece{letter: name[0]}), name[1:]
				continue
			}
			n, _ := strconv.Atoi(name[:digits])
			all, name = append(all, piece{number: n, letter: '0'}), name[digits:]
		}
		return all
	}
	names := []string{""}
	for at := 0; at < len(names) && len(names[at]) < 4; at++ {
		for _, c := range "019a-" {
			names = append(names, names[at]+string(c))
		}
	}
	cut := make([][]piece, len(names))
	for i, name := range names {
		cut[i] = pieces(name)
	}
	for i, a := range names {
		for k, b := range names {
			want := slices.CompareFunc(cut[i], cut[k], func(x, y piece) int {
				return cmp.Or(cmp.Compare(x.letter, y.letter), cmp.Compare(x.number, y.number))
			})
			if want = cmp.Or(want, strings.Compare(a, b)); sign(Natural(a, b)) != want {
				t.Fatalf("%q and %q: %d, want %d", a, b, Natural(a, b), want)
			}
		}
	}
}

func TestShapesDifferInMoreThanNames(t *testing.T) {
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"{x}.{y}", "{a}.{b}", true},
		{"a/{x}", "b/{x}", false},
		{"a/{x}", "a/*", false},
		{"a/?", "a/*", false},
		{"a/{x}", "a/{x}{y}", false},
		{"a/{x}", "a/\x01", false},
		{"a/b", "a/b", true},
	} {
		a, b := mustPattern(t, c.a), mustPattern(t, c.b)
		if (a.Shape() == b.Shape()) != c.same {
			t.Errorf("%q and %q have the shapes %q and %q", c.a, c.b, a.Shape(), b.Shape())
		}
	}
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"{x}.a", "*.a", true}, {"{x}.a", "{y}.b", false}, {"{x}a", "a{x}", false}, {"a", "{x}", false},
		{"a", "a{x}", false},
	} {
		if got := mustPattern(t, c.a).SameShape(mustPattern(t, c.b)); got != c.same {
			t.Errorf("%q and %q: %v", c.a, c.b, got)
		}
	}
}

func TestNamesInNames(t *testing.T) {
	for name, want := range map[string]string{"a": "[]", "a/b": "[a]", "a/b/c": "[a/b a]", "/a": "[]"} {
		if got := fmt.Sprint(slices.Collect(FoldersOf(name))); got != want {
			t.Errorf("%s is in %s", name, got)
		}
	}
	if got := slices.Collect(FoldersOf("/a")); len(got) != 1 {
		t.Errorf("/a is in %d folders", len(got))
	}
	for range FoldersOf("a/b/c") {
		break
	}
	for _, c := range [][3]string{
		{"a", "a/", "a is a file and a/ a folder of that name: give one of them another name"},
		{"a/", "a/b", "a/ is a folder that is kept as a whole, and a/b is in it: write it as part of the folder, or " +
			"give one of them another name"},
		{"a", "a/b", "a is a file, and a/b one in a folder of that name: give one of them another name"},
	} {
		if got := Nested(c[0], c[1]); got != c[2] {
			t.Errorf("%s in %s: %s", c[1], c[0], got)
		}
	}
}

func TestFirstElements(t *testing.T) {
	for text, want := range map[string]string{
		"a/{x}": "a true", "a/b/{x}": "a true", "a": "a true", "a{x}/b": "a false", "{x}/b": " false", "a{x}": "a false",
	} {
		folder, ok := FirstElement(mustPattern(t, text))
		if got := fmt.Sprintf("%s %v", folder, ok); got != want {
			t.Errorf("%q begins with %s, want %s", text, got, want)
		}
	}
}

func TestWildcardsAreTold(t *testing.T) {
	for text, any := range map[string]bool{"a": false, "{x}": false, "{x}*": true, "?/{x}": true} {
		if got := mustPattern(t, text).AnyWildcard(); got != any {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// The first reading of a name stands where the search for a second one is given up.
func TestReadingsWhoseSecondIsTooMuchWork(t *testing.T) {
	p := mustPattern(t, "{a}{b}{c}{d}{e}{f}x{f}{e}{d}{c}{b}{a}")
	var middle strings.Builder
	for i := range 100 {
		fmt.Fprintf(&middle, "%c%c", 'A'+i%23, 'a'+(i/7)%20)
	}
	name := "12345" + middle.String() + "x" + middle.String() + "54321"
	first, second := p.Read(name, nil, nil)
	if first["a"] != "1" || first["f"] != middle.String() || second == nil || len(second) > 0 {
		t.Errorf("it is read as %v and %v", first, second)
	}
}

func TestGlobFindsWhatThePatternMatches(t *testing.T) {
	for text, want := range map[string]string{"a[1]{x}": `a\[1]*`, "?{x}*": "?**", `\a`: `\\a`} {
		if got := mustPattern(t, text).Glob(); got != want {
			t.Errorf("%q: %s", text, got)
		}
	}
	long := strings.Repeat("a", logical.MaxPart)
	if mustPattern(t, long+"{x}").LongPart() != "" || mustPattern(t, long+"{x}a").LongPart() == "" {
		t.Error("the longest part of a name is another one")
	}
}

func TestImaginedNames(t *testing.T) {
	p := mustPattern(t, "{x}-{y}-*-?")
	if got := p.Imagine(map[string]string{"x": "a", Wildcard: "w"}); got != "a-1-w-w" {
		t.Error(got)
	}
	if got := p.Imagine(nil); got != "1-1-1-1" {
		t.Error(got)
	}
}
