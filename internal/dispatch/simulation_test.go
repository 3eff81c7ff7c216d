package dispatch

import (
	"container/heap"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestSimulation runs random workflows on random pilots with lost, repeated
// and reordered messages and crashes, and compares what comes out with a
// model that knows nothing of time. FAIRWAY_SEED repeats one run,
// FAIRWAY_SOAK makes more of them.
func TestSimulation(t *testing.T) {
	first, runs := uint64(time.Now().UnixNano()), 10
	if os.Getenv("FAIRWAY_SOAK") != "" {
		runs = 5000
	}
	if s := os.Getenv("FAIRWAY_SEED"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatalf("FAIRWAY_SEED: %v", err)
		}
		first, runs = n, 1
	}
	for i := range runs {
		seed := first + uint64(i)
		s := newSimulation(seed)
		if err := s.run(); err != nil {
			t.Fatalf("FAIRWAY_SEED=%d: %v\n%s", seed, err, s.tail())
		}
		if i%10 == 0 {
			again := newSimulation(seed)
			if err := again.run(); err != nil || again.digest() != s.digest() {
				t.Fatalf("FAIRWAY_SEED=%d: the same seed gave another run (%v)", seed, err)
			}
		}
	}
}

type simulation struct {
	rng     *rand.Rand
	config  Config
	sites   []Site
	core    *Core
	now     time.Time
	events  simEvents
	seq     int
	durable map[string]Record
	storage map[string]string // PFN to content
	pilots  []*simPilot
	born    int
	calm    bool // no more faults
	trace   []string

	last      map[string]Version // of each LFN, as the model has it
	content   map[FileRef]string // what each version must be
	jobs      map[string]*simJob
	lfns      []string
	committed map[string]AttemptID
	attempts  map[AttemptID]bool
	asked     map[string]Version // published last
	matched   map[string]bool
	acked     map[AttemptID][]string
	hash      [32]byte
	crashes   int
	steps     int
	turns     int
	wake      time.Time
}

type simJob struct {
	Job
	id     JobID
	reads  []FileRef
	writes []Version
	base   string // content is derived from it
}

type simEvent struct {
	at  time.Time
	seq int
	do  func() error
}

type simEvents []simEvent

func (h simEvents) Len() int { return len(h) }
func (h simEvents) Less(i, j int) bool {
	return h[i].at.Before(h[j].at) || h[i].at.Equal(h[j].at) && h[i].seq < h[j].seq
}
func (h simEvents) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *simEvents) Push(x any)   { *h = append(*h, x.(simEvent)) }
func (h *simEvents) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

// simPilot behaves as a pilot does: what it sends is repeated until an answer
// says that it was seen.
type simPilot struct {
	s       *simulation
	info    PilotInfo
	id      PilotID
	dead    bool
	polls   bool // asks now and then, and does not wait for the answer
	seq     uint64
	last    uint64
	full    bool
	queued  []*simAttempt
	running []*simAttempt
	ended   []simResult
	cache   map[FileRef]string
	cacheOf []FileRef
	changes []simChange
	used    int64
}

type simAttempt struct {
	a       Assignment
	dropped bool
}

type simResult struct {
	r   Result
	seq uint64 // of the first sync that carried it
}

type simChange struct {
	file FileRef
	seq  uint64
}

func newSimulation(seed uint64) *simulation {
	s := &simulation{
		rng: rand.New(rand.NewPCG(seed, 1)), now: epoch, durable: make(map[string]Record),
		storage: make(map[string]string), last: make(map[string]Version), content: make(map[FileRef]string),
		jobs: make(map[string]*simJob), committed: make(map[string]AttemptID), attempts: make(map[AttemptID]bool),
		asked: make(map[string]Version), matched: make(map[string]bool), acked: make(map[AttemptID][]string),
	}
	s.config = Config{
		Placement: Placement(s.rng.IntN(3)), Ahead: s.rng.IntN(4) - 1, MaxLosses: 50,
		MaxPassOver: time.Duration(1+s.rng.IntN(100)) * time.Second, MaxRegenerations: 1000,
	}
	s.sites = s.newSites()
	if s.rng.IntN(2) == 0 {
		s.weighSites()
	}
	return s
}

