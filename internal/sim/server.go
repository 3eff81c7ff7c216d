package sim

import (
	"cmp"
	"slices"
	"time"

	"fairway/internal/dispatch"
	"fairway/internal/sim/experiment"
	"fairway/internal/taskqueue"
)

// theRun is the one run that the TaskQueue of a simulation has.
const theRun taskqueue.RunID = 1

// server plays the part of the Fairway server around the core: it steps
// inputs, makes records durable, and only then lets the effects out. It can
// fail to write and it can crash; then it loads the core again.
type server struct {
	run    *run
	config taskqueue.Config
	core   *dispatch.Core // nil: crashed
	store  *memory
	pilots map[taskqueue.PilotID]*pilot
	tick   alarm // when the core asked for a Tick

	// inbox is what must not be lost and was not stepped yet, in the order in which it
	// happened: the server is away, stands still, or takes in what came before.
	inbox    []taskqueue.Input
	takingIn bool

	checked bool // after each step, that no job waits for what will not come, or at a pilot in vain
}

func newServer(r *run) *server {
	q := r.exp.TaskQueue
	s := &server{run: r, pilots: map[taskqueue.PilotID]*pilot{}}
	s.tick = newAlarm(&r.engine, s.ticks)
	s.config = taskqueue.Config{
		Attempts: q.Attempts, Backoff: q.Backoff, MaxBackoff: q.Backoff, WaitForData: q.WaitForData,
		Ahead: q.Ahead, Hold: q.Hold, MaxPassOver: q.PassOver, MaxLosses: q.MaxLosses, MaxRegenerations: q.MaxRegenerations,
	}
	s.config.RunMargin = -1 // simulated pilots do not tell what moves files
	s.config.Placement = taskqueue.Placements[q.Placement]
	s.config.Sites = taskqueue.SiteWeights(q.Sites)
	r.hold = cmp.Or(q.Hold, 25*time.Second)
	for _, site := range r.sites {
		r.hold = max(r.hold, site.Ask)
	}
	s.config.Hold, s.config.PilotLease = r.hold, cmp.Or(q.Lease, 2*r.hold+r.exp.Network.Patience)
	f := r.exp.Faults
	s.store = &memory{durable: !f.ServerDies.IsZero() || f.WriteFails > 0, tables: map[recordName][]byte{}}
	s.checked = f != experiment.FaultSpec{}
	return s
}

// begin starts the server, the pilots that run from the start, and then, when
// those have had the time to register, the workflow.
func (s *server) begin() {
	var effects taskqueue.Effects
	s.core, effects = dispatch.New(s.config)
	s.letOut(effects)
	effects, err := s.core.Step(s.run.instant(), taskqueue.SetRun{Run: taskqueue.Run{
		ID: theRun, Account: s.run.accountOf(theRun), KeepGoing: true,
	}})
	if err != nil {
		s.run.fail("the TaskQueue refused the run: %v", err)
	}
	s.letOut(effects)
	s.makeSitesKnown()
	s.submit(taskqueue.AddFiles{Run: theRun, Files: s.existing()})
	for _, site := range s.run.sites {
		if s.run.exp.Submission == experiment.Running {
			site.occupy()
		}
	}
	s.mayCrash()
	s.run.mayDamage()
	s.run.mayCut()
	s.run.mayFreeze()
	s.run.after(s.run.lead(), func() {
		s.run.submitted = s.run.now
		s.run.creator = newCreator(s.run,
			func(jobs []taskqueue.Job) { s.submit(taskqueue.Submit{Run: theRun, Jobs: jobs}) },
			func(files []taskqueue.ExistingFile) { s.submit(taskqueue.AddFiles{Run: theRun, Files: files}) },
		)
		s.run.creator.begin()
		s.run.beginRivals()
	})
}

// lead is how long before the first job the pilots start that are there
// already.
func (r *run) lead() time.Duration {
	if r.exp.Creation.Lead > 0 {
		return r.exp.Creation.Lead
	}
	lead := time.Second
	for _, s := range r.sites {
		lead = max(lead, 2*s.Ask)
	}
	return lead
}

func (s *server) makeSitesKnown() {
	for _, site := range s.run.sites {
		known := taskqueue.Site{
			Name: site.Name, MinPilots: site.Min, MaxPilots: site.Max, MinIdlePilots: site.MinIdle,
			Pilot: taskqueue.Resources{MilliCPUs: site.milliCPUs()}, Price: site.Price, QueueWait: site.Expects,
			Storage: site.element.name + ":",
		}
		if s.run.exp.Submission == experiment.Running && site.Started > 0 {
			known.MaxPilots = site.Started
		}
		s.submit(taskqueue.SetSite{Site: known})
	}
}

