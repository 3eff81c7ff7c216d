package dispatch

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"fairway/internal/explain"
	"fairway/internal/taskqueue"
)

// farm is a Core with nodes that run jobs in steps of a tenth of a second. What a node is told it does.
type farm struct {
	*binding
	slots int
	took  time.Duration // by a job that succeeds
	bad   map[taskqueue.PilotID]taskqueue.Result
	fails map[string]bool // jobs that fail wherever they run
	runs  map[taskqueue.PilotID]map[taskqueue.AttemptID]time.Time
	tried map[string][]taskqueue.PilotID // where each job has ended
	lost  map[taskqueue.PilotID]int      // failures there
	said  []taskqueue.Event
	steps int
}

func newFarm(t *testing.T, nodes, slots int, took time.Duration) *farm {
	f := &farm{
		binding: newBinding(t), slots: slots, took: took, bad: map[taskqueue.PilotID]taskqueue.Result{},
		fails: map[string]bool{},
		runs:  map[taskqueue.PilotID]map[taskqueue.AttemptID]time.Time{}, tried: map[string][]taskqueue.PilotID{},
		lost: map[taskqueue.PilotID]int{},
	}
	for i := range nodes {
		f.come(taskqueue.PilotID(fmt.Sprintf("n%d", i)))
	}
	return f
}

func (f *farm) come(p taskqueue.PilotID) {
	f.runs[p] = map[taskqueue.AttemptID]time.Time{}
	f.tell(p, func(s *taskqueue.Sync) { s.Hello.Has.MilliCPUs = int64(1000 * f.slots) })
}

// tell is sync, and keeps what is said.
func (f *farm) tell(p taskqueue.PilotID, change func(*taskqueue.Sync)) {
	f.t.Helper()
	f.seq[p]++
	s := taskqueue.Sync{Pilot: p, Seq: f.seq[p], LastAnswer: f.last[p], Hold: true}
	if f.last[p] == 0 {
		s.Full, s.Hello = true, &taskqueue.PilotInfo{Host: string(p), Site: "far", Has: taskqueue.Resources{MilliCPUs: 1000}}
	}
	if change != nil {
		change(&s)
	}
	f.held[p] = s.Seq
	f.keep(f.step(s))
	if f.steps++; f.steps%verifyEvery > 0 {
		return
	}
	if err := f.core.verify(); err != nil {
		f.t.Fatal(err)
	}
}

// verifyEvery is after how many messages the Core is verified, which costs more than all of them.
const verifyEvery = 20

func (f *farm) keep(e taskqueue.Effects) {
	for _, event := range e.Events {
		if event.Kind == taskqueue.NodeDoubted || event.Kind == taskqueue.NodeTrusted {
			f.said = append(f.said, event)
		}
	}
}

// moment lets a tenth of a second pass.
func (f *farm) moment() {
	f.t.Helper()
	f.now = f.now.Add(100 * time.Millisecond)
	f.keep(f.step(taskqueue.Tick{}))
	for _, p := range sortedKeys(f.runs) {
		f.work(p)
	}
}

// work has a pilot tell what has ended there, and begin what it has room for.
func (f *farm) work(p taskqueue.PilotID) {
	f.t.Helper()
	var ended []taskqueue.Result
	f.has[p] = slices.DeleteFunc(f.has[p], func(a taskqueue.Assignment) bool {
		at, begun := f.runs[p][a.Attempt]
		r := taskqueue.Result{Job: a.Job, Attempt: a.Attempt}
		switch {
		case !begun && f.asked[a.Attempt]:
			r.Outcome = taskqueue.Ended
		case !begun || f.now.Before(at):
			return false
		default:
			delete(f.runs[p], a.Attempt)
			f.tried[a.Name] = append(f.tried[a.Name], p)
			if how, bad := f.bad[p]; bad || f.fails[a.Name] {
				if r.Outcome = how.Outcome; r.Outcome == taskqueue.Succeeded {
					r.Outcome, r.ExitCode = taskqueue.Exited, max(1, how.ExitCode)
				}
				f.lost[p]++
			}
		}
		ended = append(ended, r)
		return true
	})
	var started []taskqueue.AttemptRef
	for _, a := range f.has[p] {
		if _, begun := f.runs[p][a.Attempt]; !begun && len(f.runs[p]) < f.slots && !f.asked[a.Attempt] {
			took := f.took
			if _, bad := f.bad[p]; bad || f.fails[a.Name] {
				took = 0
			}
			f.runs[p][a.Attempt] = f.now.Add(took)
			started = append(started, taskqueue.AttemptRef{Job: a.Job, Attempt: a.Attempt})
		}
	}
	if len(ended)+len(started) > 0 || f.held[p] == 0 {
		f.tell(p, func(s *taskqueue.Sync) { s.Ended, s.Started = ended, started })
	}
}

