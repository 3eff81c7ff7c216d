package dispatch

import (
	"container/heap"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"fairway/internal/taskqueue"
)

// market is users with jobs around a Core, and pilots that run them, in virtual time.
type market struct {
	rng     *rand.Rand
	config  taskqueue.Config
	shares  taskqueue.Shares
	core    *Core
	now     time.Time
	events  simEvents
	seq     int
	steps   int
	wake    time.Time
	durable map[string]taskqueue.Record
	pilots  []*trader
	users   map[taskqueue.RunID]*user
	started func(*user, taskqueue.Assignment, *trader) error // before the pilot begins it
	ended   int                                              // jobs
}

// user is an account with one run.
type user struct {
	taskqueue.Account
	run   taskqueue.RunID
	jobs  int                               // submitted
	files int                               // that they read
	got   time.Duration                     // slot-seconds of what has ended
	runs  map[taskqueue.AttemptID]time.Time // since when
	done  int
	last  time.Time // when it was last given a job
	wait  map[string]time.Time
	most  time.Duration // that a job has waited
}

// trader is a pilot of a market.
type trader struct {
	id    taskqueue.PilotID
	slots int
	seq   uint64
	last  uint64
	held  bool
	runs  map[taskqueue.AttemptID]taskqueue.Assignment
	ended []taskqueue.Result
	begun []taskqueue.AttemptRef
	cache map[taskqueue.FileRef]int64
	fresh []taskqueue.CachedFile
	full  bool
}

// outputSize is that of what each job writes, in bytes.
const outputSize = 1000

func newMarket(seed uint64, shares taskqueue.Shares, config taskqueue.Config) (*market, error) {
	m := &market{
		rng: rand.New(rand.NewPCG(seed, 7)), config: config, shares: shares, now: epoch,
		durable: make(map[string]taskqueue.Record), users: make(map[taskqueue.RunID]*user),
	}
	core, e := New(config)
	m.core = core
	m.keep(e.Persist)
	return m, m.step(taskqueue.SetShares{Shares: shares})
}

func (m *market) keep(records []taskqueue.Record) {
	for _, r := range records {
		key := fmt.Sprint(r.Table, " ", r.Run, " ", r.Key)
		if r.Body == nil {
			delete(m.durable, key)
			continue
		}
		r.Body = slices.Clone(r.Body)
		m.durable[key] = r
	}
}

func (m *market) step(in taskqueue.Input) error {
	e, err := m.core.Step(m.now, in)
	if err != nil {
		return err
	}
	m.keep(e.Persist)
	m.wake = e.WakeAt
	m.steps++
	for _, e := range e.Events {
		if e.Kind == taskqueue.JobCommitted {
			m.ended++
			m.users[e.Job.Run()].done++
		}
	}
	for _, r := range e.Replies {
		p := m.pilots[slices.IndexFunc(m.pilots, func(p *trader) bool { return p.id == r.Pilot })]
		if err := m.answered(p, r); err != nil {
			return err
		}
	}
	if err := m.checkOrder(); err != nil || m.steps%16 > 0 {
		return err
	}
	return errors.Join(m.core.CheckLiveness(), m.core.CheckBinding(), m.checkStored())
}

// checkOrder compares the order in which users take their turns with their ranks.
func (m *market) checkOrder() error {
	ranks, last, n := m.core.shares.Ranks(), 0, 0
	for s := range m.core.shares.InOrder {
		if ranks[s] < last {
			return fmt.Errorf("user %v of rank %d comes after rank %d", s.Account(), ranks[s], last)
		}
		last = ranks[s]
		n++
	}
	for s := range m.core.shares.All {
		if s.User() && s.Ready() > 0 {
			n--
		}
	}
	if n != 0 {
		return fmt.Errorf("%d users have no turn, or none is theirs", n)
	}
	return nil
}

func (m *market) after(d time.Duration, do func() error) {
	m.seq++
	heap.Push(&m.events, simEvent{m.now.Add(d), m.seq, do})
}

