package dispatch

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"fairway/internal/dispatch/records"
	"fairway/internal/explain"
	"fairway/internal/taskqueue"
)

// sharing is a server with runs of several people, of whom those of one scope share results.
type sharing struct {
	*crashing
	made map[string]int // how often a job was executed, by step
}

func newSharing(t *testing.T, config taskqueue.Config) *sharing {
	s := &sharing{newCrashing(t), map[string]int{}}
	s.config = config
	var e taskqueue.Effects
	s.core, e = New(config)
	s.keep(e)
	return s
}

// begin begins a run of a person with the two jobs of a workflow.
func (s *sharing) begin(user, scope string, noReuse bool) taskqueue.RunID {
	s.t.Helper()
	id := s.core.NextRun()
	s.step(taskqueue.SetRun{Run: taskqueue.Run{
		ID: id, Name: "w", Account: taskqueue.Account{Group: scope, User: user}, Scope: scope, NoReuse: noReuse,
		KeepGoing: true,
	}})
	step := "align " + user
	in := taskqueue.ExistingFile{LFN: "in", PFN: "data:" + user, Size: 1, Identity: "same", Tag: 1 << 62}
	s.step(taskqueue.Submit{
		Run: id, Files: []taskqueue.ExistingFile{in},
		Jobs: []taskqueue.Job{
			{Name: step, Step: step, Digest: "align", Reads: []string{"in"}, Writes: []taskqueue.Output{{LFN: "bam",
				Temporary: true}}},
			{Name: "call " + user, Step: "call", Digest: "call", Reads: []string{"bam"},
				Writes: []taskqueue.Output{{LFN: "vcf"}}},
		},
	})
	return id
}

// work has the pilot execute what it is given until that is nothing.
func (s *sharing) work() {
	s.t.Helper()
	given := s.all()
	for len(given) > 0 {
		var results []taskqueue.Result
		for _, a := range given {
			s.made[a.Step]++
			results = append(results, successOf(a))
		}
		given = s.all(results...)
	}
}

func successOf(a taskqueue.Assignment) taskqueue.Result {
	r := taskqueue.Result{Job: a.Job, Attempt: a.Attempt}
	for _, o := range a.Outputs {
		r.Outputs = append(r.Outputs, taskqueue.WrittenFile{
			LFN: o.LFN, Version: o.Version, PFN: physical(o.LFN, o.Version, a.Attempt), Size: 10,
		})
	}
	return r
}

// end ends a run and retires it.
func (s *sharing) end(id taskqueue.RunID, keep bool) {
	s.t.Helper()
	s.step(taskqueue.CompleteRun{Run: id})
	s.step(taskqueue.RetireRun{Run: id, Keep: keep})
}

// endInPieces ends a run of two jobs and retires it, job by job. The server is killed after each, and the last
// step leaves the records of the run to the caller.
func (s *sharing) endInPieces(id taskqueue.RunID) {
	s.t.Helper()
	s.step(taskqueue.CompleteRun{Run: id})
	for _, from := range []uint32{0, 1, 1, 2, 9} {
		if e := s.step(taskqueue.KeepResults{Run: id, From: from, Jobs: 1}); len(e.Persist) > 2 {
			s.t.Errorf("one job from %d on makes %d records", from, len(e.Persist))
		}
		s.crash()
		if err := s.core.verify(); err != nil {
			s.t.Error(err)
		}
	}
	if e := s.step(taskqueue.RetireRun{Run: id, Keep: true, Swept: true}); len(e.Persist) > 0 {
		s.t.Errorf("records of the run, or its results again: %v", e.Persist)
	}
	maps.DeleteFunc(s.durable, func(_ string, r taskqueue.Record) bool { return r.Run == id })
}

func (s *sharing) explain(id taskqueue.RunID, job string) string {
	s.t.Helper()
	j, ok := s.core.JobNamed(id, job)
	if !ok {
		s.t.Fatalf("run %d has no job %s", id, job)
	}
	e, _ := s.core.Explain(j)
	return strings.Join(explain.Lines(&e), "; ")
}

