package dispatch

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"fairway/internal/taskqueue"
)

// newSaver is a binding with one job that saves its state.
func newSaver(t *testing.T) *binding {
	b := newBinding(t)
	b.step(taskqueue.Submit{Run: 1, Jobs: []taskqueue.Job{{Name: "long", Step: "s", Checkpoint: "state/",
		Retry: taskqueue.Retry{Attempts: 1}}}})
	return b
}

// ends has the pilot tell of the end of what it was given first, and returns what is to be removed.
func (b *binding) ends(pilot taskqueue.PilotID, o taskqueue.Outcome,
	saved *taskqueue.WrittenFile) (e taskqueue.Effects) {
	b.t.Helper()
	a := b.begins(pilot)
	b.after(time.Hour)
	b.has[pilot] = b.has[pilot][1:]
	r := taskqueue.Result{Job: a.Job, Attempt: a.Attempt, Outcome: o}
	if saved != nil {
		r.Outputs = []taskqueue.WrittenFile{*saved}
	}
	return b.tells(pilot, r)
}

func (b *binding) tells(pilot taskqueue.PilotID, r taskqueue.Result) taskqueue.Effects {
	b.seq[pilot]++
	return b.step(taskqueue.Sync{Pilot: pilot, Seq: b.seq[pilot], LastAnswer: b.last[pilot], Hold: true,
		Ended: []taskqueue.Result{r}})
}

func savedAs(pfn string, sum uint32) *taskqueue.WrittenFile {
	return &taskqueue.WrittenFile{LFN: "state/", PFN: pfn, Size: 7, Adler32: sum}
}

// begunWith is the checkpoint that the next attempt of the pilot begins with.
func (b *binding) begunWith(pilot taskqueue.PilotID) string {
	b.t.Helper()
	if len(b.has[pilot]) != 1 || b.has[pilot][0].Checkpoint != "state/" {
		b.t.Fatalf("%s has %+v", pilot, b.has[pilot])
	}
	if in := b.has[pilot][0].Inputs; len(in) == 1 && in[0].File.LFN == "state/" && in[0].Access == taskqueue.AccessCopy {
		return in[0].PFN
	}
	return ""
}

// A job goes on where an attempt was that ended before its time, however often that is, and
// the folder that nobody begins with any more goes.
func TestAJobGoesOnFromItsCheckpoint(t *testing.T) {
	b := newSaver(t)
	b.sync("p", nil)
	if with := b.begunWith("p"); with != "" {
		t.Fatalf("the first attempt begins with %s", with)
	}
	for i, o := range []taskqueue.Outcome{taskqueue.Lost, taskqueue.OutOfTime, taskqueue.Ended, taskqueue.Lost,
		taskqueue.Lost, taskqueue.Lost, taskqueue.Lost, taskqueue.OutOfTime} {
		name, before := string(rune('a'+i)), string(rune('a'+i-1))
		e := b.ends("p", o, savedAs(name, uint32(i+1)))
		if i > 0 && !slices.Equal(e.Remove, []string{before}) || i == 0 && len(e.Remove) > 0 {
			t.Fatalf("%v: %v are removed", o, e.Remove)
		}
		if with := b.begunWith("p"); with != name {
			t.Fatalf("%v: the next attempt begins with %q", o, with)
		}
	}
	e := b.ends("p", taskqueue.Succeeded, nil)
	if j, _ := b.core.Job(taskqueue.NewJobID(1, 1)); j.State != taskqueue.Done || !slices.Equal(e.Remove, []string{"h"}) {
		t.Errorf("the job is %v, and %v are removed", j.State, e.Remove)
	}
}

// What an attempt says that does not count is removed, and what was kept stays, though its
// pilot says it again.
func TestCheckpointsAreFenced(t *testing.T) {
	b := newSaver(t)
	b.sync("p", nil)
	first := b.has["p"][0]
	b.ends("p", taskqueue.Lost, savedAs("a", 1))
	again := taskqueue.Result{Job: first.Job, Attempt: first.Attempt, Outcome: taskqueue.Lost,
		Outputs: []taskqueue.WrittenFile{*savedAs("a", 1)}}
	if e := b.tells("p", again); len(e.Remove) > 0 {
		t.Fatalf("%v are removed", e.Remove)
	}
	stranger := taskqueue.Result{Job: first.Job, Attempt: first.Attempt - 1, Outcome: taskqueue.Lost,
		Outputs: []taskqueue.WrittenFile{*savedAs("x", 2)}}
	if e := b.tells("p", stranger); !slices.Equal(e.Remove, []string{"x"}) {
		t.Fatalf("%v are removed", e.Remove)
	}
	if with := b.begunWith("p"); with != "a" {
		t.Errorf("the next attempt begins with %q", with)
	}
}

