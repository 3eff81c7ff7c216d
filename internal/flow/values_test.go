package flow

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"fairway/internal/flow/pattern"
	"fairway/internal/flow/workflow"
	"fairway/lib/seed"
)

// arriveAt lets files come by the paths under which an input finds them.
func (x *world) arriveAt(input string, paths ...string) {
	x.t.Helper()
	at := slices.IndexFunc(x.w.Inputs, func(in *workflow.DeclaredInput) bool { return in.Name == input })
	for _, path := range x.w.Inputs[at].Order(paths) {
		lfn, fits, err := x.w.Inputs[at].LFN(path)
		if err != nil || !fits {
			x.t.Fatalf("%s: fits %v, %v", path, fits, err)
		}
		file := filesOf(lfn)[0]
		file.Path, file.Size = path, x.size(lfn)
		x.step(Arrived{Input: input, Files: []InputFile{file}})
	}
	x.close(input)
}

func (x *world) wantReads(job string, reads ...string) {
	x.t.Helper()
	j, ok := x.jobs[job]
	if !ok {
		x.t.Errorf("there is no job %s; there are %v", job, slices.Sorted(maps.Keys(x.jobs)))
		return
	}
	if !slices.Equal(j.Job.Reads, reads) {
		x.t.Errorf("job %s reads %q, not %q", job, j.Job.Reads, reads)
	}
}

// A chunk of sample S1_2 is none of sample S1, though its name could be.
func TestValuesAreNotReadBackFromNames(t *testing.T) {
	x := newWorld(t, `
workflow: w
inputs:
  raw: {files: "raw/{sample}.fq", as: "raw/{sample}.fq"}
  refs: {files: "ref/{sample}.ref", as: "ref/{sample}.ref"}
steps:
  part: {each: "raw/{sample}.fq", split: {records: 1, of: bytes=4}, writes: "p/{sample}_{chunk}.txt", command: x}
  mark: {each: "p/{sample}_{chunk}.txt", reads: "ref/{sample}.ref", writes: "q/{sample}_{chunk}.txt", command: x}
  renamed: {each: "p/{s}_{c}.txt", reads: "ref/{s}.ref", writes: "r/{s}_{c}.txt", command: x}
  all: {merge: "q/{sample}_{chunk}.txt", by: [sample], writes: "m/{sample}.txt", command: x}
`, nil)
	x.size = func(string) int64 { return 4 }
	x.arriveAt("raw", "raw/S1.fq", "raw/S1_2.fq")
	x.arriveAt("refs", "ref/S1.ref", "ref/S1_2.ref")
	x.commitAll(first)
	x.wantReads("mark/S1_2/1", "p/S1_2_1.txt", "ref/S1_2.ref")
	x.wantReads("renamed/S1_2/1", "p/S1_2_1.txt", "ref/S1_2.ref")
	x.wantReads("all/S1", "q/S1_1.txt")
	x.wantReads("all/S1_2", "q/S1_2_1.txt")
	if !x.finished {
		t.Error(x)
	}
}

// Names chosen by content have the values of their job; what is left is read.
func TestChosenNamesHaveTheValuesOfTheirJob(t *testing.T) {
	x := newWorld(t, `
workflow: w
inputs:
  raw: {files: "raw/{run}", as: "raw/{run}"}
steps:
  part: {each: "raw/{run}", writes: "p/{run}_{set}.txt", command: x}
  use: {each: "p/{run}_{set}.txt", reads: "raw/{run}", writes: "q/{run}/{set}", command: x}
`, nil)
	x.produce = func(_ workflow.NewJob, pattern string) []string {
		return []string{strings.Replace(pattern, "*", "a_b", 1)}
	}
	x.arriveAt("raw", "raw/1", "raw/1_2")
	x.commitAll(first)
	x.wantReads("use/1/a_b", "p/1_a_b.txt", "raw/1")
	x.wantReads("use/1_2/a_b", "p/1_2_a_b.txt", "raw/1_2")
}

// Where the data alone shows that a name has two readings, the run is told
// both and does not take one of them.
func TestChosenNameWithTwoReadingsIsRefused(t *testing.T) {
	x := newWorld(t, `
workflow: w
steps:
  part: {writes: "p/{set}_{part}.txt", command: x}
  use: {each: "p/{set}_{part}.txt", writes: "q/{set}/{part}", command: x}
`, nil)
	x.produce = func(workflow.NewJob, string) []string { return []string{"p/a_1.txt", "p/a_b_1.txt"} }
	x.step(Tick{})
	x.commitAll(first)
	x.wantReads("use/a/1", "p/a_1.txt")
	if x.finished || len(x.notes) == 0 || !strings.Contains(x.notes[0], "part=b_1, set=a") ||
		!strings.Contains(x.notes[0], "part=1, set=a_b") {
		t.Errorf("finished %v, notes %q", x.finished, x.notes)
	}
	if len(x.jobs) != 2 {
		t.Errorf("jobs %v", slices.Sorted(maps.Keys(x.jobs)))
	}
}

