package pattern

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"fairway/internal/logical"
)

func mustPattern(t interface {
	Helper()
	Fatal(...any)
}, text string,
) *Pattern {
	t.Helper()
	p, err := NewPattern(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestMatch(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		want          string // values in order, or "no"
	}{
		{"parts/{part}.{mate}.fq", "parts/aa.1.fq", "aa 1"},
		{"parts/{part}.{mate}.fq", "parts/a.b.1.fq", "a b.1"},
		{"{x}/{x}.txt", "a/a.txt", "a"},
		{"{x}/{x}.txt", "a/b.txt", "no"},
		{"{s}_{s}.txt", "x_y_x_y.txt", "x_y"},
		{"{s}_{s}_{t}", "a_a_a_a_b", "a a_a_b"},
		{"{s}_é{s}", "é_ééé", "no"},
		{"{s}?", "éé", "é"},
		{"{x}.txt", "a/b.txt", "no"},
		{"{x}.txt", ".txt", "no"},
		{"a*/{x}", "a/b", "b"},
		{"a?/{x}", "a/b", "no"},
		{"a.b", "a.b", ""},
		{"a.b", "axb", "no"},
		{"${x}", "$y", "y"},
	} {
		p := mustPattern(t, c.pattern)
		values, _ := p.Read(c.name, nil, nil)
		got := "no"
		if values != nil {
			var list []string
			for _, n := range p.Names {
				if PlaceholderName.MatchString(n) {
					list = append(list, values[n])
				}
			}
			got = strings.Join(list, " ")
		}
		if got != c.want {
			t.Errorf("%s on %s: got %q, want %q", c.pattern, c.name, got, c.want)
		}
	}
}

// Values are text in what is made of them, whatever characters they have: a name has them as they
// are, and a pattern stands for the names with these very values alone.
func TestValuesAreNoPatterns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.StringMatching(`[ab*?\\[\]{}$ '"-]{1,6}`)
		values := Binding{"s": value.Draw(t, "s"), "t": value.Draw(t, "t")}
		p := mustPattern(t, rapid.SampledFrom([]string{"{s}", "up/{s}/{t}", "{s}.{t}/{s}"}).Draw(t, "pattern"))
		plain := strings.NewReplacer("{s}", values["s"], "{t}", values["t"]).Replace(p.Text)
		if name, open := p.Expand(values); name != plain || open {
			t.Fatalf("%s with %v is %q, open %v", p.Text, values, name, open)
		}
		chosen := mustPattern(t, p.Text+"/{free}/f")
		of, open := chosen.Expand(values)
		if !open || logical.Unescape(of) != plain+"/*/f" {
			t.Fatalf("%s with %v is %q, open %v", chosen.Text, values, of, open)
		}
		if free := value.Draw(t, "free"); !logical.Matches(of, plain+"/"+free+"/f") {
			t.Fatalf("%q does not match with %q", of, free)
		}
		other := Binding{"s": value.Draw(t, "other s"), "t": value.Draw(t, "other t")}
		if name, _ := p.Expand(other); name != plain && logical.Matches(of, name+"/x/f") {
			t.Fatalf("%q matches %q", of, name+"/x/f")
		}
	})
}

// What a pattern binds expands to the name again.
func TestMatchAndExpandAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPattern(t, "pattern")
		name := rapid.StringMatching(`[ab/.]{0,8}`).Draw(t, "name")
		values, second := p.Read(name, nil, nil)
		if values == nil {
			return
		}
		if back, open := p.Expand(values); back != name && !open || open && !logical.Matches(back, name) {
			t.Fatalf("%s binds %v in %q and gives %q", p.Text, values, name, back)
		}
		if second != nil && maps.Equal(values, second) {
			t.Fatalf("%s has two readings of %q that are one: %v", p.Text, name, values)
		}
	})
}

func drawPattern(t *rapid.T, label string) *Pattern {
	parts := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "/", ".", "{x}", "{y}", "*", "?"}), 0, 6).Draw(t, label)
	p, err := NewPattern(strings.Join(parts, ""))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Placeholders that stand again make the ways to read a name many. The work is bounded, and