func (s *server) existing() []taskqueue.ExistingFile {
	var files []taskqueue.ExistingFile
	for _, f := range s.run.work.files {
		files = append(files, taskqueue.ExistingFile{LFN: f.lfn, PFN: s.run.pfnOf(f.lfn), Size: f.size, Identity: f.lfn})
	}
	return files
}

// receive takes a message of a pilot, if the server is there. One that waits for a server
// that stands still is lost if that dies.
func (s *server) receive(p *pilot, m taskqueue.Input) {
	core := s.core
	again := func() {
		if s.core == core {
			s.receive(p, m)
		}
	}
	if core == nil || s.waitsForThaw(again) {
		return
	}
	if p.unwanted {
		p.leave() // by an answer that it cannot miss: it would call again
		return
	}
	if s.pilots[p.id] == nil {
		s.pilots[p.id] = p
	}
	s.step(m)
}

// submit hands over an input that must not be lost: if the server is away or stands still
// it finds it when it goes on. None overtakes another.
func (s *server) submit(in taskqueue.Input) {
	s.inbox = append(s.inbox, in)
	s.takeIn()
}

// takeIn steps what was handed over, if the server is there.
func (s *server) takeIn() {
	if s.takingIn || len(s.inbox) == 0 || s.core == nil || s.waitsForThaw(s.takeIn) {
		return
	}
	s.takingIn = true
	for len(s.inbox) > 0 && s.core != nil {
		in := s.inbox[0]
		s.inbox = s.inbox[1:]
		s.step(in)
	}
	s.takingIn = false
}

// ticks steps the time, unless the server has died since it should have.
func (s *server) ticks() {
	if s.core != nil && !s.waitsForThaw(s.ticks) {
		s.step(taskqueue.Tick{})
	}
}

func (s *server) step(in taskqueue.Input) {
	effects, err := s.core.Step(s.run.instant(), in)
	if err != nil {
		s.run.fail("the TaskQueue refused %T: %v", in, err)
		return
	}
	if s.checked {
		if err := s.core.CheckLiveness(); err != nil {
			s.run.fail("after %T: %v", in, err)
		}
		if err := s.core.CheckBinding(); err != nil {
			s.run.fail("after %T: %v", in, err)
		}
	}
	if len(effects.Persist) > 0 && s.mayFail() {
		s.failStep(in, effects.Persist)
		return
	}
	s.letOut(effects)
}

// letOut makes the records durable and then does what the effects say. They
// are valid until the next step only, so what leads to one is done later.
func (s *server) letOut(e taskqueue.Effects) {
	r := s.run
	s.store.apply(e.Persist)
	for _, reply := range e.Replies {
		if p := s.pilots[reply.Pilot]; p != nil {
			r.carry(p, func() { p.carryOut(&reply) })
		}
	}
	for _, start := range e.Start {
		r.byName[start.Site].submitPilots(start.Count)
	}
	for _, launch := range e.Stop {
		s.withdraw(launch)
	}
	for _, p := range e.Publish {
		r.after(0, func() { s.submit(taskqueue.Published{File: p.File}) })
	}
	for _, pfn := range e.Remove {
		r.after(0, func() {
			if el := r.elementOf(pfn); el != nil {
				el.remove(pfn)
			}
			s.submit(taskqueue.Removed{PFN: pfn})
		})
	}
	for i := range e.Events {
		r.event(&e.Events[i])
	}
	s.tick.setAt(e.WakeAt)
}

// recordName is what a record is called.
type recordName struct {
	table, key string
	run        taskqueue.RunID
}

// memory is a store that survives the crashes of a run. Where a run has none
// it keeps nothing.
type memory struct {
	durable bool
	tables  map[recordName][]byte
}

func (m *memory) apply(records []taskqueue.Record) {
	if !m.durable {
		return
	}
	for _, r := range records {
		if key := (recordName{r.Table, r.Key, r.Run}); r.Body == nil {
			delete(m.tables, key)
		} else {
			m.tables[key] = slices.Clone(r.Body)
		}
	}
}

// all returns what is durable, in the order of tables and keys.
func (m *memory) all() []taskqueue.Record {
	records := make([]taskqueue.Record, 0, len(m.tables))
	for key, body := range m.tables {
		records = append(records, taskqueue.Record{Table: key.table, Run: key.run, Key: key.key, Body: slices.Clone(body)})
	}
	slices.SortFunc(records, func(a, b taskqueue.Record) int {
		return cmp.Or(cmp.Compare(a.Table, b.Table), cmp.Compare(a.Run, b.Run), cmp.Compare(a.Key, b.Key))
	})
	return records
}
