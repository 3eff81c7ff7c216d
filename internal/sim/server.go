package sim

import (
	"cmp"
	"slices"
	"time"

	"fairway/internal/dispatch"
)

// server plays the part of the Fairway server around the core: it steps
// inputs, makes records durable, and only then lets the effects out. It can
// fail to write and it can crash; then it loads the core again.
type server struct {
	run    *run
	config dispatch.Config
	core   *dispatch.Core // nil: crashed
	store  *memory
	pilots map[dispatch.PilotID]*pilot
	wake   time.Time
	alarm  uint64
	missed []dispatch.Input // what happened while it was away, and is found afterwards
}

// memory is a store that survives the crashes of a run. Where a run has none
// it only counts.
type memory struct {
	keep    bool
	tables  map[[2]string][]byte
	records int
	bytes   int64
}

func (m *memory) apply(records []dispatch.Record) {
	m.records += len(records)
	for _, r := range records {
		m.bytes += int64(len(r.Body))
		switch key := [2]string{r.Table, r.Key}; {
		case !m.keep:
		case r.Body == nil:
			delete(m.tables, key)
		default:
			m.tables[key] = slices.Clone(r.Body)
		}
	}
}

// all returns what is durable, in the order of tables and keys.
func (m *memory) all() []dispatch.Record {
	records := make([]dispatch.Record, 0, len(m.tables))
	for key, body := range m.tables {
		records = append(records, dispatch.Record{Table: key[0], Key: key[1], Body: slices.Clone(body)})
	}
	slices.SortFunc(records, func(a, b dispatch.Record) int {
		return cmp.Or(cmp.Compare(a.Table, b.Table), cmp.Compare(a.Key, b.Key))
	})
	return records
}

func newServer(r *run) *server {
	q := r.exp.TaskQueue
	s := &server{run: r, pilots: map[dispatch.PilotID]*pilot{}}
	s.config = dispatch.Config{
		Attempts: q.Attempts, Backoff: q.Backoff, MaxBackoff: q.Backoff, WaitForData: q.WaitForData,
		Ahead: q.Ahead, Hold: q.Hold, MaxPassOver: q.PassOver, MaxLosses: q.MaxLosses, MaxRegenerations: q.MaxRegenerations,
	}
	s.config.Placement = dispatch.Placements[q.Placement]
	s.config.Sites = dispatch.SiteWeights(q.Sites)
	r.hold = cmp.Or(q.Hold, 25*time.Second)
	for _, site := range r.sites {
		r.hold = max(r.hold, site.Ask)
	}
	s.config.Hold, s.config.PilotLease = r.hold, 2*r.hold+patience
	f := r.exp.Faults
	s.store = &memory{keep: !f.ServerDies.zero() || f.WriteFails > 0, tables: map[[2]string][]byte{}}
	return s
}

// begin starts the server, the pilots that run from the start, and then, when
// those have had the time to register, the workflow.
func (s *server) begin() {
	var effects dispatch.Effects
	s.core, effects = dispatch.New(s.config)
	s.letOut(effects)
	s.makeSitesKnown()
	s.tell(dispatch.AddFiles{Files: s.existing()})
	for _, site := range s.run.sites {
		if s.run.exp.Submission == Running {
			site.occupy()
		}
	}
	s.mayCrash()
	s.run.after(s.run.lead(), func() {
		s.run.submitted = s.run.now
		s.run.creator = newCreator(s.run,
			func(jobs []dispatch.Job) { s.tell(dispatch.Submit{Jobs: jobs}) },
			func(files []dispatch.ExistingFile) { s.tell(dispatch.AddFiles{Files: files}) },
		)
		s.run.creator.begin()
	})
}

// lead is how long before the first job the pilots start that are there
// already.
func (r *run) lead() time.Duration {
	lead := time.Second
	for _, s := range r.sites {
		lead = max(lead, 2*s.Ask)
	}
	return lead
}