// An attempt that comes no further fails, and so does one that fails by itself; a checkpoint
// that is lost is begun without.
func TestCheckpointsDoNotHideFailures(t *testing.T) {
	b := newSaver(t)
	b.sync("p", nil)
	b.ends("p", taskqueue.OutOfTime, savedAs("a", 1))
	b.ends("p", taskqueue.OutOfTime, savedAs("b", 1))
	if j, _ := b.core.Job(taskqueue.NewJobID(1, 1)); j.State != taskqueue.Failed {
		t.Fatalf("a job that comes no further is %v", j.State)
	}
	b.step(taskqueue.RetryJobs{Jobs: []taskqueue.JobID{taskqueue.NewJobID(1, 1)}})
	b.sync("p", nil)
	if with := b.begunWith("p"); with != "b" {
		t.Fatalf("after a retry it begins with %q", with)
	}
	a := b.begins("p")
	b.has["p"] = nil
	lost := taskqueue.LostFile{File: a.Inputs[0].File, PFN: "b", Why: "is not there"}
	e := b.tells("p", taskqueue.Result{Job: a.Job, Attempt: a.Attempt, Outcome: taskqueue.InputLost,
		Lost: []taskqueue.LostFile{lost}})
	if with := b.begunWith("p"); with != "" || !slices.Equal(e.Remove, []string{"b"}) {
		t.Fatalf("it begins with %q, and %v are removed", with, e.Remove)
	}
	b.ends("p", taskqueue.Exited, nil)
	if j, _ := b.core.Job(taskqueue.NewJobID(1, 1)); j.State != taskqueue.Failed {
		t.Errorf("a job that exits is %v", j.State)
	}
}

// A job goes on where a free pilot has its checkpoint in the cache, also past many others, or
// beside a pilot of the same host that has.
func TestAJobGoesOnWhereItsCheckpointIs(t *testing.T) {
	for _, free := range []int{3, maxPlaces + 3} {
		for _, beside := range []bool{false, free == 3} {
			b := newSaver(t)
			b.sync("p", nil)
			copied := taskqueue.CachedFile{File: taskqueue.FileRef{LFN: "state/", Tag: taskqueue.Tag(b.has["p"][0].Attempt)},
				Size: 7}
			last := taskqueue.PilotID(fmt.Sprint("free", free))
			if beside {
				b.jobs("other", 0, 1)
				b.parks("busy", fmt.Sprint("host", free), copied)
			}
			for i := range free {
				b.parks(fmt.Sprint("free", i+1), fmt.Sprint("host", i+1))
			}
			for i := range free { // the first call is answered at once
				b.sync(taskqueue.PilotID(fmt.Sprint("free", i+1)), func(s *taskqueue.Sync) {
					if i+1 == free && !beside {
						s.CacheAdded = []taskqueue.CachedFile{copied}
					}
				})
			}
			b.leaves("p", savedAs("a", 1))
			if with := b.begunWith(last); with != "a" {
				t.Errorf("%d free pilots, beside another: %v: the job begins with %q", free, beside, with)
			}
		}
	}
}

// parks has a pilot that shares its cache with others of its host ask for jobs.
func (b *binding) parks(pilot, host string, cached ...taskqueue.CachedFile) {
	b.sync(taskqueue.PilotID(pilot), func(s *taskqueue.Sync) {
		s.Hello.Host, s.Hello.CacheDir, s.Hello.CacheSize = host, "/"+pilot, 1000
		s.CacheAdded = cached
	})
}

// leaves has a pilot end with the one attempt that it has.
func (b *binding) leaves(pilot taskqueue.PilotID, saved *taskqueue.WrittenFile) {
	a := b.has[pilot][0]
	b.has[pilot] = nil
	r := taskqueue.Result{Job: a.Job, Attempt: a.Attempt, Outcome: taskqueue.Lost,
		Outputs: []taskqueue.WrittenFile{*saved}}
	b.sync(pilot, func(s *taskqueue.Sync) { s.Ended, s.Leaving = []taskqueue.Result{r}, true })
}

// A copy of a checkpoint in a cache is not among the first that may go until the job is done, also
// after the server was started again.
func TestCheckpointsStayInCaches(t *testing.T) {
	c := newCrashing(t)
	c.step(taskqueue.SetRun{Run: taskqueue.Run{ID: 1, KeepGoing: true}})
	c.step(taskqueue.Submit{Run: 1, Jobs: []taskqueue.Job{{Name: "long", Step: "s", Checkpoint: "state/"}}})
	a := c.says()
	c.says(taskqueue.Result{Job: a.Job, Attempt: a.Attempt, Outcome: taskqueue.Lost,
		Outputs: []taskqueue.WrittenFile{*savedAs("a", 1)}})
	c.crash()
	a = c.says()
	p := c.core.fleet.pilots["p"]
	copied := taskqueue.FileRef{LFN: "state/", Tag: a.Inputs[0].File.Tag}
	p.copies.other.Set(copied, 7)
	if stale := c.core.placement.stale(p); len(stale) > 0 {
		t.Errorf("%v may go, although the job may need it again", stale)
	}
	c.says(taskqueue.Result{Job: a.Job, Attempt: a.Attempt, Outcome: taskqueue.Succeeded})
	p.copies.other.Set(copied, 7)
	if stale := c.core.placement.stale(p); !slices.Equal(stale, []taskqueue.FileRef{copied}) {
		t.Errorf("%v may go when the job is done", stale)
	}
}