// Two readings of the name of an input's file are refused where they differ in
// values, and not where a folder or a wildcard makes them one.
func TestInputNameWithTwoReadingsIsRefused(t *testing.T) {
	for _, c := range []struct{ pattern, path, want string }{
		{"{a}_{b}", "x_y", "a=x, b=y"},
		{"{a}_{b}", "x_y_z", "error"},
		{"{a}_*", "x_y_z", "error"},
		{"*_*_{b}", "x_y_z_1", "error"},
		{"*_{b}.txt", "x_y", ""},
		{"*-*.{b}", "x-y-z.1", "b=1"},
		{"{a}/{a}_{b}", "x_y/x_y_z", "a=x_y, b=z"},
		{"{s}_{s}.txt", "x_y_x_y.txt", "s=x_y"},
	} {
		_, values, err := pattern.ReadFirst([]*pattern.Pattern{mustPattern(t, c.pattern)}, c.path)
		got := values.String()
		if err != nil {
			got = "error"
		}
		if got != c.want {
			t.Errorf("%s on %s: %s (%v), not %s", c.pattern, c.path, got, err, c.want)
		}
	}
}

// What a step takes of files that another pattern made.
func TestTakingByAnotherPattern(t *testing.T) {
	for _, c := range []struct {
		maker, taker string
		values       pattern.Binding
		want         string // values, "two", "no", or "refused"
	}{
		{"p/{a}_{b}", "p/{a}_{b}", pattern.Binding{"a": "1_2", "b": "3"}, "a=1_2, b=3"},
		{"p/{a}_{b}", "p/{x}_{y}", pattern.Binding{"a": "1_2", "b": "3"}, "x=1_2, y=3"},
		{"p/{a}_{b}", "p/{x}_3", pattern.Binding{"a": "1_2", "b": "3"}, "x=1_2"},
		{"p/{a}_{b}", "p/{x}_3", pattern.Binding{"a": "1", "b": "2_3"}, "no"},
		{"p/{a}_{b}", "p/{a}_3", pattern.Binding{"a": "1", "b": "2_3"}, "no"},
		{"p/{a}_{b}", "p/{x}", pattern.Binding{"a": "1", "b": "2"}, "x=1_2"},
		{"p/{a}_{b}", "p/{a}_*", pattern.Binding{"a": "1_1", "b": "2"}, "a=1_1"},
		{"p/{a}_{b}", "p/{a}*", pattern.Binding{"a": "1_1", "b": "2"}, "a=1_1"},
		{"p/{a}_{b}", "p/*_{b}", pattern.Binding{"a": "1_1", "b": "2"}, "b=2"},
		{"p/{a}_{b}", "p/*", pattern.Binding{"a": "1_1", "b": "2"}, ""},
		{"p/{a}_{b}_{c}", "p/{a}_{x}", pattern.Binding{"a": "1_1", "b": "2", "c": "3"}, "a=1_1, x=2_3"},
		{"p/{a}_{b}_{c}", "p/{x}_{y}", nil, "refused"},
		{"p/{a}_{b}", "p/{b}_{a}", nil, "refused"},
		{"p/{a}_{b}", "p/{b}", nil, "refused"},
		{"p/{a}_{b}", "p/{a}", nil, "refused"},
		{"p/{file}", "p/{name}.bam", pattern.Binding{"file": "a.b.bam"}, "name=a.b"},
		{"p/{file}", "p/{name}.bam", pattern.Binding{"file": "a.txt"}, "no"},
		{"p/{file}", "p/{name}.{kind}", pattern.Binding{"file": "a.txt"}, "kind=txt, name=a"},
		{"p/{file}", "p/{name}.{kind}", pattern.Binding{"file": "a.b.txt"}, "two"},
		{"p/{file}", "p/{x}{y}", nil, "refused"},
		{"p/{a}{b}", "p/{x}{y}", pattern.Binding{"a": "1", "b": "23"}, "x=1, y=23"},
		{"p/{a}", "p/{a}", pattern.Binding{"a": "*"}, "a=*"},
	} {
		taking := pattern.NewTaking(mustPattern(t, c.maker), mustPattern(t, c.taker))
		what, instead := taking.Problem()
		got := "refused"
		if what == "" {
			name, _ := taking.Maker.Expand(c.values)
			switch first, second := taking.Read(name, c.values); {
			case first == nil:
				got = "no"
			case second != nil:
				got = "two"
			default:
				got = first.String()
			}
		} else {
			t.Logf("%s; %s", what, instead)
		}
		if got != c.want {
			t.Errorf("%s takes %s of %s as %q, not %q", c.taker, c.values, c.maker, got, c.want)
		}
	}
}