func (s *simulation) note(format string, args ...any) {
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

func (s *simulation) after(d time.Duration, do func() error) {
	s.seq++
	heap.Push(&s.events, simEvent{s.now.Add(d), s.seq, do})
}

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
	for range 1 + s.rng.IntN(4) {
		s.startAnyPilot()
	}
	for range 20 + s.rng.IntN(40) {
		s.after(s.ms(60_000), s.disturb)
	}
	if err := s.addFiles(); err != nil {
		return err
	}
	until := func(t time.Time) error { return s.loop(t) }
	if err := until(epoch.Add(2 * time.Minute)); err != nil {
		return err
	}
	return s.finish()
}

// finish lets everything end undisturbed, with all that failed retried.
func (s *simulation) finish() error {
	s.calm = true
	s.note("calm")
	s.startAnyPilot()
	s.startAnyPilot()
	for ended := []JobID{0}; len(ended) > 0; {
		if err := s.loop(s.now.Add(30 * time.Minute)); err != nil {
			return err
		}
		ended = ended[:0]
		for v := range s.core.Jobs(0) {
			if v.State == Failed && !forGood(v.Reason) || v.State == Cancelled {
				ended = append(ended, v.ID)
			}
		}
		if err := s.step(RetryJobs{ended}); err != nil {
			return err
		}
	}
	for v := range s.core.Jobs(0) {
		if v.State == Failed && forGood(v.Reason) || v.State == Blocked {
			continue // checked below
		}
		if v.State != Done {
			e, _ := s.core.Explain(v.ID)
			return fmt.Errorf("job %s ends %v: %s", v.Name, v.State, strings.Join(e.Lines, "; "))
		}
	}
	return s.checkStorage()
}

// forGood says whether a job would fail again for this reason: the pattern that
// it writes to matches what another job, or it itself, writes by name.
func forGood(reason string) bool {
	return strings.Contains(reason, "through the pattern") || strings.Contains(reason, "is reported twice")
}

// checkStorage looks for files that nobody removed, and for published files.
func (s *simulation) checkStorage() error {
	used := make(map[string]bool)
	for f := range s.core.files.All {
		for _, v := range f.versions {
			used[v.pfn] = true
		}
	}
	for a, pfns := range s.acked {
		for _, pfn := range pfns {
			if _, there := s.storage[pfn]; there && !used[pfn] {
				return fmt.Errorf("%s of attempt %s was left behind", pfn, attemptName(a))
			}
		}
	}
	for lfn, v := range s.asked {
		f := s.core.fileCalled(lfn)
		newest := f.newest()
		if newest.number != v && newest.writer != nil && newest.writer.outputFor(lfn).Publish {
			return fmt.Errorf("%s: version %d was published last, not %d", lfn, v, newest.number)
		}
	}
	return nil
}

// maxTurns bounds the turns of one run, which are some thousands to some tens
// of thousands: a run that does not end fails.
const maxTurns = 1_000_000

// loop runs until the time, with a Tick whenever the core wishes.
func (s *simulation) loop(until time.Time) error {
	for {
		if s.turns++; s.turns > maxTurns {
			return fmt.Errorf("no end after %d turns, at %v", maxTurns, s.now.Sub(epoch))
		}
		next := until
		if len(s.events) > 0 && s.events[0].at.Before(next) {
			next = s.events[0].at
		}
		if !s.wake.IsZero() && s.wake.Before(next) {
			s.now = later(s.now, s.wake)
			s.wake = time.Time{}
			if err := s.step(Tick{}); err != nil {
				return err
			}
			continue
		}
		s.now = later(s.now, next)
		if len(s.events) == 0 || s.events[0].at.After(until) {
			return nil
		}
		e := heap.Pop(&s.events).(simEvent)
		if err := e.do(); err != nil {
			return err
		}
	}
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

func (s *simulation) keep(records []Record) {
	for _, r := range records {
		if r.Body == nil {
			delete(s.durable, r.Table+"\x00"+r.Key)
		} else {
			s.durable[r.Table+"\x00"+r.Key] = r
		}
	}
}

func (s *simulation) step(in Input) error {
	e, err := s.core.Step(s.now, in)
	if errors.Is(err, ErrRefused) {
		s.note("%T refused: %v", in, err)
		return nil
	}
	if err != nil {
		return err
	}
	if s.chance(1) {
		return s.crash() // before anything was durable
	}
	s.keep(e.Persist)
	if err := s.check(); err != nil {
		return fmt.Errorf("after %T: %w", in, err)
	}
	if s.chance(1) {
		return s.crash() // before anything was let out
	}
	return s.letOut(in, e)
}

// check looks at the whole state, now and then, because that takes long.
func (s *simulation) check() error {
	if s.steps++; s.steps%7 == 0 {
		if err := s.core.verify(); err != nil {
			return err
		}
	}
	if s.steps%101 != 0 {
		return nil
	}
	loaded, _, err := Load(s.config, s.records())
	if err != nil {
		return err
	}
	if was, is := s.core.snapshot(), loaded.snapshot(); was != is {
		return fmt.Errorf("a Load makes something else: %s", firstDifference(was, is))
	}
	return nil
}

func (s *simulation) records() []Record {
	var list []Record
	for _, k := range sortedKeys(s.durable) {
		list = append(list, s.durable[k])
	}
	return list
}

func firstDifference(a, b string) string {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(x), len(y)) {
		if x[i] != y[i] {
			return fmt.Sprintf("%q, was %q", y[i], x[i])
		}
	}
	return "of another length"
}

