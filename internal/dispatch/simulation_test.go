package dispatch

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"fairway/internal/dispatch/records"
	"fairway/internal/explain"
	"fairway/internal/taskqueue"
	"fairway/lib/seed"
)

// TestSimulation runs random workflows on random pilots with lost, repeated
// and reordered messages, crashes, several runs side by side, and new runs of a changed
// workflow while attempts of earlier ones are still alive, and compares what comes out
// with a model that knows nothing of time. FAIRWAY_SOAK makes more runs.
func TestSimulation(t *testing.T) {
	first, runs := seed.Of(t), 2
	if os.Getenv("FAIRWAY_SOAK") != "" {
		runs = 5000
	}
	agreed := 0
	for i := range runs {
		seed := first + uint64(i)
		s := newSimulation(seed)
		if err := s.run(); err != nil {
			t.Fatalf("FAIRWAY_SEED=%d: %v\n%s", seed, err, s.tail())
		}
		agreed += s.agreed
		if i%10 == 0 {
			again := newSimulation(seed)
			if err := again.run(); err != nil || again.digest() != s.digest() {
				t.Fatalf("FAIRWAY_SEED=%d: the same seed gave another run (%v)", seed, err)
			}
		}
	}
	if agreed < runs {
		t.Errorf("the caches of pilots were compared %d times", agreed)
	}
}

// simulation is a server around a Core, its pilots and batch systems, in
// virtual time, and a model of what must come of it.
type simulation struct {
	rng     *rand.Rand
	config  taskqueue.Config
	sites   []taskqueue.Site
	core    *Core
	now     time.Time
	events  simEvents
	seq     int
	durable map[string]taskqueue.Record
	storage map[string]string            // PFN to content
	damaged map[string]string            // of it: what is wrong, as whoever reads it finds out
	made    map[string]taskqueue.FileRef // PFNs of outputs that were committed
	pilots  []*simPilot
	born    int
	calm    bool // no more faults
	shares  bool // runs of a group share results
	whole   bool // the digest is of all effects, and not of what the trace tells
	trace   []string

	models   map[taskqueue.RunID]*submission // also of runs that were retired
	live     []*submission                   // of the others
	stored   map[string]bool                 // PFNs of runs that are known no more
	kept     map[taskqueue.RunID][]string    // keys of results that runs name which were retired
	attempts map[taskqueue.AttemptID]bool    // that were given out
	ready    map[taskqueue.AttemptID]bool    // members of gangs that told so
	together int                             // members that began with the others
	acked    map[taskqueue.AttemptID][]string
	hash     [32]byte
	crashes  int
	agreed   int // times that the cache of a pilot was compared with what is known of it
	steps    int
	turns    int
	wake     time.Time
}

func newSimulation(seed uint64) *simulation {
	s := &simulation{
		rng: rand.New(rand.NewPCG(seed, 1)), now: epoch, durable: make(map[string]taskqueue.Record),
		storage: make(map[string]string), damaged: make(map[string]string), made: make(map[string]taskqueue.FileRef),
		stored: make(map[string]bool), attempts: make(map[taskqueue.AttemptID]bool),
		ready: make(map[taskqueue.AttemptID]bool),
		acked: make(map[taskqueue.AttemptID][]string), models: make(map[taskqueue.RunID]*submission),
		kept: make(map[taskqueue.RunID][]string),
	}
	s.config = taskqueue.Config{
		Placement: taskqueue.Placement(1 + s.rng.IntN(3)), Ahead: s.rng.IntN(4) - 1, MaxLosses: 50,
		MaxPassOver: time.Duration(1+s.rng.IntN(100)) * time.Second, MaxRegenerations: 1000,
	}
	s.shares = s.rng.IntN(3) > 0
	s.sites = s.newSites()
	if s.rng.IntN(2) == 0 {
		s.weighSites()
	}
	return s
}

func (s *simulation) note(format string, args ...any) {
	if s.whole {
		return
	}
	line := s.now.Sub(epoch).String() + " " + fmt.Sprintf(format, args...)
	s.trace = append(s.trace, line)
	if os.Getenv("FAIRWAY_TRACE") != "" {
		fmt.Println(line)
	}
	s.hash = sha256.Sum256(append(s.hash[:], line...))
}

func (s *simulation) tail() string {
	quiet := slices.DeleteFunc(s.trace, func(l string) bool {
		return strings.HasSuffix(l, "started=0 ended=0") || strings.HasSuffix(l, "run=0 end=0 full=false")
	})
	return strings.Join(quiet[max(0, len(quiet)-60):], "\n")
}

func (s *simulation) digest() [32]byte { return s.hash }

