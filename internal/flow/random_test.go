package flow

import (
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	"fairway/internal/flow/workflow"
	"fairway/internal/logical"
	"fairway/internal/taskqueue"
	"fairway/lib/seed"
)

// rounds is how many random workflows one test tries.
func rounds() int {
	if os.Getenv("FAIRWAY_SOAK") != "" {
		return 5_000
	}
	return 50
}

// generator writes random workflows. Every name is made of values without
// '.', so that patterns are never ambiguous.
type generator struct {
	r        *rand.Rand
	text     strings.Builder
	sources  [][]string // placeholders of what inputs and steps make
	folders  []string
	fresh    int
	arrivals []Input // files and closings, one at a time, in their order
	known    bool    // all names are known before
	ages     bool    // some merges are limited by age
}

func generate(r *rand.Rand, ages bool) *generator {
	g := &generator{r: r, known: true, ages: ages}
	g.text.WriteString("workflow: w\nstorage: temporary\ninputs:\n")
	for i := range 1 + r.IntN(2) {
		g.input(i)
	}
	g.text.WriteString("  calib: {files: \"c*\"}\nsteps:\n")
	late := r.IntN(2) == 0
	for i := range 2 + r.IntN(6) {
		g.step(i)
	}
	for _, in := range []Input{Closed{"calib"}, arrival("calib", "c1"), arrival("calib", "c0")} {
		at := 0
		if late {
			at = r.IntN(len(g.arrivals) + 1)
		}
		g.arrivals = slices.Insert(g.arrivals, at, in)
	}
	fixClosings(g.arrivals)
	return g
}

func (g *generator) input(i int) {
	names := []string{fmt.Sprintf("i%d", i)}
	if g.r.IntN(3) == 0 {
		names = append(names, "shared")
	}
	folder := fmt.Sprintf("in%d", i)
	fmt.Fprintf(&g.text, "  %s: {watch: \"%s\", as: \"%s\"}\n", folder, nameOf(folder, names), nameOf(folder, names))
	g.sources, g.folders = append(g.sources, names), append(g.folders, folder)
	for k := range g.r.IntN(6) {
		values := []string{fmt.Sprint(k + 8)}
		if len(names) == 2 {
			values = append(values, string(rune('x'+g.r.IntN(2))))
		}
		g.arrivals = append(g.arrivals, arrival(folder, folder+"/"+strings.Join(values, ".")))
	}
	g.r.Shuffle(len(g.arrivals), func(a, b int) { g.arrivals[a], g.arrivals[b] = g.arrivals[b], g.arrivals[a] })
	g.arrivals = append(g.arrivals, Closed{folder})
	fixClosings(g.arrivals)
}

// fixClosings moves each closing behind the files of its input.
func fixClosings(in []Input) {
	sort.SliceStable(in, func(a, b int) bool {
		_, x := in[a].(Closed)
		_, y := in[b].(Closed)
		return !x && y
	})
}

func nameOf(folder string, names []string) string {
	if len(names) == 0 {
		return folder + "/it"
	}
	return folder + "/{" + strings.Join(names, "}.{") + "}"
}

func (g *generator) step(i int) {
	folder := fmt.Sprintf("s%d", i)
	fmt.Fprintf(&g.text, "  %s:\n", folder)
	var names []string
	switch kind := g.r.IntN(11); {
	case kind < 4:
		names = g.each(1)
	case kind < 6:
		names = g.each(2)
	case kind < 8:
		names = g.merge()
	case kind < 9:
		names = g.split()
	case kind < 10:
		names = g.times()
	}
	if g.r.IntN(4) == 0 {
		fmt.Fprintf(&g.text, "    reads: c%d\n", g.r.IntN(2))
	}
	if g.r.IntN(5) == 0 {
		fmt.Fprintf(&g.text, "    rewrites: c%d\n", g.r.IntN(2))
	}
	if len(names) < 4 && g.r.IntN(4) == 0 {
		g.fresh++
		names = append(slices.Clone(names), fmt.Sprintf("f%d", g.fresh))
		g.known = false
	}
	fmt.Fprintf(&g.text, "    writes: \"%s\"\n    command: make \"$in\"\n", nameOf(folder, names))
	g.sources, g.folders = append(g.sources, names), append(g.folders, folder)
}

func (g *generator) pick() (string, []string) {
	i := g.r.IntN(len(g.sources))
	return nameOf(g.folders[i], g.sources[i]), g.sources[i]
}

