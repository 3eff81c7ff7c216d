package flow

import (
	"slices"
	"strings"
	"testing"
	"time"

	"fairway/internal/flow/workflow"
)

func calibratedWorld(t *testing.T) *world {
	x := newWorld(t, calibrated, nil)
	x.produce = func(j workflow.NewJob, pattern string) []string {
		run := j.Command.Environment["run"]
		return []string{"data/" + run + ".mu.txt", "data/" + run + ".e.txt"}
	}
	x.arrive("start", "calib.txt")
	x.close("start")
	return x
}

// The calibration that run 1 writes is the one that run 2 reads, although the
// data of run 2 are ready first; what has nothing to do with it goes on.
func TestRewrittenFileFollowsTheOrderOfTheInputs(t *testing.T) {
	x := calibratedWorld(t)
	x.arrive("runs", "raw/1.raw", "raw/2.raw")
	x.wantSubmitted("repack/1", "count/1", "repack/2", "count/2")
	x.commit("repack/2")
	x.wantSubmitted()
	x.commit("repack/1")
	x.wantSubmitted("reco/1/e", "reco/1/mu", "gather/1", "alca/1", "reco/2/e", "reco/2/mu", "gather/2", "alca/2")
	want := []string{"r reco/1/e", "r reco/1/mu", "w alca/1", "r reco/2/e", "r reco/2/mu", "w alca/2"}
	if !slices.Equal(x.uses["calib.txt"], want) {
		t.Errorf("the calibration is used by\n%v, want\n%v", x.uses["calib.txt"], want)
	}
	x.close("runs")
	x.wantSubmitted("last")
	x.commitAll(first)
	if !x.finished {
		t.Errorf("not finished: %v", x)
	}
}

func TestHeldJobsSayWhy(t *testing.T) {
	x := calibratedWorld(t)
	x.arrive("runs", "raw/1.raw", "raw/2.raw")
	x.commit("repack/2")
	held := x.flow.Held(100)
	if len(held) == 0 || !slices.ContainsFunc(held, func(h Held) bool {
		return h.Job == "reco/2/e" && strings.Contains(h.Reason, "step alca may still make jobs that use calib.txt before it")
	}) {
		t.Errorf("held: %+v", held)
	}
}

