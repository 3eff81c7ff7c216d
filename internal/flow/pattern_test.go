package flow

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
) *pattern {
	t.Helper()
	p, err := newPattern(text)
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
		values, _ := p.read(c.name, nil, nil)
		got := "no"
		if values != nil {
			var list []string
			for _, n := range p.names {
				if placeholderName.MatchString(n) {
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
		values := binding{"s": value.Draw(t, "s"), "t": value.Draw(t, "t")}
		p := mustPattern(t, rapid.SampledFrom([]string{"{s}", "up/{s}/{t}", "{s}.{t}/{s}"}).Draw(t, "pattern"))
		plain := strings.NewReplacer("{s}", values["s"], "{t}", values["t"]).Replace(p.text)
		if name, open := p.expand(values); name != plain || open {
			t.Fatalf("%s with %v is %q, open %v", p.text, values, name, open)
		}
		chosen := mustPattern(t, p.text+"/{free}/f")
		of, open := chosen.expand(values)
		if !open || logical.Unescape(of) != plain+"/*/f" {
			t.Fatalf("%s with %v is %q, open %v", chosen.text, values, of, open)
		}
		if free := value.Draw(t, "free"); !logical.Matches(of, plain+"/"+free+"/f") {
			t.Fatalf("%q does not match with %q", of, free)
		}
		other := binding{"s": value.Draw(t, "other s"), "t": value.Draw(t, "other t")}
		if name, _ := p.expand(other); name != plain && logical.Matches(of, name+"/x/f") {
			t.Fatalf("%q matches %q", of, name+"/x/f")
		}
	})
}

// What a pattern binds expands to the name again.
func TestMatchAndExpandAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPattern(t, "pattern")
		name := rapid.StringMatching(`[ab/.]{0,8}`).Draw(t, "name")
		values, second := p.read(name, nil, nil)
		if values == nil {
			return
		}
		if back, open := p.expand(values); back != name && !open || open && !logical.Matches(back, name) {
			t.Fatalf("%s binds %v in %q and gives %q", p.text, values, name, back)
		}
		if second != nil && maps.Equal(values, second) {
			t.Fatalf("%s has two readings of %q that are one: %v", p.text, name, values)
		}
	})
}

func drawPattern(t *rapid.T, label string) *pattern {
	parts := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "/", ".", "{x}", "{y}", "*", "?"}), 0, 6).Draw(t, label)
	p, err := newPattern(strings.Join(parts, ""))
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
	if values, second := p.read(name(2), nil, nil); values["a"] != "yy1" || values["d"] != "yy4" || second != nil ||
		!p.fits(name(2)) {
		t.Errorf("a short name is read as %v and %v", values, second)
	}
	for _, name := range []string{name(24), strings.Repeat("y", 240) + "zx"} { // which fits, and which does not
		r := p.reading(name, nil, nil)
		if r.matchFrom(0, 0, true) || r.work < maxWork || r.work > maxWork+len(name) {
			t.Errorf("the work was %d, the limit is %d", r.work, maxWork)
		}
		_, _, err := readFirst([]*pattern{p}, name)
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
		draw := func(label string) *pattern {
			parts := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "/", ".", "{x}", "{y}", "*", "?"}), 0, 3).Draw(t, label)
			p, err := newPattern(strings.Join(parts, ""))
			if err != nil || strings.Count(p.text, "{x}") > 1 || strings.Count(p.text, "{y}") > 1 {
				t.Skip("a placeholder twice")
			}
			return p
		}
		p, q := draw("p"), draw("q")
		want := slices.ContainsFunc(names, func(name string) bool {
			return p.fits(name) && q.fits(name)
		})
		if got := p.overlaps(q); got != want || q.overlaps(p) != want {
			t.Fatalf("%q and %q overlap: got %v, want %v", p.text, q.text, got, want)
		}
	})
}

func TestNaturalIsATotalOrder(t *testing.T) {
	want := []string{"", "1", "01", "2", "10", "a", "a1b", "a2", "a10", "a10b", "b"}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortFunc(got, natural)
	if !slices.Equal(got, []string{"", "01", "1", "2", "10", "a", "a1b", "a2", "a10", "a10b", "b"}) {
		t.Errorf("sorted %q", got)
	}
	name := rapid.StringMatching(`[0-9ab]{0,6}`)
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := name.Draw(t, "a"), name.Draw(t, "b"), name.Draw(t, "c")
		if (natural(a, b) == 0) != (a == b) || sign(natural(a, b)) != -sign(natural(b, a)) {
			t.Fatalf("%q and %q: %d and %d", a, b, natural(a, b), natural(b, a))
		}
		if natural(a, b) < 0 && natural(b, c) < 0 && natural(a, c) >= 0 {
			t.Fatalf("%q < %q < %q, but not the first below the last", a, b, c)
		}
	})
}

func sign(n int) int { return max(-1, min(1, n)) }

func TestDeclaredInputsNameFiles(t *testing.T) {
	_, err := Parse("t.yaml", []byte(`
workflow: w
inputs:
  a: {files: ["./raw/{s}_{n}.fq", "more/*.fq"], as: "x/{n}"}
steps:
  s: {each: "x/{n}", writes: "y/{n}", command: "true"}
`))
	if err == nil {
		t.Fatal("a wildcard that binds nothing cannot give {n}")
	}
	w, err := Parse("t.yaml", []byte(`
workflow: w
inputs:
  a: {files: ["./raw/{s}_{n}.fq", "more/{s}-{n}.fq"], as: "x/{s}/{n}"}
  b: {files: "sub*/z*.txt"}
  c: {url_list: urls, match: "{run}.root", as: "c/{run}"}
  d: {url_list: urls}
steps:
  s: {each: "x/{s}/{n}", writes: "y/{s}/{n}", command: "true"}
  t: {merge: ["c/{run}", "z*.txt"], writes: t/all, command: "true"}
`))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		input      int
		path, want string
	}{
		{0, "raw/a_7.fq", "x/a/7"},
		{0, "more/b-8.fq", "x/b/8"},
		{0, "raw/a7.fq", ""},
		{1, "sub1/z9.txt", "z9.txt"},
		{2, "https://h/p/12.root?sig=1", "c/12"},
		{2, "https://h/p/12.txt", ""},
		{3, "file:///p/12.txt", "12.txt"},
	} {
		lfn, fits, err := w.Inputs[c.input].LFN(c.path)
		if err != nil || lfn != c.want || fits != (c.want != "") {
			t.Errorf("%s: got %q %v %v, want %q", c.path, lfn, fits, err, c.want)
		}
	}
	if got := w.Inputs[0].Globs; !slices.Equal(got, []string{"raw/*_*.fq", "more/*-*.fq"}) {
		t.Errorf("globs %q", got)
	}
	got := w.Inputs[0].Order([]string{"more/a-1.fq", "raw/a_10.fq", "raw/a_9.fq", "raw/a_9.fq"})
	if !slices.Equal(got, []string{"raw/a_9.fq", "raw/a_10.fq", "more/a-1.fq"}) {
		t.Errorf("order %q", got)
	}
}

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