func (s *simulation) letOut(in Input, e Effects) error {
	s.wake = e.WakeAt
	for _, r := range e.Persist {
		s.note("  %s %s %s", r.Table, r.Key, r.Body)
	}
	for _, x := range e.Events {
		s.note("  %v %s %s %s", x.Kind, x.Name, x.Pilot, x.Reason)
		if err := s.happened(x); err != nil {
			return err
		}
	}
	for _, r := range e.Replies {
		s.reply(r)
	}
	for _, x := range e.Start {
		s.submitPilots(x)
	}
	for _, p := range e.Publish {
		if err := s.publish(p); err != nil {
			return err
		}
	}
	for _, pfn := range e.Remove {
		s.note("  remove %s", pfn)
		core := s.core
		s.after(s.ms(2000), func() error {
			if core != s.core {
				return nil // the server that was to do it is gone
			}
			delete(s.storage, pfn)
			return s.step(Removed{pfn})
		})
	}
	return nil
}

func (s *simulation) publish(p Publish) error {
	s.note("  publish %s@%d", p.File.LFN, p.File.Version)
	got, there := s.storage[p.PFN]
	if !there || got != s.content[p.File] {
		return fmt.Errorf("%s@%d is published from %s, which holds %q instead of %q", p.File.LFN, p.File.Version, p.PFN, got, s.content[p.File])
	}
	if p.File.Version < s.asked[p.File.LFN] {
		return fmt.Errorf("%s@%d is published after version %d", p.File.LFN, p.File.Version, s.asked[p.File.LFN])
	}
	s.asked[p.File.LFN] = p.File.Version
	core := s.core
	s.after(s.ms(2000), func() error {
		if core != s.core {
			return nil
		}
		return s.step(Published{p.File})
	})
	return nil
}

// crash loses everything that is not durable.
func (s *simulation) crash() error {
	s.crashes++
	s.note("crash %d", s.crashes)
	core, e, err := Load(s.config, s.records())
	if err != nil {
		return err
	}
	s.core = core
	s.keep(e.Persist)
	s.wake = s.now
	s.learn()
	if err := s.core.verify(); err != nil {
		return fmt.Errorf("after Load: %w", err)
	}
	if err := s.letOut(nil, e); err != nil {
		return err
	}
	return s.describeSites()
}

// learn takes up commits whose events were lost in a crash.
func (s *simulation) learn() {
	for c := range s.core.allJobs {
		if c.state != Done || s.committed[c.name] != 0 {
			continue
		}
		s.committed[c.name] = c.committed
		for _, v := range s.core.matched[c.id] {
			s.matchedFile(s.jobs[c.name], v.ref())
		}
	}
}

func (s *simulation) matchedFile(j *simJob, f FileRef) {
	s.content[f] = s.contentOf(j, f.LFN)
	s.matched[f.LFN] = true
	if last, known := s.last[f.LFN]; !known || last < f.Version {
		s.last[f.LFN] = f.Version
	}
	if !slices.Contains(s.lfns, f.LFN) {
		s.lfns = append(s.lfns, f.LFN)
	}
}