// A second run of the group takes what the first has made, while that is still there, when it was
// retired and kept, and across crashes; one of another group takes nothing and hears of nothing.
func TestRunsOfAGroupTakeEachOthersResults(t *testing.T) {
	for _, retired := range []string{"no", "at once", "in pieces"} {
		s := newSharing(t, taskqueue.Config{})
		ann := s.begin("ann", "lab", false)
		s.work()
		switch retired {
		case "at once":
			s.end(ann, true)
		case "in pieces":
			s.endInPieces(ann)
		}
		s.crash()
		bob := s.begin("bob", "lab", false)
		s.work()
		s.crash()
		if view, _ := s.core.Run(bob); view.Totals.Reused != 2 || s.made["align bob"] > 0 {
			t.Fatalf("retired %s: bob's run is %+v, and executed %v", retired, view.Totals, s.made)
		}
		for job, maker := range map[string]string{"align bob": "align ann", "call bob": "call ann"} {
			want := fmt.Sprintf("its result is that of job %s of run %d of ann", maker, ann)
			if got := s.explain(bob, job); !strings.Contains(got, want) {
				t.Errorf("retired %s: %q, and not %q", retired, got, want)
			}
		}
		cid := s.begin("cid", "other", false)
		s.work()
		if view, _ := s.core.Run(cid); view.Totals.Reused != 0 || s.made["align cid"] != 1 {
			t.Errorf("another group's run is %+v, and executed %v", view.Totals, s.made)
		}
		if text := s.explain(cid, "align cid"); strings.Contains(text, "ann") || strings.Contains(text, "bob") {
			t.Errorf("another group hears %q", text)
		}
		again := s.begin("dan", "lab", true)
		s.work()
		if view, _ := s.core.Run(again); view.Totals.Reused != 0 || s.made["align dan"] != 1 {
			t.Errorf("a run that is to take nothing is %+v, and executed %v", view.Totals, s.made)
		}
		if err := s.core.verify(); err != nil {
			t.Error(err)
		}
	}
}

// Two runs wait for the same job: one of them executes it, and the other takes the result. If the one
// that executes it fails or is cancelled, the other goes on by itself.
func TestTwinsAreExecutedOnce(t *testing.T) {
	for _, end := range []string{"succeeds", "fails", "is cancelled", "is stopped", "crashes"} {
		t.Run(end, func(t *testing.T) {
			s := newSharing(t, taskqueue.Config{})
			first, second := s.begin("ann", "lab", false), s.begin("bob", "lab", false)
			given := s.all()
			if len(given) != 1 {
				t.Fatalf("%d twins are executed", len(given))
			}
			leader := given[0]
			other := second
			if leader.Job.Run() == second {
				other = first
			}
			who := map[taskqueue.RunID]string{first: "ann", second: "bob"}
			if text := s.explain(other, "align "+who[other]); !strings.Contains(text, "the same job is assigned as job align "+
				who[leader.Job.Run()]) {
				t.Errorf("it waits, since %q", text)
			}
			switch end {
			case "fails":
				s.all(taskqueue.Result{Job: leader.Job, Attempt: leader.Attempt, Outcome: taskqueue.Exited, ExitCode: 127})
			case "is cancelled":
				s.step(taskqueue.Cancel{Jobs: []taskqueue.JobID{leader.Job}})
				s.all(taskqueue.Result{Job: leader.Job, Attempt: leader.Attempt, Outcome: taskqueue.Ended})
			case "is stopped":
				s.step(taskqueue.StopRun{Run: leader.Job.Run()})
				s.all(taskqueue.Result{Job: leader.Job, Attempt: leader.Attempt, Outcome: taskqueue.Ended})
			case "crashes":
				s.crash()
				s.now = s.now.Add(time.Hour)
			}
			if err := s.core.verify(); err != nil {
				t.Fatal(err)
			}
			s.work()
			view, _ := s.core.Run(other)
			if view.Totals.ByState[taskqueue.Done] != 2 || s.made["align ann"]+s.made["align bob"] != 1 {
				t.Errorf("the other run is %+v; executed: %v", view.Totals, s.made)
			}
		})
	}
}