func (s *simulation) ms(n int) time.Duration {
	return time.Duration(s.rng.IntN(n)+1) * time.Millisecond
}

// chance is never true once faults have stopped.
func (s *simulation) chance(percent int) bool {
	n := s.rng.IntN(100)
	return !s.calm && n < percent
}

func (s *simulation) run() error {
	core, e := New(s.config)
	s.core = core
	s.keep(e.Persist)
	if err := s.describeSites(); err != nil {
		return err
	}
	if s.rng.IntN(2) == 0 {
		if err := s.step(taskqueue.SetShares{Shares: s.anyShares()}); err != nil {
			return err
		}
	}
	for range 1 + s.rng.IntN(4) {
		s.startAnyPilot()
	}
	for range 20 + s.rng.IntN(40) {
		s.after(s.ms(60_000), s.disturb)
	}
	for range s.rng.IntN(20) {
		s.after(s.ms(60_000), func() error { s.damage(); return nil })
	}
	for len(s.live) == 0 {
		if err := s.beginRun(nil); err != nil {
			return err
		}
	}
	if err := s.addFiles(s.live[0]); err != nil {
		return err
	}
	if err := s.loop(epoch.Add(2 * time.Minute)); err != nil {
		return err
	}
	return s.finish()
}

// accountOf is that of a run, which never changes.
func accountOf(run taskqueue.RunID) taskqueue.Account {
	return []taskqueue.Account{{}, {User: "ann"}, {Group: "lab", User: "bob"}, {Group: "lab", User: "ann"}}[run%4]
}

// scopeOf says with which runs a run shares results: all runs of a simulation do, or none.
func (s *simulation) scopeOf(run taskqueue.RunID) string {
	if !s.shares {
		return ""
	}
	return "of " + accountOf(run).Group
}

// theRun is what is said of a run whenever it begins or goes on.
func (s *simulation) theRun(id taskqueue.RunID, keepGoing bool) taskqueue.SetRun {
	return taskqueue.SetRun{Run: taskqueue.Run{ID: id, Account: accountOf(id), Scope: s.scopeOf(id), NoReuse: id%7 == 6,
		KeepGoing: keepGoing}}
}

func (s *simulation) anyShares() taskqueue.Shares {
	weight := func() int64 { return s.rng.Int64N(4) }
	return taskqueue.Shares{
		HalfLife: s.ms(100_000),
		Overtake: s.ms(100_000),
		Of: []taskqueue.Share{
			{Name: "ann", User: true, Weight: weight(), Limits: taskqueue.Quota{Running: []int{0, 3, 4, 6}[s.rng.IntN(4)]}},
			{Name: "lab", Weight: weight(), Of: []taskqueue.Share{{Name: "bob", User: true, Weight: weight()}}},
		},
	}
}

// finish lets everything end undisturbed, with all that failed retried.
func (s *simulation) finish() error {
	s.calm = true
	s.note("calm")
	for _, site := range simSites { // with room for any gang
		for i := range 3 {
			s.startPilotOn(fmt.Sprintf("host%d", i%2), site, fmt.Sprintf("launch%d", s.born+1), 4000)
		}
	}
	for _, m := range s.live {
		if err := s.step(s.theRun(m.run, true)); err != nil {
			return err
		}
	}
	for ended := []taskqueue.JobID{0}; len(ended) > 0; {
		if err := s.loop(s.now.Add(30 * time.Minute)); err != nil {
			return err
		}
		ended = ended[:0]
		for j := range s.core.jobs.all {
			if v := s.core.view(j); v.State == taskqueue.Failed && !forGood(v.Reason) || v.State == taskqueue.Cancelled {
				ended = append(ended, v.ID)
			}
		}
		if err := s.step(taskqueue.RetryJobs{Jobs: ended}); err != nil {
			return err
		}
	}
	for j := range s.core.jobs.all {
		v := s.core.view(j)
		if v.State == taskqueue.Failed && forGood(v.Reason) || v.State == taskqueue.Blocked {
			continue // checked below
		}
		if v.State != taskqueue.Done {
			e, _ := s.core.Explain(v.ID)
			return fmt.Errorf("job %s of run %d ends %v: %s", v.Name, v.ID.Run(), v.State, strings.Join(explain.Lines(&e), "; "))
		}
	}
	for _, m := range slices.Clone(s.live) {
		if err := s.step(taskqueue.CompleteRun{Run: m.run}); err != nil {
			return err
		}
	}
	if err := s.loop(s.now.Add(30 * time.Minute)); err != nil {
		return err
	}
	if err := s.checkStorage(); err != nil {
		return err
	}
	return s.retireAll()
}