// What is kept outlives the server, and what an attempt of the server before tells the next one
// counts.
func TestCheckpointsAreDurable(t *testing.T) {
	c := newCrashing(t)
	c.step(taskqueue.SetRun{Run: taskqueue.Run{ID: 1, KeepGoing: true}})
	c.step(taskqueue.Submit{Run: 1, Jobs: []taskqueue.Job{{Name: "long", Step: "s", Checkpoint: "state/"}}})
	for i := range 3 {
		a := c.says()
		if len(a.Inputs) != min(i, 1) || a.Checkpoint != "state/" {
			t.Fatalf("attempt %d begins with %+v", i+1, a)
		}
		if i > 0 && a.Inputs[0].PFN != string(rune('a'+i-1)) {
			t.Fatalf("attempt %d begins with %s", i+1, a.Inputs[0].PFN)
		}
		c.crash()
		saved := savedAs(string(rune('a'+i)), uint32(i+1))
		c.says(taskqueue.Result{Job: a.Job, Attempt: a.Attempt, Outcome: taskqueue.Lost,
			Outputs: []taskqueue.WrittenFile{*saved}})
		c.crash()
	}
}

// What the job begins with after a crash is there: the file that is removed is no longer named,
// also where an attempt has come no further.
func TestTheCheckpointOfACrashedServerIsThere(t *testing.T) {
	for _, o := range []taskqueue.Outcome{taskqueue.Ended, taskqueue.Lost, taskqueue.OutOfTime} {
		c := newCrashing(t)
		c.step(taskqueue.SetRun{Run: taskqueue.Run{ID: 1, KeepGoing: true}})
		c.step(taskqueue.Submit{Run: 1, Jobs: []taskqueue.Job{{Name: "long", Step: "s", Checkpoint: "state/"}}})
		for _, pfn := range []string{"a", "b"} { // with the same bytes
			a := c.says()
			c.says(taskqueue.Result{Job: a.Job, Attempt: a.Attempt, Outcome: o, Outputs: []taskqueue.WrittenFile{*savedAs(pfn,
				1)}})
			c.crash()
			c.now = c.now.Add(time.Hour)
		}
		if a := c.says(); len(a.Inputs) != 1 || c.removed[a.Inputs[0].PFN] {
			t.Errorf("%v: the next attempt begins with %+v, and %v are removed", o, a.Inputs, c.removed)
		}
	}
}

// A folder that comes with a failure of the command is not one to go on from.
func TestAFailureSavesNothing(t *testing.T) {
	b := newSaver(t)
	b.sync("p", nil)
	if e := b.ends("p", taskqueue.Exited, savedAs("a", 1)); !slices.Equal(e.Remove, []string{"a"}) {
		t.Errorf("%v are removed", e.Remove)
	}
}

// crashing is a Core with one pilot, whose records outlive it.
type crashing struct {
	t       *testing.T
	core    *Core
	now     time.Time
	durable map[string]taskqueue.Record
	removed map[string]bool
	seq     uint64
	config  taskqueue.Config
}

func newCrashing(t *testing.T) *crashing {
	c := &crashing{t: t, now: epoch, durable: map[string]taskqueue.Record{}, removed: map[string]bool{}}
	var e taskqueue.Effects
	c.core, e = New(c.config)
	c.keep(e)
	return c
}

func (c *crashing) keep(e taskqueue.Effects) {
	for _, r := range e.Persist {
		c.durable[durableName(r)] = r
	}
	for _, pfn := range e.Remove {
		c.removed[pfn] = true
	}
}

func (c *crashing) step(in taskqueue.Input) taskqueue.Effects {
	c.t.Helper()
	e, err := c.core.Step(c.now, in)
	if err != nil {
		c.t.Fatal(err)
	}
	c.keep(e)
	return e
}

// crash has another server load what was durable.
func (c *crashing) crash() {
	c.t.Helper()
	var records []taskqueue.Record
	for _, name := range sortedKeys(c.durable) {
		if r := c.durable[name]; r.Body != nil {
			records = append(records, r)
		}
	}
	var e taskqueue.Effects
	var err error
	if c.core, e, err = Load(c.config, records); err != nil {
		c.t.Fatal(err)
	}
	c.keep(e)
}