func (g *generator) each(n int) []string {
	var names []string
	var patterns []string
	for range n {
		pattern, more := g.pick()
		patterns = append(patterns, "\""+pattern+"\"")
		for _, name := range more {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	fmt.Fprintf(&g.text, "    each: [%s]\n", strings.Join(patterns, ", "))
	return names
}

func (g *generator) merge() []string {
	pattern, names := g.pick()
	fmt.Fprintf(&g.text, "    merge: \"%s\"\n", pattern)
	var by []string
	for _, name := range names {
		if name != "merge" && g.r.IntN(3) == 0 {
			by = append(by, name)
		}
	}
	if len(by) > 0 {
		fmt.Fprintf(&g.text, "    by: [%s]\n", strings.Join(by, ", "))
	}
	limits := g.r.IntN(4)
	if limits&1 != 0 {
		fmt.Fprintf(&g.text, "    files: %d\n", 1+g.r.IntN(4))
	}
	if limits&2 != 0 {
		fmt.Fprintf(&g.text, "    size: %d\n", 1+g.r.IntN(40))
		g.known = false
	}
	if g.ages && g.r.IntN(2) == 0 {
		fmt.Fprintf(&g.text, "    max_latency: %ds\n", 1+g.r.IntN(20))
		limits |= 4
	}
	if limits != 0 {
		by = append(by, "merge")
	}
	return by
}

func (g *generator) split() []string {
	pattern, names := g.pick()
	unit := []string{"lines", "fastq", "bytes=3"}[g.r.IntN(3)]
	fmt.Fprintf(&g.text, "    each: \"%s\"\n    split: {records: %d, of: %s}\n", pattern, 1+g.r.IntN(4), unit)
	g.known = false
	return append(slices.Clone(names), "chunk")
}

func (g *generator) times() []string {
	fmt.Fprintf(&g.text, "    times: %d\n", 1+g.r.IntN(4))
	return []string{"number"}
}

func arrival(input, lfn string) Input {
	return Arrived{Input: input, Files: filesOf(lfn)}
}

// hashed is a number that depends on the text alone.
func hashed(text string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(text))
	return h.Sum32() >> 3
}

// produced are the files that a job chooses to write: up to three.
func produced(j workflow.NewJob, pattern string) []string {
	n := hashed(j.Job.Name + pattern)
	if strings.HasPrefix(pattern, logical.CountFolder) {
		return []string{strings.Replace(pattern, "*", fmt.Sprint(n%6), 1)}
	}
	var out []string
	for i := range n % 4 {
		out = append(out, strings.ReplaceAll(pattern, "*", fmt.Sprintf("v%d", i)))
	}
	return out
}

// run lets a workflow run with commits, arrivals and reloads in a random
// order; arrivals keep their own.
func (g *generator) run(t *testing.T, w *workflow.Workflow, r *rand.Rand, crashes bool) *world {
	t.Helper()
	x := newWorldOf(t, w, nil)
	x.produce = produced
	x.size = func(lfn string) int64 { return int64(hashed(lfn) % 20) }
	left := g.arrivals
	late := r.IntN(4) // how much later than commits files arrive
	for len(left)+len(x.pending) > 0 {
		if len(x.pending) == 0 || len(left) > 0 && r.IntN(1+late) == 0 {
			x.step(left[0])
			left = left[1:]
		} else {
			x.commit(x.pending[r.IntN(len(x.pending))])
		}
		if crashes && r.IntN(5) == 0 {
			x.reload()
		}
	}
	return x
}

// order gives the use of each file as runs of readers between writers.
func (x *world) order() string {
	var b strings.Builder
	for _, lfn := range slices.Sorted(maps.Keys(x.uses)) {
		fmt.Fprintf(&b, "%s:", lfn)
		var readers []string
		for _, use := range append(x.uses[lfn], "w") {
			if use[0] == 'r' {
				readers = append(readers, use)
				continue
			}
			slices.Sort(readers)
			fmt.Fprintf(&b, " %v %s", readers, use)
			readers = nil
		}
		b.WriteByte('\n')
	}
	for _, name := range slices.Sorted(maps.Keys(x.jobs)) {
		j := x.jobs[name].Job
		fmt.Fprintf(&b, "%s %s %v\n", name, j.Digest, j.Reads)
	}
	return b.String()
}

// Whatever the order of commits and wherever the run is loaded again, the
// same jobs are submitted, and each file is used in the same order.
func TestRandomWorkflowsDoNotDependOnTiming(t *testing.T) {
	r := seed.Source(t)
	tried, jobs, rewriting, numbered, told, early := 0, 0, 0, 0, 0, 0
	for range rounds() {
		g := generate(r, false)
		w, err := workflow.Parse("random.yaml", []byte(g.text.String()))
		if err != nil {
			continue
		}
		tried++
		reference := g.run(t, w, r, false)
		if !reference.finished && !stuck(reference) {
			t.Fatalf("not finished, held %+v\n%s", reference.flow.Held(10), g.text.String())
		}
		reference.checkReaders(g.text.String())
		told += len(reference.known)
		early += reference.early
		for range 4 {
			other := g.run(t, w, r, r.IntN(2) == 0)
			if got, want := other.order(), reference.order(); got != want {
				t.Fatalf("another order of commits gives other jobs\n%s\ngot\n%s\nwant\n%s", g.text.String(), got, want)
			}
			if other.finished != reference.finished {
				t.Fatalf("finished %v and %v\n%s", other.finished, reference.finished, g.text.String())
			}
		}
		if g.known {
			g.checkKnown(t, w, r, reference)
		}
		jobs += len(reference.jobs)
		if strings.Contains(g.text.String(), "rewrites") {
			rewriting++
		}
		if strings.Contains(g.text.String(), "times:") {
			numbered++
		}
	}
	t.Logf("%d workflows, %d rewriting files, %d with times, %d jobs, %d files whose readers were known, of %d while "+
		"inputs were open", tried, rewriting, numbered, jobs, told, early)
	if tried < rounds()/10 {
		t.Errorf("only %d of %d random workflows were right", tried, rounds())
	}
}

// checkKnown feeds everything without any commit: where all names are known
// before, all jobs are created, in one order.
func (g *generator) checkKnown(t *testing.T, w *workflow.Workflow, r *rand.Rand, reference *world) {
	t.Helper()
	for range 2 {
		x := newWorldOf(t, w, nil)
		for _, in := range g.arrivals {
			x.step(in)
			for len(x.pending) > 0 && r.IntN(2) == 0 {
				x.commit(x.pending[r.IntN(len(x.pending))])
			}
		}
		if !slices.Equal(x.submitted, reference.submitted) {
			t.Fatalf("known names, but another order:\n%v\n%v\n%s", x.submitted, reference.submitted, g.text.String())
		}
	}
}

// checkReaders looks whether it was told of all files, but those that are rewritten, that
// no further job reads them. That none does is checked with each job.
func (x *world) checkReaders(text string) {
	x.t.Helper()
	for _, name := range slices.Sorted(maps.Keys(x.jobs)) {
		for _, f := range x.event(x.jobs[name]).Files {
			w := x.jobs[name].Job.Writes[slices.IndexFunc(x.jobs[name].Job.Writes,
				func(o taskqueue.Output) bool { return o.LFN == f.Pattern || o.LFN == f.File.LFN })]
			if rewritten := strings.HasPrefix(f.File.LFN, "c"); x.finished && w.Temporary && x.known[f.File.LFN] == rewritten {
				x.t.Fatalf("the readers of %s, written by %s, are known: %v\n%s", f.File.LFN, name, !rewritten, text)
			}
		}
	}
}

func stuck(x *world) bool { return len(x.notes) > 0 }

// A Flow that is loaded again after each step does the same as one that is
// not, age-limited merges included.
func TestLoadedAgainItDoesTheSame(t *testing.T) {
	r := seed.Source(t)
	aged := 0
	for range rounds() / 4 {
		g := generate(r, true)
		w, err := workflow.Parse("random.yaml", []byte(g.text.String()))
		if err != nil {
			continue
		}
		one, two := newWorldOf(t, w, nil), newWorldOf(t, w, nil)
		one.produce, two.exists = produced, one.exists
		left := g.arrivals
		for len(left)+len(one.pending) > 0 {
			one.now = one.now.Add(time.Duration(r.IntN(8)) * time.Second)
			two.now = one.now
			var in Input = Tick{}
			switch {
			case len(one.pending) == 0 || len(left) > 0 && r.IntN(3) == 0:
				in, left = left[0], left[1:]
			case r.IntN(4) > 0:
				in = Happened{one.event(one.jobs[one.takePending(r.IntN(len(one.pending)))])}
			}
			a, b := one.step(in), two.step(in)
			if got, want := fmt.Sprintf("%+v", b), fmt.Sprintf("%+v", a); got != want {
				t.Fatalf("loaded again it differs at %+v\n%s\ngot  %s\nwant %s", in, g.text.String(), got, want)
			}
			two.reload()
		}
		for _, record := range one.records {
			if strings.Contains(string(record.Body), `"kind":"aged"`) {
				aged++
			}
		}
	}
	t.Logf("%d merges by age", aged)
}

func (x *world) takePending(i int) string {
	name := x.pending[i]
	x.pending = slices.Delete(x.pending, i, i+1)
	return name
}