func (s *server) makeSitesKnown() {
	for _, site := range s.run.sites {
		known := dispatch.Site{
			Name: site.Name, MinPilots: site.Min, MaxPilots: site.Max, MinIdlePilots: site.MinIdle,
			Pilot: dispatch.Resources{MilliCPUs: 1000}, Price: site.Price, QueueWait: site.Expects, Storage: site.element.prefix(),
		}
		if s.run.exp.Submission == Running && site.Started > 0 {
			known.MaxPilots = site.Started
		}
		s.tell(dispatch.SetSite{Site: known})
	}
}

func (s *server) existing() []dispatch.ExistingFile {
	var files []dispatch.ExistingFile
	for _, f := range s.run.work.files {
		files = append(files, dispatch.ExistingFile{LFN: f.lfn, PFN: s.run.pfnOf(f.lfn), Size: f.size, Identity: f.lfn})
	}
	return files
}

// occupy starts the pilots of a site that run from the start.
func (s *site) occupy() {
	for range s.Started {
		b := s.batch
		b.count++
		at := b.free[len(b.free)-1]
		b.free = b.free[:len(b.free)-1]
		at.launch = s.launchName(b.count)
		b.charge(1)
		s.run.server.tell(dispatch.PilotSubmitted{Site: s.Name, Launch: at.launch})
		s.startPilot(at)
	}
}

// receive takes a message of a pilot, if the server is there.
func (s *server) receive(p *pilot, m dispatch.Sync) {
	if s.core == nil {
		return
	}
	s.pilots[m.Pilot] = p
	s.step(m)
}

// tell steps an input that must not be lost: if the server is away it finds
// it when it is back.
func (s *server) tell(in dispatch.Input) {
	if s.core == nil {
		s.missed = append(s.missed, in)
		return
	}
	s.step(in)
}

func (s *server) step(in dispatch.Input) {
	effects, err := s.core.Step(s.run.instant(), in)
	if err != nil {
		s.run.fail("the TaskQueue refused %T: %v", in, err)
		return
	}
	if len(effects.Persist) > 0 && s.run.faults.Float64() < float64(s.run.exp.Faults.WriteFails) {
		s.failStep(in, effects.Persist)
		return
	}
	s.letOut(effects)
}

// failStep ends the server at one of the two places at which a step is half
// done: none of its records are durable, or all are and nobody has heard.
func (s *server) failStep(in dispatch.Input, records []dispatch.Record) {
	if s.run.faults.IntN(2) == 0 {
		s.run.faced[WriteFailed]++
		s.missed = append(s.missed, retriable(in)...)
	} else {
		s.run.faced[ServerDiedInStep]++
		s.store.apply(records)
	}
	s.down(0)
}

// retriable returns what its sender will send again because it got no answer.
// A pilot sends its state again by itself.
func retriable(in dispatch.Input) []dispatch.Input {
	switch in.(type) {
	case dispatch.Sync, dispatch.Tick:
		return nil
	}
	return []dispatch.Input{in}
}

// letOut makes the records durable and then does what the effects say. They
// are valid until the next step only, so what leads to one is done later.
func (s *server) letOut(e dispatch.Effects) {
	r := s.run
	s.store.apply(e.Persist)
	for _, reply := range e.Replies {
		if p := s.pilots[reply.Pilot]; p != nil {
			r.toPilot(p, reply.Seq, reply.Answer)
		}
	}
	for _, start := range e.Start {
		r.byName[start.Site].submitPilots(start.Count)
	}
	for _, launch := range e.Stop {
		s.withdraw(launch)
	}
	for _, p := range e.Publish {
		r.after(0, func() { s.tell(dispatch.Published{File: p.File}) })
	}
	for _, pfn := range e.Remove {
		r.after(0, func() {
			if el := r.elementOf(pfn); el != nil {
				el.remove(pfn)
			}
			s.tell(dispatch.Removed{PFN: pfn})
		})
	}
	for i := range e.Events {
		r.event(&e.Events[i])
	}
	s.wakeAt(e.WakeAt)
}