// until runs until no job is left, for no longer than a time.
func (f *farm) until(most time.Duration) {
	f.t.Helper()
	begin := f.now
	for f.now.Sub(begin) < most {
		totals := f.core.Totals()
		if totals.ByState[taskqueue.Done]+totals.ByState[taskqueue.Failed]+totals.ByState[taskqueue.Blocked] == totals.Jobs {
			return
		}
		f.moment()
	}
	f.t.Fatalf("after %v: %+v, failures %v", most, f.core.Totals(), f.lost)
}

func (f *farm) count(s taskqueue.State) int { return f.core.Totals().ByState[s] }

// One node that ends each command at once, lacks a program, or has commands write nothing, takes few attempts
// and no job with it. It is named, and the others do the work in about the time that they need for it.
func TestOneBadNodeFailsNoJob(t *testing.T) {
	for _, nodes := range []int{4, 8} {
		for _, slots := range []int{1, 4} {
			for _, how := range []taskqueue.Result{{ExitCode: 3}, {ExitCode: notFound}, {Outcome: taskqueue.MissingOutput}} {
				name := fmt.Sprintf("%d nodes of %d slots, %s %d", nodes, slots, how.Outcome, how.ExitCode)
				t.Run(name, func(t *testing.T) {
					f := newFarm(t, nodes, slots, 10*time.Second)
					f.bad["n1"] = how
					jobs := max(100, 8*nodes*slots)
					f.jobs("s", 0, jobs)
					f.until(15 * time.Minute)
					if failed := f.count(taskqueue.Failed); failed > 0 || f.lost["n1"] > 8 {
						t.Errorf("%d jobs failed, and %d attempts", failed, f.lost["n1"])
					}
					if len(f.said) == 0 || f.said[0].Host != "n1" || f.said[0].Kind != taskqueue.NodeDoubted {
						t.Errorf("said: %v", f.said)
					}
					for _, said := range f.said {
						if said.Host != "n1" {
							t.Errorf("said of a good node: %v", said)
						}
					}
					for _, p := range f.core.Pilots() {
						if doubted := f.core.fleet.nodes.IsDoubted(f.core.fleet.hosts["n1"].health); (p.Doubted != "") !=
							(p.Pilot == "n1" && doubted) {
							t.Errorf("of the pilot %s is shown %q", p.Pilot, p.Doubted)
						}
					}
				})
			}
		}
	}
}

// Jobs that failed on a node that gets no more go first, wherever there is room: they tell whether the node is to
// blame. Here many other jobs suit the pilots better, as they read more of what is cached there.
func TestABadNodeIsFoundOutBeforeTheOthersAreDone(t *testing.T) {
	for _, slots := range []int{1, 4} {
		f := newFarm(t, 4, slots, time.Second)
		f.bad["n1"] = taskqueue.Result{ExitCode: 3}
		files, sub := taskqueue.AddFiles{Run: 1}, taskqueue.Submit{Run: 1}
		var cached []taskqueue.CachedFile
		for i := range 400 {
			lfn, size := fmt.Sprintf("in%d", i), int64(1000+i)
			files.Files = append(files.Files, taskqueue.ExistingFile{LFN: lfn, PFN: "/" + lfn, Identity: "1", Size: size})
			sub.Jobs = append(sub.Jobs, taskqueue.Job{Name: fmt.Sprintf("s%d", i), Step: "s",
				Reads: []string{lfn}})
			cached = append(cached, taskqueue.CachedFile{File: taskqueue.FileRef{LFN: lfn}, Size: size})
		}
		f.step(files)
		for i := range cached {
			cached[i].File.Tag = f.core.files.version(taskqueue.FileRef{Run: 1, LFN: cached[i].File.LFN}).tag
		}
		for _, p := range sortedKeys(f.runs) {
			f.tell(p, func(s *taskqueue.Sync) {
				s.Full, s.Hello = true, &taskqueue.PilotInfo{Host: string(p), Site: "far", CacheSize: 1 << 30,
					Has: taskqueue.Resources{MilliCPUs: int64(1000 * slots)}}
				if p != "n1" {
					s.CacheAdded = cached
				}
			})
		}
		f.step(sub)
		for range 50 {
			f.moment()
		}
		if len(f.said) != 1 || f.said[0].Host != "n1" || f.said[0].Kind != taskqueue.NodeDoubted {
			t.Errorf("%d slots: of 400 jobs %d were done, and it was said: %v", slots, f.count(taskqueue.Done), f.said)
		}
		f.until(15 * time.Minute)
		if failed := f.count(taskqueue.Failed); failed > 0 {
			t.Errorf("%d slots: %d jobs failed", slots, failed)
		}
	}
}