// until runs to a time, or to when stop says so.
func (m *market) until(at time.Time, stop func() bool) error {
	for !stop() {
		next := at
		if len(m.events) > 0 && m.events[0].at.Before(next) {
			next = m.events[0].at
		}
		if !m.wake.IsZero() && m.wake.Before(next) {
			m.now, m.wake = later(m.now, m.wake), time.Time{}
			if err := m.step(taskqueue.Tick{}); err != nil {
				return err
			}
			continue
		}
		m.now = later(m.now, next)
		if len(m.events) == 0 || m.events[0].at.After(m.now) {
			return nil
		}
		if err := heap.Pop(&m.events).(simEvent).do(); err != nil {
			return err
		}
	}
	return nil
}

func (m *market) addUser(a taskqueue.Account, files int, size int64) (*user, error) {
	u := &user{
		Account: a, run: m.core.NextRun(), files: files, wait: make(map[string]time.Time),
		runs: make(map[taskqueue.AttemptID]time.Time),
	}
	m.users[u.run] = u
	if err := m.step(taskqueue.SetRun{Run: taskqueue.Run{ID: u.run, Name: a.String(), Account: a,
		KeepGoing: true}}); err != nil {
		return nil, err
	}
	add := taskqueue.AddFiles{Run: u.run}
	for i := range files {
		lfn := fmt.Sprintf("%v/%d", a, i)
		add.Files = append(add.Files, taskqueue.ExistingFile{LFN: lfn, PFN: lfn, Size: size, Identity: "1", Tag: 1 << 62})
	}
	return u, m.step(add)
}

// submit gives a user so many jobs, each of which may read a file and have a priority.
func (m *market) submit(u *user, n, priorities int, needs taskqueue.Resources) error {
	sub := taskqueue.Submit{Run: u.run}
	for range n {
		u.jobs++
		j := taskqueue.Job{Name: fmt.Sprint(u.jobs), Step: "s", Priority: m.rng.IntN(priorities), Needs: needs}
		j.Writes = []taskqueue.Output{{LFN: "out" + j.Name}}
		if u.files > 0 {
			j.Reads = []string{fmt.Sprintf("%v/%d", u.Account, m.rng.IntN(u.files))}
		}
		u.wait[j.Name] = m.now
		sub.Jobs = append(sub.Jobs, j)
	}
	return m.step(sub)
}

func (m *market) addPilot(slots int) error {
	p := &trader{
		id: taskqueue.PilotID(fmt.Sprint("p", len(m.pilots))), slots: slots,
		runs:  make(map[taskqueue.AttemptID]taskqueue.Assignment),
		cache: make(map[taskqueue.FileRef]int64), full: true,
	}
	m.pilots = append(m.pilots, p)
	return m.call(p)
}

// call is a Sync of the pilot, with what it has to tell.
func (m *market) call(p *trader) error {
	p.seq++
	s := taskqueue.Sync{
		Pilot: p.id, Seq: p.seq, LastAnswer: p.last, Started: p.begun, Ended: p.ended, CacheAdded: p.fresh, Hold: true,
	}
	if p.full {
		has := taskqueue.Resources{MilliCPUs: int64(p.slots) * 1000, Memory: int64(p.slots) << 30}
		s.Full, s.Hello = true, &taskqueue.PilotInfo{Host: string(p.id), Site: "here", Has: has, CacheSize: 1 << 40}
		s.CacheAdded, s.Started = nil, nil
		for f, size := range p.cache {
			s.CacheAdded = append(s.CacheAdded, taskqueue.CachedFile{File: f, Size: size})
		}
		slices.SortFunc(s.CacheAdded, func(a, b taskqueue.CachedFile) int { return cmpText(a.File.LFN, b.File.LFN) })
		for id, a := range p.runs {
			s.Started = append(s.Started, taskqueue.AttemptRef{Job: a.Job, Attempt: id})
		}
		slices.SortFunc(s.Started, func(a, b taskqueue.AttemptRef) int { return int(int64(a.Attempt) - int64(b.Attempt)) })
	}
	p.held, p.begun = true, nil
	return m.step(s)
}