// wakeAt asks for a Tick.
func (s *server) wakeAt(t time.Time) {
	if t.Equal(s.wake) {
		return
	}
	s.wake = t
	s.alarm++
	if t.IsZero() {
		return
	}
	alarm := s.alarm
	s.run.at(t.Sub(epoch), func() {
		if alarm == s.alarm && s.core != nil {
			s.wake = time.Time{}
			s.step(dispatch.Tick{})
		}
	})
}

// submitPilots hands pilots to the batch system, whose answer may be late.
func (s *site) submitPilots(n int) {
	for range n {
		launch, ok := s.batch.submit(s.startPilot, s.run.notice("the batch system does not know it"))
		if !ok {
			return
		}
		late := s.Batch.Late.draw(s.batch.rand)
		s.batch.answered[launch] = s.run.now + late
		s.run.after(late, func() {
			if s.batch.queue[launch] == nil {
				s.run.faced[AnsweredLate]++
			}
			s.run.server.tell(dispatch.PilotSubmitted{Site: s.Name, Launch: launch})
		})
	}
}

func (s *server) withdraw(launch string) {
	for _, site := range s.run.sites {
		if site.batch.queue[launch] != nil {
			site.batch.withdraw(launch)
			s.run.noticeEnd(site, launch)
		}
	}
}

// noticeEnd tells the server that a launch has left the batch system.
func (r *run) noticeEnd(s *site, launch string) {
	if r.server == nil {
		return
	}
	r.at(s.batch.noticed(launch), func() { r.notice("ended")(launch) })
}

// notice returns what tells the server of the end of a launch.
func (r *run) notice(reason string) func(launch string) {
	return func(launch string) { r.server.tell(dispatch.PilotEnded{Launch: launch, Reason: reason}) }
}

// mayCrash plans the next crash.
func (s *server) mayCrash() {
	f := s.run.exp.Faults
	if f.ServerDies.zero() || f.Crashes > 0 && s.run.faced[ServerDied] >= f.Crashes {
		return
	}
	s.run.after(f.ServerDies.draw(s.run.faults), func() {
		s.run.faced[ServerDied]++
		s.down(f.ServerAway.draw(s.run.faults))
		s.mayCrash()
	})
}

// down discards the core; what is durable remains.
func (s *server) down(away time.Duration) {
	s.core = nil
	s.wake, s.alarm = time.Time{}, s.alarm+1
	s.run.after(away, s.load)
}

// load brings the server back from what is durable.
func (s *server) load() {
	if s.core != nil {
		return
	}
	core, effects, err := dispatch.Load(s.config, s.store.all())
	if err != nil {
		s.run.fail("loading what was durable: %v", err)
		return
	}
	s.core = core
	s.letOut(effects)
	s.makeSitesKnown()
	missed := s.missed
	s.missed = nil
	for _, in := range missed {
		s.tell(in)
	}
	s.run.recount(core)
}

// recount compares what the run knows of its jobs with what the TaskQueue
// does: events of what was durable when the server crashed were never heard.
func (r *run) recount(core *dispatch.Core) {
	for j := range core.Jobs(0) {
		if j.Committed != 0 {
			r.checkCommit(j.ID, j.Name, j.Committed, true)
			r.checkOutputs(core, j.ID)
		}
		switch j.State {
		case dispatch.Done:
			r.committedUnheard(j.Name)
		case dispatch.Failed, dispatch.Blocked, dispatch.Cancelled:
			r.endedFor(j.Name, dispatch.JobFailed)
		default:
			r.revived(j.Name)
		}
	}
}

func (r *run) committedUnheard(name string) {
	if r.ends[name] == dispatch.JobCommitted {
		return
	}
	if i, known := r.creator.byName(name); known {
		e := dispatch.Event{Name: name}
		for _, o := range r.work.jobs[i].job.Writes {
			for _, f := range r.work.writes(&r.work.jobs[i], o) {
				e.Files = append(e.Files, dispatch.CommittedFile{File: dispatch.FileRef{LFN: f.lfn}})
			}
		}
		r.outputsOf(&e)
	}
	r.endedFor(name, dispatch.JobCommitted)
}