// A job does not read a file that has the right name and was made with other values.
func TestFileOfOtherValuesIsNotRead(t *testing.T) {
	x := newWorld(t, `
workflow: w
inputs:
  raw: {files: "raw/{a}/{b}", as: "raw/{a}/{b}"}
  wanted: {files: "wanted/{a}/{b}", as: "wanted/{a}/{b}"}
steps:
  make: {each: "raw/{a}/{b}", writes: "m/{a}_{b}", command: x}
  use: {each: "wanted/{a}/{b}", reads: "m/{a}_{b}", writes: "u/{a}/{b}", command: x}
`, nil)
	x.arriveAt("raw", "raw/1/2_3")
	x.arriveAt("wanted", "wanted/1_2/3")
	x.commitAll(first)
	if x.finished || len(x.jobs) != 1 || !strings.Contains(strings.Join(x.notes, "\n"),
		"it was made with a=1, b=2_3, and not with a=1_2, b=3") {
		t.Errorf("finished %v, jobs %v, notes %q", x.finished, slices.Sorted(maps.Keys(x.jobs)), x.notes)
	}
}

func TestValuesOfParametersAreNoPatterns(t *testing.T) {
	x := newWorld(t, `
workflow: w
parameters: {dir: d, name: n}
inputs: {raw: {files: "${dir}/{s}.txt", as: "${name}/{s}"}}
steps:
  use: {each: "${name}/{s}", writes: "${name}.out/{s}", command: x}
`, map[string]string{"dir": "run?1", "name": "{a}*"})
	in := x.flow.Inputs()[0]
	if in.Globs[0] != `run\?1/*.txt` || in.Patterns[0] != "run?1/{s}.txt" {
		t.Errorf("globs %q, patterns %q", in.Globs, in.Patterns)
	}
	if _, fits, _ := in.LFN("runX1/a.txt"); fits {
		t.Error("the ? of a parameter stood for X")
	}
	if lfn, fits, err := in.LFN("run?1/a.txt"); lfn != "{a}*/a" || !fits || err != nil {
		t.Errorf("%q %v %v", lfn, fits, err)
	}
	x.arrive("raw", "{a}*/a")
	x.wantReads("use/a", "{a}*/a")
	if out := x.jobs["use/a"].Job.Writes[0]; out.LFN != "{a}*.out/a" || out.Pattern {
		t.Errorf("writes %+v", out)
	}
}

func TestPathsOfListsAreNoURLs(t *testing.T) {
	in := &workflow.DeclaredInput{
		URLList: "list", Paths: []*pattern.Pattern{mustPattern(t, "{x}.txt")}, Names: []*pattern.Pattern{mustPattern(t,
			"{x}.txt")},
	}
	for line, want := range map[string]string{
		"/data/a#1.txt":             "a#1.txt",
		"data/100%.txt":             "100%.txt",
		"/data/a?b.txt":             "a?b.txt",
		"/data/a:b.txt":             "a:b.txt",
		"https://h/a%231.txt?q#f":   "a#1.txt",
		"file:///data/b%20c.txt":    "b%20c.txt",
		"file:/data/b#c.txt":        "b#c.txt",
		"/store/data/Run#1/é 1.txt": "é 1.txt",
	} {
		if lfn, fits, err := in.LFN(line); lfn != want || !fits || err != nil {
			t.Errorf("%s: %q %v %v, not %q", line, lfn, fits, err, want)
		}
	}
}

// table is what a random run is compared with: samples with their lanes.
type table map[string][]string

const hostile = "_-. é01S"

func word(r *rand.Rand) string {
	letters := []rune(hostile)
	for {
		var s strings.Builder
		for range 1 + r.IntN(4) {
			s.WriteRune(letters[r.IntN(len(letters))])
		}
		if s.String() != "." && s.String() != ".." {
			return s.String()
		}
	}
}

// randomTable leaves out what would give two files one name: that is told.
func randomTable(r *rand.Rand) table {
	made, names := table{}, map[string]bool{}
	for range 1 + r.IntN(5) {
		sample := word(r)
		for range 1 + r.IntN(3) {
			lane := word(r)
			clash := names[sample+"_"+lane]
			for chunk := 1; chunk <= 2; chunk++ {
				clash = clash || names[fmt.Sprintf("%s_%s_%d", sample, lane, chunk)]
			}
			if clash {
				continue
			}
			names[sample+"_"+lane] = true
			for chunk := 1; chunk <= 2; chunk++ {
				names[fmt.Sprintf("%s_%s_%d", sample, lane, chunk)] = true
			}
			made[sample] = append(made[sample], lane)
		}
	}
	return made
}