// happened checks each commit, once for each job.
func (s *simulation) happened(x Event) error {
	if x.Kind != JobCommitted {
		return nil
	}
	j := s.jobs[x.Name]
	if first, again := s.committed[x.Name]; again {
		return fmt.Errorf("job %s was committed from %d and again", x.Name, first)
	}
	s.committed[x.Name] = x.Result.Attempt
	for _, f := range x.Files {
		want := s.contentOf(j, f.File.LFN)
		if f.Pattern != "" {
			s.matchedFile(j, f.File)
		}
		if f.PFN != "" && s.storage[f.PFN] != want {
			return fmt.Errorf("%s@%d from %s holds %q instead of %q", f.File.LFN, f.File.Version, f.PFN, s.storage[f.PFN], want)
		}
		if s.content[f.File] != want {
			return fmt.Errorf("%s@%d has another place than expected", f.File.LFN, f.File.Version)
		}
	}
	return nil
}

func digestOf(parts ...string) string {
	id := identityOf(parts...)
	return hex.EncodeToString(id[:4])
}

func (s *simulation) contentOf(j *simJob, lfn string) string { return digestOf(j.base, lfn) }

// disturb is one thing that a person or the world does.
func (s *simulation) disturb() error {
	switch n := s.rng.IntN(20); {
	case len(s.lfns) == 0 || n >= 8 && n < 10:
		return s.addFiles()
	case n < 8:
		return s.submit()
	case n < 13:
		s.startAnyPilot()
	case n < 14 && len(s.pilots) > 0:
		p := s.pilots[s.rng.IntN(len(s.pilots))]
		p.die("killed")
		if s.rng.IntN(2) == 0 {
			return s.step(PilotEnded{Launch: p.info.Launch})
		}
	case n < 16 && s.core.jobs.Len() > 1:
		return s.step(Cancel{[]JobID{s.anyJob()}})
	case n < 18 && s.core.jobs.Len() > 1:
		return s.step(RetryJobs{[]JobID{s.anyJob()}})
	case n < 19:
		return s.crash()
	}
	return nil
}

func (s *simulation) anyJob() JobID { return JobID(1 + s.rng.IntN(int(s.core.jobs.Len())-1)) }

func (s *simulation) addFiles() error {
	var in AddFiles
	for range 1 + s.rng.IntN(3) {
		lfn := fmt.Sprintf("raw%d", s.rng.IntN(6))
		if slices.ContainsFunc(in.Files, func(f ExistingFile) bool { return f.LFN == lfn }) {
			continue
		}
		s.born++
		identity := fmt.Sprint(s.born)
		in.Files = append(in.Files, ExistingFile{LFN: lfn, PFN: "data:" + lfn + "." + identity, Size: int64(1 + s.rng.IntN(100)), Identity: identity, Tag: 1<<63 | Tag(s.born)})
	}
	before := s.core
	if err := s.step(in); err != nil {
		return err
	}
	for _, f := range in.Files {
		if _, stepped := s.durable[TableFile+"\x00"+fileKey(FileRef{LFN: f.LFN, Version: s.nextExisting(f.LFN)})]; !stepped {
			if before == s.core {
				return fmt.Errorf("file %s was not added", f.LFN)
			}
			continue // lost in a crash
		}
		v := s.nextExisting(f.LFN)
		s.last[f.LFN] = v
		s.content[FileRef{LFN: f.LFN, Version: v}] = f.Identity
		s.storage[f.PFN] = f.Identity
		s.lfns = append(s.lfns, f.LFN)
	}
	return nil
}

func (s *simulation) nextExisting(lfn string) Version {
	if v, known := s.last[lfn]; known {
		return v + 1
	}
	return 0
}

// submit makes a few jobs of all kinds.
func (s *simulation) submit() error {
	saved := len(s.jobs)
	var sub Submit
	last := make(map[string]Version, len(s.last))
	for k, v := range s.last {
		last[k] = v
	}
	lfns := slices.Clone(s.lfns)
	var made []*simJob
	for i := range 1 + s.rng.IntN(6) {
		j := s.makeJob(saved+i, last, &lfns)
		made = append(made, j)
		sub.Jobs = append(sub.Jobs, j.Job)
	}
	if err := s.step(sub); err != nil {
		return err
	}
	if _, durable := s.durable[TableJob+"\x00"+jobKey(made[0].id)]; !durable {
		return nil
	}
	s.last, s.lfns = last, lfns
	for _, j := range made {
		s.enter(j)
	}
	return nil
}