// A result lives while a run that is kept names it; then as long as the group says, or the server if
// it has room; and nothing that goes is named.
func TestResultsGoWhenNobodyNamesThemAndTheirTimeIsOver(t *testing.T) {
	const day = 24 * time.Hour
	s := newSharing(t, taskqueue.Config{Retention: 10 * day})
	s.step(taskqueue.SetShares{Shares: taskqueue.Shares{Of: []taskqueue.Share{
		{Name: "lab", Weight: 1, Retention: 30 * day}, {Name: "open", Weight: 1}, {Name: "none", Weight: 1, Retention: -1},
	}}})
	keys := func(limit int, bytes int64) (list []string) {
		for _, r := range s.core.Forgettable(s.now, limit, bytes) {
			list = append(list, r.Job)
		}
		return list
	}
	var runs []taskqueue.RunID
	for _, scope := range []string{"lab", "open", "none"} {
		for _, user := range []string{"ann", "bob"} {
			id := s.begin(user+"-"+scope, scope, false)
			s.work()
			var named []string
			for _, r := range s.core.NamedBy(id, s.now) {
				named = append(named, strings.Fields(r.Job)[0])
			}
			if slices.Sort(named); !slices.Equal(named, []string{"align", "call"}) {
				t.Errorf("run %d names %v", id, named)
			}
			s.end(id, true)
			runs = append(runs, id)
		}
	}
	s.crash()
	check := func(when string, want ...string) {
		t.Helper()
		got := keys(100, 0)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v may go, and not %v", when, got, want)
		}
	}
	s.now = s.now.Add(400 * day)
	check("while all runs are kept")
	if keys := s.core.KeysNamedBy(runs[0]); len(keys) != 2 || len(keys[0]) != 2*len(identity{}) || keys[0] == keys[1] {
		t.Errorf("run %d names the keys %v", runs[0], keys)
	}
	for _, named := range s.core.NamedBy(runs[0], s.now) {
		if !slices.Equal(named.Others, []taskqueue.RunID{runs[1]}) || named.Until.Sub(s.now) != 30*day || !named.Promised {
			t.Errorf("without run %d: %+v", runs[0], named)
		}
	}
	for i := 0; i < len(runs); i += 2 {
		s.step(taskqueue.ReleaseRun{Run: runs[i]})
	}
	check("while one run of each group is kept")
	for i := 1; i < len(runs); i += 2 {
		s.step(taskqueue.ReleaseRun{Run: runs[i]})
	}
	s.crash()
	check("at once", "align ann-none", "call ann-none")
	s.now = s.now.Add(10 * day)
	check("after 10 days", "align ann-none", "align ann-open", "call ann-none", "call ann-open")
	s.now = s.now.Add(20*day - 1)
	check("after nearly 30 days", "align ann-none", "align ann-open", "call ann-none", "call ann-open")

	s.now = s.now.Add(-25 * day)
	if got := keys(1, 0); len(got) != 3 || strings.Contains(fmt.Sprint(got), "lab") {
		t.Errorf("beyond a limit of 1 may go %v", got)
	}
	if got := keys(100, 1000); len(got) != 4 || strings.Contains(fmt.Sprint(got), "lab") {
		t.Errorf("for want of room may go %v, and not what a group has promised to keep", got)
	}
	again := s.begin("eve", "lab", false)
	s.work()
	s.now = s.now.Add(400 * day)
	check("while a new run has taken some", "align ann-none", "align ann-open", "call ann-none", "call ann-open")
	s.end(again, false)
	s.now = s.now.Add(31 * day)
	check("after all", "align ann-lab", "align ann-none", "align ann-open", "call ann-lab", "call ann-none",
		"call ann-open")
	var all []string
	for _, r := range s.core.Forgettable(s.now, 0, 0) {
		all = append(all, r.Record.Key)
	}
	s.step(taskqueue.ForgetResults{Keys: all})
	if n := s.core.Results(); n > 0 {
		t.Errorf("%d results are left", n)
	}
}