// Whatever samples are called: splits, joins, merges and rewrites make the jobs
// that a table of the samples gives, and each reads the files of its values.
func TestJobsAreThoseOfATable(t *testing.T) {
	r := seed.Source(t)
	jobs := 0
	for range 5 * rounds() {
		table := randomTable(r)
		x := newWorld(t, `
workflow: w
inputs:
  raw: {files: "in/{sample}/{lane}.fq", as: "raw/{sample}_{lane}.fq"}
  refs: {files: "ref/{sample}.ref", as: "ref-{sample}"}
  state: {files: state}
steps:
  part: {each: "raw/{sample}_{lane}.fq", split: {records: 1, of: bytes=1}, writes: "p/{sample}_{lane}_{chunk}",
	command: x}
  pick: {each: "raw/{sample}_{lane}.fq", writes: "c/{sample}_{lane}_{kind}", command: x}
  join: {each: ["raw/{sample}_{lane}.fq", "ref-{sample}"], writes: "j/{sample}_{lane}", command: x}
  other: {each: ["p/{s}_{l}_{c}", "j/{s}_{l}"], reads: "ref-{s}", writes: "o/{s}_{l}_{c}", command: x}
  kind: {each: "c/{sample}_{lane}_{kind}", reads: "raw/{sample}_{lane}.fq", writes: "k/{sample}_{lane}_{kind}",
	command: x}
  all: {merge: "p/{sample}_{lane}_{chunk}", by: [sample], writes: "m/{sample}", command: x}
  turn: {each: "m/{sample}", reads: "ref-{sample}", rewrites: [state, "own-{sample}"], command: x}
`, nil)
		x.size = func(string) int64 { return 2 }
		x.produce = func(_ workflow.NewJob, pattern string) []string {
			return []string{strings.Replace(pattern, "*", "_1", 1), strings.Replace(pattern, "*", "1", 1)}
		}
		var raw, refs []string
		want := map[string][]string{} // what each job reads
		for sample, lanes := range table {
			refs = append(refs, "ref/"+sample+".ref")
			var parts []string
			for _, lane := range lanes {
				raw = append(raw, "in/"+sample+"/"+lane+".fq")
				both, name := sample+"/"+lane, sample+"_"+lane
				file := "raw/" + name + ".fq"
				want["join/"+both] = []string{file, "ref-" + sample}
				want["pick/"+both] = []string{file}
				for _, kind := range []string{"1", "_1"} {
					want["kind/"+both+"/"+kind] = []string{"c/" + name + "_" + kind, file}
				}
				for _, chunk := range []string{"1", "2"} {
					parts = append(parts, "p/"+name+"_"+chunk)
					want["part/"+both+"/"+chunk] = []string{file}
					want["other/"+both+"/"+chunk] = []string{"p/" + name + "_" + chunk, "j/" + name, "ref-" + sample}
				}
			}
			slices.Sort(parts)
			want["all/"+sample] = parts
			want["turn/"+sample] = []string{"m/" + sample, "ref-" + sample}
		}
		x.arriveAt("state", "state")
		x.arriveAt("refs", refs...)
		x.arriveAt("raw", raw...)
		x.reload()
		x.commitAll(r.IntN)
		if unclear(table) {
			if x.finished {
				t.Fatalf("%q: a name has two writers, and yet the run finished", table)
			}
			continue
		}
		for name, j := range x.jobs {
			reads := slices.Clone(j.Job.Reads)
			if strings.HasPrefix(name, "all/") {
				slices.Sort(reads)
			}
			if !slices.Equal(reads, want[name]) {
				t.Fatalf("%q: job %s reads %q, not %q", table, name, reads, want[name])
			}
		}
		if len(x.jobs) != len(want) || !x.finished {
			t.Fatalf("%q: %d jobs, not %d, finished %v, notes %q", table, len(x.jobs), len(want), x.finished, x.notes)
		}
		jobs += len(want)
	}
	t.Logf("%d jobs", jobs)
}

// unclear reports whether two lanes give one name to what they choose by content.
func unclear(table table) bool {
	names := map[string]bool{}
	for sample, lanes := range table {
		for _, lane := range lanes {
			for _, kind := range []string{"1", "_1"} {
				name := sample + "_" + lane + "_" + kind
				if names[name] {
					return true
				}
				names[name] = true
			}
		}
	}
	return false
}

func mustPattern(t testing.TB, text string) *pattern.Pattern {
	t.Helper()
	p, err := pattern.NewPattern(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