// retireAll ends and retires all runs, one after the other: nothing of them stays but
// results, and no stored file that nobody names.
func (s *simulation) retireAll() error {
	for len(s.live) > 0 {
		m := s.live[0]
		if err := s.step(taskqueue.StopRun{Run: m.run}); err != nil {
			return err
		}
		if err := s.loop(s.now.Add(30 * time.Minute)); err != nil {
			return err
		}
		if err := s.retire(m); err != nil {
			return err
		}
		if len(s.live) > 0 && s.live[0] == m {
			return fmt.Errorf("run %d cannot be retired: %+v", m.run, s.core.runs.byID[m.run].view())
		}
	}
	if err := s.loop(s.now.Add(30 * time.Minute)); err != nil {
		return err
	}
	if err := s.releaseAll(); err != nil {
		return err
	}
	c := s.core
	fs := &c.files
	left := len(fs.matched) + len(fs.waiters) + len(fs.raisedTo) + len(fs.older) + len(fs.publishing) +
		len(c.fleet.attempts) +
		len(c.placement.delayed.jobs) + len(c.placement.reserved) + len(c.placement.expected) + c.jobs.totals.Jobs +
		c.jobs.ready + c.jobs.gangs + len(c.fleet.gangs) + len(c.placement.gatherings) +
		c.fleet.pace.Len() + len(c.files.outdated) + len(c.files.stillNamed) +
		len(c.jobs.twins.listed) + len(c.jobs.twins.more) + len(c.jobs.twins.behind)
	if left > 0 {
		return fmt.Errorf("%d things are left of runs that were retired", left)
	}
	for _, r := range s.records() {
		if r.Run != 0 {
			return fmt.Errorf("record %s %d %s is left of a run that was retired", r.Table, r.Run, r.Key)
		}
	}
	return s.checkStorage()
}

// releaseAll releases all runs that are kept, and has what nobody names forgotten: then no result that
// runs share is left.
func (s *simulation) releaseAll() error {
	for _, run := range slices.Sorted(maps.Keys(s.kept)) {
		delete(s.kept, run)
		if err := s.step(taskqueue.ReleaseRun{Run: run}); err != nil {
			return err
		}
	}
	for tries := 0; ; tries++ {
		var keys []string
		for _, r := range s.core.Unused() {
			keys = append(keys, r.Record.Key)
		}
		if len(keys) == 0 || tries == 10 {
			break
		}
		if err := s.step(taskqueue.ForgetResults{Keys: keys}); err != nil {
			return err
		}
	}
	if n := s.core.Results(); n > 0 {
		return fmt.Errorf("%d results are left that nobody names", n)
	}
	return s.loop(s.now.Add(30 * time.Minute))
}

// checkKept looks for results that runs name which are kept, and that are there no more.
func (s *simulation) checkKept() error {
	for run, keys := range s.kept {
		for _, text := range keys {
			key, err := records.ParseIdentity(text)
			if err != nil {
				return err
			}
			if r := s.core.journal.results.Of(key); r == nil || !slices.Contains(r.Runs, run) {
				return fmt.Errorf("result %s of run %d, which is kept, is lost", text, run)
			}
		}
	}
	return nil
}

// forGood reports whether a job would fail again for this reason: the pattern that
// it writes to matches what another job, or it itself, writes by name, or it
// chose the name of an output of another job.
func forGood(reason string) bool {
	return strings.Contains(reason, "through the pattern") || strings.Contains(reason, "is an output of both") ||
		strings.Contains(reason, "is reported twice")
}

// checkStorage looks for files that nobody removed, and for published files.
func (s *simulation) checkStorage() error {
	used := make(map[string]bool)
	for f := range s.core.files.all {
		for _, v := range f.versions {
			used[v.pfn] = true
			if v.pfn != "" && v.temporary() && v.readersKnown() && v.pins == 0 && !s.core.files.isShared(v) {
				return fmt.Errorf("%s@%d is temporary, and stored when all is done", f.lfn, v.number)
			}
		}
	}
	for pfn := range s.core.ResultFiles {
		used[pfn] = true
	}
	for a, pfns := range s.acked {
		for _, pfn := range pfns {
			if _, ok := s.storage[pfn]; ok && !used[pfn] && !s.stored[pfn] {
				return fmt.Errorf("%s of attempt %s was left behind", pfn, attemptName(a))
			}
		}
	}
	for _, m := range s.live {
		for lfn, v := range m.asked {
			f := s.core.runs.byID[m.run].files.Find(lfn)
			newest := f.newest()
			if newest == nil {
				continue // lost, and it cannot be made again
			}
			if newest.number != v && newest.writer != nil && newest.writer.outputFor(lfn).Publish {
				return fmt.Errorf("%s: version %d was published last, not %d", lfn, v, newest.number)
			}
		}
	}
	return nil
}