// A pilot that says of a shared file that it is lost is believed for the run of its job only: the file
// stays for the others.
func TestThePilotOfOneRunLosesNoResultOfAnother(t *testing.T) {
	s := newSharing(t, taskqueue.Config{})
	ann := s.begin("ann", "lab", false)
	s.work()
	s.end(ann, true)
	bob := s.begin("bob", "lab", false)
	s.step(taskqueue.Submit{Run: bob, Jobs: []taskqueue.Job{{Name: "more", Step: "more", Digest: "m",
		Reads: []string{"vcf"}}}})
	a := s.says()
	if len(a.Inputs) != 1 {
		t.Fatalf("%+v was given out", a)
	}
	in := a.Inputs[0]
	lost := []taskqueue.LostFile{{File: in.File, PFN: in.PFN, Why: "is not there"}}
	s.all(taskqueue.Result{Job: a.Job, Attempt: a.Attempt, Outcome: taskqueue.InputLost, Lost: lost})
	s.crash()
	s.now = s.now.Add(time.Hour)
	s.work()
	view, _ := s.core.Run(bob)
	if view.Totals.ByState[taskqueue.Done] != 3 || s.removed[in.PFN] || s.made["call"] != 2 {
		t.Errorf("%+v, executed %v, the shared file removed: %v", view.Totals, s.made, s.removed[in.PFN])
	}
	s.end(bob, true)
	cid := s.begin("cid", "lab", false)
	s.work()
	if view, _ := s.core.Run(cid); view.Totals.Reused != 2 {
		t.Errorf("a third run is %+v", view.Totals)
	}
	s.step(taskqueue.LoseFiles{Files: []taskqueue.LostFile{{PFN: in.PFN, Why: "is not there"}}})
	if !s.removed[in.PFN] {
		t.Error("the server has looked, and the file counts as there")
	}
	if err := s.core.verify(); err != nil {
		t.Error(err)
	}
}

// A result that is kept takes little memory.
func TestMemoryOfKeptResults(t *testing.T) {
	const n = 20_000
	l := NewLoading(taskqueue.Config{})
	before := heapInUse()
	for i := range n {
		r := records.Result{
			Job: fmt.Sprintf("align/sample%06d", i), Digest: strings.Repeat("d", 32), Inputs: []records.Mark{{1}}, Made: 7,
			Scope: "group lab", Run: 3, Group: "lab", User: "ann", Runs: []taskqueue.RunID{3},
			Outputs: []output{{
				LFN: fmt.Sprintf("bam/sample%06d.bam", i), Size: 1 << 30, Adler32: 1, Tag: 1 << 33,
				PFN: fmt.Sprintf("state:storage/0123456789/bam/sample%06d.bam.v1.a30064771073", i),
			}},
		}
		if err := l.Add(taskqueue.Record{
			Table: records.TableResult, Key: fmt.Sprintf("%032x", i), Body: records.Append(nil, &r),
		}); err != nil {
			t.Fatal(err)
		}
	}
	each := (heapInUse() - before) / n
	t.Logf("%.0f bytes each", each)
	if core, _, err := l.End(); err != nil || core.Results() != n || each > 1000 {
		t.Errorf("%.0f bytes each; %v", each, err)
	}
}

// Jobs without outputs are there for what else they do: two of them with the same command are both executed,
// also in two runs at once.
func TestJobsWithoutOutputsAreNoTwins(t *testing.T) {
	s := newSharing(t, taskqueue.Config{})
	for range 2 {
		id := s.core.NextRun()
		s.step(taskqueue.SetRun{Run: taskqueue.Run{ID: id, Account: taskqueue.Account{User: "ann"}, Scope: "all",
			KeepGoing: true}})
		s.step(taskqueue.Submit{Run: id, Jobs: []taskqueue.Job{{Name: "a", Step: "ring", Digest: "d"}, {Name: "b",
			Step: "ring", Digest: "d"}}})
	}
	if given := s.all(); len(given) < 2 {
		t.Errorf("%d are executed at once", len(given))
	}
	s.work()
	if s.made["ring"] != 4 {
		t.Errorf("%d were executed", s.made["ring"])
	}
}