// says has the pilot tell all that it knows, and returns what it is given.
func (c *crashing) says(results ...taskqueue.Result) (a taskqueue.Assignment) {
	c.t.Helper()
	for _, a = range c.all(results...) {
	}
	return a
}

func (c *crashing) all(results ...taskqueue.Result) (given []taskqueue.Assignment) {
	c.t.Helper()
	c.seq++
	hello := &taskqueue.PilotInfo{Host: "h", Has: taskqueue.Resources{MilliCPUs: 2000}}
	e := c.step(taskqueue.Sync{Pilot: "p", Seq: c.seq, Full: true, Hello: hello, Ended: results})
	for _, r := range e.Replies {
		given = append(given, r.Answer.Run...)
	}
	return given
}

// saves has the pilot tell what its attempt has saved while it runs.
func (b *binding) saves(pilot taskqueue.PilotID, a taskqueue.Assignment, pfn string,
	version taskqueue.Version) (e taskqueue.Effects) {
	b.t.Helper()
	w := savedAs(pfn, uint32(version))
	w.Version = version
	b.seq[pilot]++
	return b.step(taskqueue.Sync{
		Pilot: pilot, Seq: b.seq[pilot], LastAnswer: b.last[pilot], Hold: true,
		Saved: []taskqueue.SavedState{{Of: taskqueue.AttemptRef{Job: a.Job, Attempt: a.Attempt}, File: *w}},
	})
}

// What a command saves while it runs is what the next attempt begins with, also where nothing is
// heard of the pilot any more; each state takes the place of the one before.
func TestStatesAreSavedWhileAJobRuns(t *testing.T) {
	b := newSaver(t)
	b.sync("p", nil)
	first := b.begins("p")
	for i, pfn := range []string{"a", "b"} {
		e := b.saves("p", first, pfn, taskqueue.Version(i+1))
		if i == 1 && !slices.Equal(e.Remove, []string{"a"}) || i == 0 && len(e.Remove) > 0 {
			t.Fatalf("%v are removed", e.Remove)
		}
	}
	if e := b.saves("p", first, "b", 2); len(e.Remove) > 0 || len(e.Persist) > 0 {
		t.Errorf("what is told again is recorded again: %+v", e)
	}
	if e := b.saves("p", first, "late", 1); !slices.Equal(e.Remove, []string{"late"}) {
		t.Errorf("%v are removed for an earlier state", e.Remove)
	}
	b.ends("p", taskqueue.Lost, nil)
	if with := b.begunWith("p"); with != "b" {
		t.Fatalf("the next attempt begins with %q", with)
	}
	if e := b.saves("p", first, "old", 3); !slices.Equal(e.Remove, []string{"old"}) {
		t.Errorf("%v are removed for an attempt that is over", e.Remove)
	}
	// It has come further though it ends with what it has saved last.
	second := b.begins("p")
	b.saves("p", second, "c", 1)
	b.ends("p", taskqueue.OutOfTime, savedAs("d", 1))
	if with := b.begunWith("p"); with != "d" {
		t.Fatalf("the next attempt begins with %q", with)
	}
	if e := b.ends("p", taskqueue.Succeeded, nil); !slices.Equal(e.Remove, []string{"d"}) {
		t.Errorf("%v are removed in the end", e.Remove)
	}
}

// Failures of a job that comes further each time are not added up.
func TestFailuresCountSinceTheLastSavedState(t *testing.T) {
	b := newBinding(t)
	b.step(taskqueue.Submit{Run: 1, Jobs: []taskqueue.Job{{Name: "long", Step: "s", Checkpoint: "state/",
		Retry: taskqueue.Retry{Attempts: 2}}}})
	pilot := taskqueue.PilotID("0") // each time another one, as the job avoids where it has failed
	for i := range 6 {
		b.sync(pilot, nil)
		if i > 0 {
			if with, want := b.begunWith(pilot), string(rune('a'+i-1)); with != want {
				t.Fatalf("attempt %d begins with %q and not %s", i+1, with, want)
			}
		}
		a := b.begins(pilot)
		if i < 5 {
			b.saves(pilot, a, string(rune('a'+i)), 1)
		}
		if j, _ := b.core.Job(taskqueue.NewJobID(1, 1)); j.State == taskqueue.Failed {
			t.Fatalf("it has failed after %d attempts", i)
		}
		b.ends(pilot, taskqueue.Exited, nil)
		b.after(time.Hour)
		pilot = taskqueue.PilotID(rune('1' + i))
	}
	if j, _ := b.core.Job(taskqueue.NewJobID(1, 1)); j.State != taskqueue.Failed {
		t.Errorf("a job that comes no further is %v", j.State)
	}
}