func cmpText(a, b string) int {
	if a < b {
		return -1
	}
	return 1
}

func (m *market) answered(p *trader, r taskqueue.Reply) error {
	if r.Seq != p.seq || r.Answer.Superseded {
		return nil
	}
	p.held, p.last, p.full = false, r.Answer.Number, r.Answer.NeedFull
	if !p.full {
		p.ended, p.fresh = nil, nil
	}
	for _, a := range r.Answer.Run {
		if _, ok := p.runs[a.Attempt]; ok {
			continue
		}
		p.runs[a.Attempt] = a
		if err := m.begin(p, a); err != nil {
			return err
		}
	}
	m.after(time.Millisecond, func() error {
		if p.held {
			return nil
		}
		return m.call(p)
	})
	return nil
}

// begin has the pilot run an assignment: for 10 to 30 s, and longer if its input is not there.
func (m *market) begin(p *trader, a taskqueue.Assignment) error {
	u := m.users[a.Job.Run()]
	if m.started != nil {
		if err := m.started(u, a, p); err != nil {
			return err
		}
	}
	u.last = m.now
	u.most = max(u.most, m.now.Sub(u.wait[a.Name]))
	p.begun = append(p.begun, taskqueue.AttemptRef{Job: a.Job, Attempt: a.Attempt})
	began := m.now
	u.runs[a.Attempt] = began
	var stage time.Duration
	var staged int64
	for _, in := range a.Inputs {
		if _, ok := p.cache[in.File]; !ok {
			stage += time.Duration(in.Size) // a byte is a nanosecond
			staged += in.Size
			p.cache[in.File] = in.Size
			p.fresh = append(p.fresh, taskqueue.CachedFile{File: in.File, Size: in.Size})
		}
	}
	run := 10*time.Second + time.Duration(m.rng.Int64N(int64(20*time.Second)))
	m.after(stage+run, func() error {
		delete(u.runs, a.Attempt)
		if _, ok := p.runs[a.Attempt]; !ok {
			return nil
		}
		delete(p.runs, a.Attempt)
		u.got += time.Duration(float64(m.now.Sub(began)) * float64(max(a.Needs.MilliCPUs, 1000)) / 1000)
		p.ended = append(p.ended, taskqueue.Result{Job: a.Job, Attempt: a.Attempt, Usage: taskqueue.Usage{
			StageInStart: began, Start: began.Add(stage), End: m.now, StageOutEnd: m.now, BytesStaged: staged,
		}, Outputs: []taskqueue.WrittenFile{{
			LFN: "out" + a.Name, Version: 1, PFN: fmt.Sprint("se/", a.Attempt), Size: outputSize,
		}}})
		return m.call(p)
	})
	return nil
}

// had is what a user has had of slots of one processor, with what runs now.
func (m *market) had(u *user) time.Duration {
	had := u.got
	for _, began := range u.runs {
		had += m.now.Sub(began)
	}
	return had
}

// crash loses the Core; what is durable stays, and all pilots send their whole state.
func (m *market) crash() error {
	var records []taskqueue.Record
	for _, r := range m.durable {
		records = append(records, r)
	}
	core, e, err := Load(m.config, records)
	if err != nil {
		return err
	}
	m.core = core
	m.keep(e.Persist)
	for _, p := range m.pilots {
		p.full, p.held = true, false
		if err := m.call(p); err != nil {
			return err
		}
	}
	return nil
}

// checkStored compares what users have stored with their files.
func (m *market) checkStored() error {
	sums := map[*share]int64{}
	for _, r := range m.core.runs.inOrder {
		sums[r.share] += m.core.StoredBytes(r.ID)
	}
	for s := range m.core.shares.All {
		if s.User() && s.Stored() != sums[s]+s.Kept() {
			return fmt.Errorf("user %v has stored %d bytes, and it counts %d", s.Account(), sums[s], s.Stored())
		}
	}
	return nil
}