// a name that needs more is told: it is neither dropped in silence nor waited for.
func TestReadingsThatAreTooMuchWorkAreTold(t *testing.T) {
	p := mustPattern(t, "{a}{b}{c}{d}{d}{c}{b}{a}x")
	name := func(n int) string {
		y := strings.Repeat("y", n)
		a, b, c, d := y+"1", y+"2", y+"3", y+"4"
		return a + b + c + d + d + c + b + a + "x"
	}
	if values, second := p.Read(name(2), nil, nil); values["a"] != "yy1" || values["d"] != "yy4" || second != nil ||
		!p.Fits(name(2)) {
		t.Errorf("a short name is read as %v and %v", values, second)
	}
	for _, name := range []string{name(24), strings.Repeat("y", 240) + "zx"} { // which fits, and which does not
		r := p.reading(name, nil, nil)
		if r.matchFrom(0, 0, true) || r.work < maxWork || r.work > maxWork+len(name) {
			t.Errorf("the work was %d, the limit is %d", r.work, maxWork)
		}
		_, _, err := ReadFirst([]*Pattern{p}, name)
		if err == nil || !strings.Contains(err.Error(), "in too many ways to try them all, since {d}, {c}, {b}, {a} stand "+
			"there more than once; give the file another name") {
			t.Errorf("it says %v", err)
		}
		if fits, err := p.matches(name); fits || err == nil {
			t.Errorf("it fits: %v, %v", fits, err)
		}
	}
}

// Patterns overlap exactly if some name fits both; placeholders that stand
// twice are taken for themselves each time.
func TestOverlapsAgainstAllNames(t *testing.T) {
	var names []string
	var extend func(name string)
	extend = func(name string) {
		names = append(names, name)
		if len(name) < 6 {
			for _, c := range "a/." {
				extend(name + string(c))
			}
		}
	}
	extend("")
	rapid.Check(t, func(t *rapid.T) {
		draw := func(label string) *Pattern {
			parts := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "/", ".", "{x}", "{y}", "*", "?"}), 0, 3).Draw(t, label)
			p, err := NewPattern(strings.Join(parts, ""))
			if err != nil || strings.Count(p.Text, "{x}") > 1 || strings.Count(p.Text, "{y}") > 1 {
				t.Skip("a placeholder twice")
			}
			return p
		}
		p, q := draw("p"), draw("q")
		want := slices.ContainsFunc(names, func(name string) bool {
			return p.Fits(name) && q.Fits(name)
		})
		if got := p.Overlaps(q); got != want || q.Overlaps(p) != want {
			t.Fatalf("%q and %q overlap: got %v, want %v", p.Text, q.Text, got, want)
		}
	})
}

func TestNaturalIsATotalOrder(t *testing.T) {
	want := []string{"", "1", "01", "2", "10", "a", "a1b", "a2", "a10", "a10b", "b"}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortFunc(got, Natural)
	if !slices.Equal(got, []string{"", "01", "1", "2", "10", "a", "a1b", "a2", "a10", "a10b", "b"}) {
		t.Errorf("sorted %q", got)
	}
	name := rapid.StringMatching(`[0-9ab]{0,6}`)
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := name.Draw(t, "a"), name.Draw(t, "b"), name.Draw(t, "c")
		if (Natural(a, b) == 0) != (a == b) || sign(Natural(a, b)) != -sign(Natural(b, a)) {
			t.Fatalf("%q and %q: %d and %d", a, b, Natural(a, b), Natural(b, a))
		}
		if Natural(a, b) < 0 && Natural(b, c) < 0 && Natural(a, c) >= 0 {
			t.Fatalf("%q < %q < %q, but not the first below the last", a, b, c)
		}
	})
}

func sign(n int) int { return max(-1, min(1, n)) }

func TestMatchingIsThatOfWorkflowFiles(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		fits          bool
	}{
		{"raw/{n}.txt", "raw/1.txt", true},
		{"raw/{n}.txt", "raw/a/1.txt", false},
		{"{a}-{a}", "x-x", true},
		{"{a}-{a}", "x-y", false},
		{"*.txt", "a.txt", true},
		{"?.txt", "ab.txt", false},
		{"a.txt", "a.txt", true},
		{"a", "ab", false},
	} {
		fits, err := Matching(c.pattern)
		if err != nil {
			t.Fatal(err)
		}
		if fit, err := fits(c.name); err != nil || fit != c.fits {
			t.Errorf("%q fits %q: %v, %v", c.name, c.pattern, fit, err)
		}
	}
	if _, err := Matching("x{"); err == nil {
		t.Error("a pattern that ends in a placeholder's beginning is taken")
	}
}

// Millions of files have the values of their jobs, and share them.
func TestFilesShareTheValuesOfTheirJobs(t *testing.T) {
	values, names := Binding{"a": "1", "b": "2"}, []string{"b", "a", "c"}
	if made := testing.AllocsPerRun(10, func() { values.Of(names) }); made > 0 {
		t.Errorf("%v copies", made)
	}
	if got := values.Of(names[:1]); len(got) != 1 || got["b"] != "2" {
		t.Errorf("the values of one name are %v", got)
	}
}