// The first pilot that comes is on a bad node, and others are expected: it does not use up the attempts of
// jobs before those are there.
func TestABadNodeThatComesFirst(t *testing.T) {
	f := newFarm(t, 0, 1, 10*time.Second)
	f.step(taskqueue.SetSite{Site: taskqueue.Site{Name: "far", MaxPilots: 4}})
	f.jobs("s", 0, 100)
	for i := range 4 {
		f.step(taskqueue.PilotSubmitted{Site: "far", Launch: fmt.Sprintf("n%d", i)})
	}
	f.bad["n0"] = taskqueue.Result{ExitCode: notFound}
	register := func(p taskqueue.PilotID) {
		f.runs[p] = map[taskqueue.AttemptID]time.Time{}
		f.tell(p, func(s *taskqueue.Sync) { s.Hello.Launch = string(p) })
	}
	register("n0")
	for range 100 {
		f.moment()
	}
	for _, p := range []taskqueue.PilotID{"n1", "n2", "n3"} {
		register(p)
	}
	f.until(15 * time.Minute)
	if failed := f.count(taskqueue.Failed); failed > 0 || f.lost["n0"] > 8 {
		t.Errorf("%d jobs failed, and %d attempts", failed, f.lost["n0"])
	}
}

// What fails wherever it runs fails soon, after its attempts, and no node is condemned for it: not where all
// jobs fail, and not where some do.
func TestJobsThatFailEverywhereCondemnNoNode(t *testing.T) {
	for _, every := range []int{1, 3} {
		for _, nodes := range []int{1, 2, 4, 12} {
			f := newFarm(t, nodes, 4, 10*time.Second)
			for i := range 120 {
				f.fails[fmt.Sprintf("s%d", i)] = i%every == 0
			}
			f.jobs("s", 0, 120)
			most := time.Minute
			if every > 1 {
				most = time.Duration(120/(4*nodes)+6) * f.took
			}
			f.until(most)
			if failed := f.count(taskqueue.Failed); failed != 120/every {
				t.Errorf("%d nodes: %d jobs failed of %d", nodes, failed, 120/every)
			}
			again := 0
			for name := range f.fails {
				if where := f.tried[name]; f.fails[name] && (len(where) != 3 || nodes > 1 && where[0] == where[1]) {
					again++ // there was no other one that got jobs
				}
			}
			if nodes > 1 && again > 6 {
				t.Errorf("%d nodes: %d jobs were tried again where they had failed", nodes, again)
			}
			if len(f.said) > 0 {
				t.Errorf("%d nodes: said %v", nodes, f.said)
			}
			for _, h := range f.core.fleet.nodes.Doubted() {
				if h.IsCondemned() {
					t.Errorf("%d nodes: %s is condemned: %s", nodes, h.Name, f.core.whyDoubted(h))
				}
			}
		}
	}
}

// A node that was mended is tried with one job after a while, and gets jobs again when that succeeds.
func TestAMendedNodeGetsJobsAgain(t *testing.T) {
	f := newFarm(t, 4, 1, 10*time.Second)
	f.bad["n1"] = taskqueue.Result{ExitCode: 3}
	f.jobs("s", 0, 400)
	for range 300 {
		f.moment()
	}
	before := f.lost["n1"]
	delete(f.bad, "n1")
	f.until(30 * time.Minute)
	done := 0
	for _, where := range f.tried {
		if slices.Contains(where, "n1") {
			done++
		}
	}
	if done-before < 50 {
		t.Errorf("the mended node did %d jobs", done-before)
	}
	if last := f.said[len(f.said)-1]; last.Kind != taskqueue.NodeTrusted || last.Host != "n1" {
		t.Errorf("said last: %v", last)
	}
}

// A job that could run on the bad node alone is tried there all the same.
func TestABadNodeThatAloneHasWhatAJobNeeds(t *testing.T) {
	f := newFarm(t, 3, 1, time.Second)
	f.bad["big"] = taskqueue.Result{ExitCode: 3}
	f.runs["big"] = map[taskqueue.AttemptID]time.Time{}
	f.tell("big", func(s *taskqueue.Sync) { s.Hello.Has.Memory = 1000 })
	f.jobs("s", 0, 50)
	for range 100 {
		f.moment()
	}
	sub := taskqueue.Submit{Run: 1, Jobs: []taskqueue.Job{{Name: "large", Step: "large",
		Needs: taskqueue.Resources{Memory: 500}}}}
	f.step(sub)
	f.until(5 * time.Minute)
	if where := f.tried["large"]; !slices.Equal(where, []taskqueue.PilotID{"big", "big", "big"}) {
		t.Errorf("it was tried on %v", where)
	}
}

// Explain names the node.
func TestExplainNamesTheBadNode(t *testing.T) {
	f := newFarm(t, 2, 1, time.Hour)
	f.bad["n0"] = taskqueue.Result{ExitCode: 3}
	f.jobs("s", 0, 10)
	for range 100 {
		f.moment()
	}
	for job := range f.core.Jobs(1, 0) {
		if job.State != taskqueue.Ready {
			continue
		}
		e, _ := f.core.Explain(job.ID)
		if text := strings.Join(explain.Lines(&e), "\n"); !strings.Contains(text, "n0") {
			t.Errorf("%s: %s", job.Name, text)
		}
	}
}