// Each job is named once, in the order of what they wait for, and not more of them than asked for.
func TestHeldJobsAreNamedOnce(t *testing.T) {
	x := newWorld(t, `
workflow: w
inputs:
  raw: {files: "raw/{n}", as: "raw/{n}"}
  one: {files: one}
  two: {files: two}
steps:
  z: {each: "raw/{n}", reads: [two, one], writes: "z/{n}", command: "true"}
  a: {each: "raw/{n}", reads: two, writes: "a/{n}", command: "true"}
`, nil)
	x.arrive("raw", "raw/2", "raw/1")
	for limit, want := range map[int][]string{
		10: {"z/2", "z/1", "a/2", "a/1"}, 3: {"z/2", "z/1", "a/2"}, 0: nil,
	} {
		var got []string
		for _, h := range x.flow.Held(limit) {
			got = append(got, h.Job)
			if !strings.Contains(h.Reason, "nothing made one yet") && !strings.Contains(h.Reason, "nothing made two yet") {
				t.Errorf("%s is held: %s", h.Job, h.Reason)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("up to %d are %v, want %v", limit, got, want)
		}
	}
	x = newWorld(t, "workflow: w\ninputs: {raw: {files: raw/x}}\nsteps: {a: {each: x, writes: a, command: 'true'}}\n", nil)
	x.close("raw")
	x.close("raw")
	if held := x.flow.Held(10); len(held) != 1 || held[0].Job != "" {
		t.Errorf("an input without files holds %+v", held)
	}
}

func TestReaderBeforeAnyWriterIsReported(t *testing.T) {
	x := newWorld(t, `
workflow: w
inputs:
  raw: {files: "raw/{n}", as: "raw/{n}"}
steps:
  use: {each: "raw/{n}", reads: state.txt, writes: "use/{n}", command: "true"}
  make: {each: "use/{n}", rewrites: state.txt, command: "true"}
`, nil)
	x.arrive("raw", "raw/1", "raw/2")
	x.close("raw")
	x.commitAll(first)
	if x.finished || len(x.notes) == 0 ||
		!strings.Contains(x.notes[0], "it reads state.txt, and nothing writes it before") {
		t.Errorf("notes %q, finished %v", x.notes, x.finished)
	}
}

func TestFirstVersionByAPlainStep(t *testing.T) {
	x := newWorld(t, `
workflow: w
inputs:
  raw: {files: "raw/{n}", as: "raw/{n}"}
steps:
  init: {writes: state.txt, command: "true"}
  use: {each: "raw/{n}", reads: state.txt, writes: "use/{n}", command: "true"}
  update: {each: "use/{n}", reads: {old: state.txt}, rewrites: {new: state.txt}, command: "true"}
`, nil)
	x.step(Tick{})
	x.wantSubmitted("init")
	x.arrive("raw", "raw/1", "raw/2")
	x.close("raw")
	x.wantSubmitted("use/1", "update/1", "use/2", "update/2")
	x.commitAll(first)
	if !x.finished {
		t.Errorf("not finished: %v", x)
	}
}

func TestMergeByNumberIsEarlyAndInSequence(t *testing.T) {
	x := newWorld(t, `
workflow: w
inputs:
  raw: {watch: "raw/{n}", as: "raw/{n}"}
steps:
  a: {each: "raw/{n}", writes: "a/{n}", command: "true"}
  m: {merge: "a/{n}", files: 2, writes: "m/{merge}", command: "true"}
`, nil)
	x.arrive("raw", "raw/1", "raw/10", "raw/9", "raw/3")
	x.wantSubmitted("a/1", "a/10", "m/1", "a/9", "a/3", "m/2")
	x.arrive("raw", "raw/4")
	x.wantSubmitted("a/4")
	x.close("raw")
	x.wantSubmitted("m/3")
	if got := x.jobs["m/2"].Job.Reads; !slices.Equal(got, []string{"a/9", "a/3"}) {
		t.Errorf("m/2 takes %v", got)
	}
}

func TestMergeBySizeTakesTheSequence(t *testing.T) {
	x := newWorld(t, `
workflow: w
inputs:
  raw: {files: "raw/{n}", as: "raw/{n}"}
steps:
  a: {each: "raw/{n}", writes: "a/{n}", command: "true"}
  m: {merge: "a/{n}", size: 10B, files: 3, writes: "m/{merge}", command: "true"}
`, nil)
	sizes := map[string]int64{"a/1": 4, "a/2": 6, "a/3": 1, "a/4": 1, "a/5": 1, "a/6": 50, "a/7": 1}
	x.size = func(lfn string) int64 { return sizes[lfn] }
	x.arrive("raw", "raw/1", "raw/2", "raw/3", "raw/4", "raw/5", "raw/6", "raw/7")
	x.close("raw")
	x.submitted = nil
	for _, n := range []string{"7", "6", "5", "4", "2"} {
		x.commit("a/" + n)
	}
	x.wantSubmitted()
	x.commit("a/1")
	x.wantSubmitted("m/1")
	x.commit("a/3")
	x.wantSubmitted("m/2", "m/3", "m/4")
	for job, want := range map[string][]string{
		"m/1": {"a/1", "a/2"},
		"m/2": {"a/3", "a/4", "a/5"},
		"m/3": {"a/6"},
		"m/4": {"a/7"},
	} {
		if got := x.jobs[job].Job.Reads; !slices.Equal(got, want) {
			t.Errorf("%s takes %v, want %v", job, got, want)
		}
	}
	if x.commitAll(first); !x.finished {
		t.Error("not finished")
	}
}

func TestMergeByAge(t *testing.T) {
	x := newWorld(t, `
workflow: w
inputs:
  raw: {watch: "raw/{n}", as: "raw/{n}"}
steps:
  a: {each: "raw/{n}", writes: "a/{n}", command: "true"}
  m: {merge: "a/{n}", max_latency: 10m, writes: "m/{merge}", command: "true"}
  z: {merge: "m/{merge}", writes: z, command: "true"}
`, nil)
	x.arrive("raw", "raw/1", "raw/2", "raw/3")
	x.commit("a/3")
	due := x.now.Add(10 * time.Minute)
	if !x.wake.Equal(due) {
		t.Errorf("wakes at %v, want %v", x.wake, due)
	}
	x.now = x.now.Add(time.Minute)
	x.commit("a/1")
	x.submitted = nil
	x.now = due
	x.step(Tick{})
	x.wantSubmitted("m/1")
	if got := x.jobs["m/1"].Job.Reads; !slices.Equal(got, []string{"a/1", "a/3"}) {
		t.Errorf("m/1 takes %v", got)
	}
	x.reload()
	if !x.wake.IsZero() {
		t.Errorf("wakes at %v", x.wake)
	}
	x.commit("a/2")
	x.reload()
	x.close("raw")
	x.wantSubmitted("m/2", "z")
	if got := x.jobs["z"].Job.Reads; !slices.Equal(got, []string{"m/1", "m/2"}) {
		t.Errorf("z takes %v", got)
	}
	if x.commitAll(first); !x.finished {
		t.Error("not finished")
	}
}

// What went into a merge by its age counts no more for the size of the next, also when the run is
// loaded again in between.
func TestMergeBySizeBeginsAnewAfterOneByAge(t *testing.T) {
	for _, reload := range []bool{false, true} {
		x := newWorld(t, `
workflow: w
inputs:
  raw: {watch: "raw/{n}", as: "raw/{n}"}
steps:
  m: {merge: "raw/{n}", size: 10B, max_latency: 10m, writes: "m/{merge}", command: "true"}
`, nil)
		sizes := map[string]int64{"raw/1": 4, "raw/2": 6, "raw/3": 3, "raw/4": 1}
		x.size = func(lfn string) int64 { return sizes[lfn] }
		x.arrive("raw", "raw/1")
		x.now = x.now.Add(10 * time.Minute)
		x.step(Tick{})
		x.wantSubmitted("m/1")
		if reload {
			x.reload()
		}
		x.arrive("raw", "raw/2")
		x.arrive("raw", "raw/3")
		x.wantSubmitted()
		x.arrive("raw", "raw/4")
		x.wantSubmitted("m/2")
		if got := x.jobs["m/2"].Job.Reads; !slices.Equal(got, []string{"raw/2", "raw/3", "raw/4"}) {
			t.Errorf("m/2 takes %v", got)
		}
	}
}

// A job that is the first to use a file comes first, whenever what it reads arrives.
func TestFirstUseWaitsForItsInput(t *testing.T) {
	for _, key := range []string{"writes", "rewrites", "times: 2, rewrites"} {
		x := newWorld(t, `
workflow: w
inputs:
  raw: {files: "raw/{n}", as: "raw/{n}"}
  late: {files: late}
steps:
  begin: {reads: late, `+key+`: state, command: "true"}
  update: {each: "raw/{n}", rewrites: state, command: "true"}
`, nil)
		x.arrive("raw", "raw/1", "raw/2")
		x.close("raw")
		x.wantSubmitted()
		x.arrive("late", "late")
		x.close("late")
		if key == "times: 2, rewrites" {
			x.wantSubmitted("begin/1", "begin/2", "update/1", "update/2")
		} else {
			x.wantSubmitted("begin", "update/1", "update/2")
		}
		if x.commitAll(first); !x.finished {
			t.Errorf("%s: not finished: %v", key, x)
		}
	}
}

// A group of a merge is complete with the input file from which all its files come, while others
// may still arrive; and not where the files come from several.
func TestGroupIsCompleteWithItsInputFile(t *testing.T) {
	for sources, early := range map[string]bool{
		`["a/{n}.{k}", "b/{n}.{k}"]`: true,
		`"a/{n}.{k}"`:                true,
		`["a/{n}.{k}", "c/{n}.{k}"]`: false,
	} {
		x := newWorld(t, `
workflow: w
inputs:
  raw: {watch: "raw/{n}", as: "raw/{n}"}
  more: {watch: "more/{n}", as: "more/{n}"}
steps:
  a: {each: "raw/{n}", split: {records: 1, of: bytes=1}, writes: "a/{n}.{chunk}", command: "true"}
  b: {each: "raw/{n}", split: {records: 1, of: bytes=1}, writes: "b/{n}.{chunk}", command: "true"}
  c: {each: "more/{n}", split: {records: 1, of: bytes=1}, writes: "c/{n}.{chunk}", command: "true"}
  m: {merge: `+sources+`, by: n, writes: "m/{n}", command: "true"}
`, nil)
		x.size = func(string) int64 { return 2 }
		x.arrive("raw", "raw/1")
		if got := slices.Contains(x.submitted, "m/1"); got != early {
			t.Errorf("%s: submitted %v", sources, x.submitted)
		}
		x.close("raw")
		x.arrive("more", "more/2")
		x.close("more")
		if x.commitAll(first); !x.finished || x.jobs["m/1"].Job.Name == "" {
			t.Errorf("%s: not finished: %v", sources, x)
		}
	}
}

func TestSplitByCountingJob(t *testing.T) {
	x := newWorld(t, `
workflow: w
parameters: {per: 10}
inputs:
  raw: {files: "raw/{n}", as: "raw/{n}"}
steps:
  c:
    each: raw/{n}
    split: {records: "${per}", of: lines}
    writes: c/{n}.{chunk}
    command: sed -n "$first,${last}p" "$in" > "$out"
  m: {merge: "c/{n}.{chunk}", by: n, writes: "m/{n}", command: "true"}
  b:
    each: raw/{n}
    split: {records: 2, of: bytes=2}
    writes: b/{n}.{first}-{last}
    command: "true"
`, map[string]string{"per": "4"})
	x.produce = func(j workflow.NewJob, pattern string) []string {
		return []string{strings.Replace(pattern, "*", "9", 1)}
	}
	x.size = func(string) int64 { return 7 }
	x.arrive("raw", "raw/1", "raw/2")
	x.close("raw")
	x.wantSubmitted("c/1/records", "b/1/1", "b/1/2", "c/2/records", "b/2/1", "b/2/2")
	x.commit("c/2/records")
	x.wantSubmitted("c/2/1", "c/2/2", "c/2/3")
	x.commit("c/1/records")
	x.wantSubmitted("c/1/1", "c/1/2", "c/1/3", "m/1", "m/2")
	if env := x.jobs["c/1/3"].Command.Environment; env["first"] != "9" || env["last"] != "9" || env["chunk"] != "3" ||
		env["out"] != "c/1.3" {
		t.Errorf("the last chunk has %v", env)
	}
	if x.commitAll(first); !x.finished {
		t.Error("not finished")
	}
}