func (s *simulation) enter(j *simJob) {
	s.jobs[j.Name] = j
	parts := []string{j.Name}
	for _, r := range j.reads {
		parts = append(parts, s.content[r])
	}
	j.base = digestOf(parts...)
	for i, w := range j.Writes {
		if !w.Pattern {
			s.content[FileRef{LFN: w.LFN, Version: j.writes[i]}] = s.contentOf(j, w.LFN)
		}
	}
}

func (s *simulation) makeJob(n int, last map[string]Version, lfns *[]string) *simJob {
	j := &simJob{Job: Job{Name: fmt.Sprintf("job%d", n), Step: fmt.Sprintf("step%d", s.rng.IntN(3))}, id: JobID(n + 1)}
	if s.rng.IntN(2) == 0 {
		j.Digest = "d"
	}
	j.Priority = s.rng.IntN(3) * s.rng.IntN(2)
	j.Needs = Resources{MilliCPUs: int64(500 * s.rng.IntN(4)), Memory: int64(100 * s.rng.IntN(5))}
	j.Retry = Retry{Attempts: 1 + s.rng.IntN(4)}
	if s.rng.IntN(4) == 0 {
		j.Site, j.WaitForData = "b", time.Duration(s.rng.IntN(20)-1)*time.Second
	}
	for range s.rng.IntN(4) {
		lfn := (*lfns)[s.rng.IntN(len(*lfns))]
		if !slices.Contains(j.Reads, lfn) {
			j.Reads = append(j.Reads, lfn)
			j.reads = append(j.reads, FileRef{LFN: lfn, Version: last[lfn]})
		}
	}
	for range 1 + s.rng.IntN(2) {
		o := Output{LFN: fmt.Sprintf("out%d", s.rng.IntN(30)), Publish: s.rng.IntN(2) == 0}
		switch s.rng.IntN(8) {
		case 0:
			o.LFN, o.Pattern = fmt.Sprintf("part%d.*", s.rng.IntN(3)), true
		case 1, 2:
			o.LFN, o.Storage, o.Publish = fmt.Sprintf("tmp%d", s.rng.IntN(30)), StorageCache, false
		case 3:
			if len(j.Reads) > 0 {
				o.LFN = j.Reads[s.rng.IntN(len(j.Reads))] // rewritten
			}
		}
		if slices.ContainsFunc(j.Writes, func(x Output) bool { return x.LFN == o.LFN }) {
			continue
		}
		v := Version(n + 1)
		if !o.Pattern {
			v = 1
			if was, known := last[o.LFN]; known {
				v = was + 1
			}
			if s.matched[o.LFN] {
				v = max(v, Version(n+1))
			}
			last[o.LFN] = v
			*lfns = append(*lfns, o.LFN)
		}
		j.Writes, j.writes = append(j.Writes, o), append(j.writes, v)
	}
	return j
}

func (s *simulation) startAnyPilot() {
	s.startPilot(simSites[s.rng.IntN(len(simSites))], fmt.Sprintf("launch%d", s.born+1))
}

func (s *simulation) startPilot(site, launch string) {
	s.born++
	p := &simPilot{s: s, id: PilotID(fmt.Sprintf("pilot%d", s.born)), full: true, cache: make(map[FileRef]string)}
	p.info = PilotInfo{
		Host: fmt.Sprintf("host%d", s.rng.IntN(2)), Site: site, Launch: launch,
		Has: Resources{MilliCPUs: int64(2000 * (1 + s.rng.IntN(2))), Memory: 1000},
	}
	if s.rng.IntN(3) > 0 {
		p.info.CacheDir = "/cache/" + string(p.id)
	}
	p.polls, p.info.CacheSize = s.rng.IntN(3) == 0, int64(s.rng.IntN(60))
	s.pilots = append(s.pilots, p)
	s.note("pilot %s starts on %s at %s", p.id, p.info.Host, p.info.Site)
	p.call()
}
