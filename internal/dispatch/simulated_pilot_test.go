package dispatch

import (
	"fmt"
	"slices"
	"time"

	"fairway/internal/logical"
	"fairway/internal/quantity"
	"fairway/internal/taskqueue"
)

// simPilot behaves as a pilot does: what it sends is repeated until an answer
// says that it was seen.
type simPilot struct {
	s       *simulation
	info    taskqueue.PilotInfo
	id      taskqueue.PilotID
	dead    bool
	polls   bool // asks now and then, and does not wait for the answer
	seq     uint64
	last    uint64
	full    bool
	queued  []*simAttempt
	running []*simAttempt
	ended   []simResult
	cache   map[taskqueue.FileRef]string
	cacheOf []taskqueue.FileRef
	changes []simChange
	telling uint64 // the wish to tell all of the cache since which that is among the changes, or was seen
	used    int64
	gpus    []int64 // what is used of each, in thousandths
}

type simAttempt struct {
	a       taskqueue.Assignment
	begun   bool // its command, for which its inputs were read
	ready   bool // as a member of a gang
	dropped bool
	gpu     int // of which it has a share or all, if it needs that
}

type simResult struct {
	r   taskqueue.Result
	seq uint64 // of the first sync that carried it
}

type simChange struct {
	file taskqueue.FileRef
	seq  uint64
}

func (s *simulation) startAnyPilot() {
	s.startPilot(simSites[s.rng.IntN(len(simSites))], fmt.Sprintf("launch%d", s.born+1))
}

func (s *simulation) startPilot(site, launch string) {
	s.startPilotOn(fmt.Sprintf("host%d", s.rng.IntN(2)), site, launch, int64(2000*(1+s.rng.IntN(2))))
}

func (s *simulation) startPilotOn(host, site, launch string, cpus int64) {
	s.born++
	p := &simPilot{s: s, id: taskqueue.PilotID(fmt.Sprintf("pilot%d", s.born)), full: true,
		cache: make(map[taskqueue.FileRef]string)}
	p.info = taskqueue.PilotInfo{
		Host: host, Site: site, Launch: launch, Has: taskqueue.Resources{MilliCPUs: cpus, Memory: 1000},
	}
	p.gpus = make([]int64, 1+s.rng.IntN(2))
	p.info.Has.Countable = map[string]int64{quantity.GPU: int64(len(p.gpus))}
	if s.rng.IntN(3) > 0 {
		p.info.CacheDir = "/cache/" + string(p.id)
	}
	p.polls, p.info.CacheSize = s.rng.IntN(3) == 0, int64(s.rng.IntN(60))
	s.pilots = append(s.pilots, p)
	s.note("pilot %s starts on %s at %s", p.id, p.info.Host, p.info.Site)
	p.call()
}

// call sends a Sync, and another one if no answer comes.
func (p *simPilot) call() {
	p.seq++
	sync := taskqueue.Sync{Pilot: p.id, Seq: p.seq, LastAnswer: p.last, Full: p.full, Hold: !p.polls}
	for _, a := range p.running {
		sync.Started = append(sync.Started, a.ref())
		if a.ready {
			sync.Members = append(sync.Members, taskqueue.MemberState{
				Attempt: a.a.Attempt, Host: p.info.Host, Ports: []int{1, 2}, Begun: a.begun,
			})
		}
	}
	if p.full {
		info := p.info
		sync.Hello = &info
		for _, a := range p.queued {
			sync.Queued = append(sync.Queued, a.ref())
		}
		if p.s.rng.IntN(2) == 0 {
			sync.Cache = p.copies()
		} else {
			p.tellWhole(&sync)
		}
	}
	for i := range p.ended {
		r := &p.ended[i]
		if r.seq == 0 {
			r.seq = p.seq
		}
		sync.Ended = append(sync.Ended, r.r)
	}
	sync.CacheTold = p.telling
	for i := range p.changes {
		c := &p.changes[i]
		if p.full && sync.Cache == nil {
			break
		}
		if c.seq == 0 && len(sync.CacheAdded)+len(sync.CacheGone) >= simCacheTold {
			sync.CacheTold = 0
			break
		}
		if c.seq == 0 {
			c.seq = p.seq
		}
		// A change is sent with its final state: it may have been undone since.
		if _, ok := p.cache[c.file]; ok {
			sync.CacheAdded = append(sync.CacheAdded, taskqueue.CachedFile{File: c.file})
		} else {
			sync.CacheGone = append(sync.CacheGone, c.file)
		}
	}
	s, seq := p.s, p.seq
	deliver := func() error {
		s.note("sync %s %d last=%d full=%v started=%d ended=%d", p.id, sync.Seq, sync.LastAnswer, sync.Full,
			len(sync.Started), len(sync.Ended))
		return s.step(sync)
	}
	if !s.chance(10) {
		s.after(s.ms(100), deliver)
	}
	if s.chance(10) {
		s.after(s.ms(3000), deliver) // repeated, and out of order
	}
	s.after(35*time.Second, func() error {
		if !p.dead && p.seq == seq {
			p.call()
		}
		return nil
	})
}

// simCacheTold is how many changes of the cache are told in one Sync, so that all of it
// takes several.
const simCacheTold = 2

func (p *simPilot) copies() *logical.Copies {
	all := new(logical.Copies)
	for _, f := range p.cacheOf {
		all.Add(f.LFN, uint32(f.Version), uint64(f.Tag))
	}
	return all
}

func (p *simPilot) tellWhole(sync *taskqueue.Sync) {
	for _, f := range p.cacheOf {
		sync.CacheAdded = append(sync.CacheAdded, taskqueue.CachedFile{File: f})
	}
	for i := range p.changes {
		if p.changes[i].seq == 0 {
			p.changes[i].seq = p.seq
		}
	}
}

// agree checks that the TaskQueue knows the cache of a pilot that has nothing left to tell.
func (p *simPilot) agree() error {
	c := p.s.core
	q := c.fleet.pilots[p.id]
	if q == nil || q.talk.seq != p.seq || !q.talk.synced || q.talk.needFull || q.copies.telling != nil || p.full ||
		len(p.changes) > 0 {
		return nil
	}
	p.s.agreed++
	if known := c.files.copiesOf(q); known != *p.copies() {
		return fmt.Errorf("pilot %s has %d files in its cache, and %d are known: %v", p.id, len(p.cacheOf),
			known.Files, p.cacheOf)
	}
	return nil
}

func (s *simulation) reply(r taskqueue.Reply) {
	i := slices.IndexFunc(s.pilots, func(p *simPilot) bool { return p.id == r.Pilot })
	if i < 0 || s.chance(10) {
		return
	}
	p := s.pilots[i]
	a := r.Answer
	a.Run, a.End, a.GiveBack = slices.Clone(a.Run), slices.Clone(a.End), slices.Clone(a.GiveBack)
	a.Begin = slices.Clone(a.Begin)
	models := s.models
	s.after(s.ms(100), func() error { return p.answered(models, r.Seq, a) })
}

func (p *simPilot) answered(models map[taskqueue.RunID]*submission, seq uint64, a taskqueue.Answer) error {
	if p.dead || seq != p.seq || a.Superseded {
		return nil
	}
	p.s.note("answer to %s %d: number=%d run=%d end=%d full=%v", p.id, seq, a.Number, len(a.Run), len(a.End), a.NeedFull)
	p.last = a.Number
	p.full = a.NeedFull
	for _, r := range p.ended {
		if r.seq != 0 && r.seq <= a.Seen && !p.s.core.foreign(r.r.Attempt) { // else by a store that is lost since
			for _, w := range r.r.Outputs {
				p.s.acked[r.r.Attempt] = append(p.s.acked[r.r.Attempt], w.PFN)
			}
		}
	}
	p.ended = slices.DeleteFunc(p.ended, func(r simResult) bool { return r.seq != 0 && r.seq <= a.Seen })
	p.changes = slices.DeleteFunc(p.changes, func(c simChange) bool { return c.seq != 0 && c.seq <= a.Seen })
	if a.TellCache != 0 && a.TellCache != p.telling {
		p.telling = a.TellCache
		for _, f := range p.cacheOf {
			p.changed(f)
		}
	}
	if err := p.agree(); err != nil {
		return err
	}
	for _, x := range a.Run {
		if err := p.given(models[x.Job.Run()], x); err != nil {
			return err
		}
	}
	for _, b := range a.Begin {
		if err := p.beginsWith(b); err != nil {
			return err
		}
	}
	for _, id := range a.End {
		p.end(id)
	}
	for _, id := range a.GiveBack {
		if !slices.ContainsFunc(p.running, func(x *simAttempt) bool { return x.begun && x.a.Attempt == id }) {
			p.end(id)
		}
	}
	p.startQueued()
	pause := 20
	if p.polls && len(a.Run)+len(a.End)+len(a.GiveBack) == 0 {
		pause = 5000
	}
	p.s.after(p.s.ms(pause), func() error {
		if !p.dead && p.seq == seq {
			p.call()
		}
		return nil
	})
	return nil
}

// given checks that an assignment is what the model expects.
func (p *simPilot) given(m *submission, x taskqueue.Assignment) error {
	same := func(a *simAttempt) bool { return a.a.Attempt == x.Attempt }
	if slices.ContainsFunc(p.queued, same) || slices.ContainsFunc(p.running, same) ||
		slices.ContainsFunc(p.ended, func(r simResult) bool { return r.r.Attempt == x.Attempt }) {
		return nil // said again
	}
	if p.s.attempts[x.Attempt] {
		return fmt.Errorf("attempt %s was given twice", attemptName(x.Attempt))
	}
	p.s.attempts[x.Attempt] = true
	j := m.jobs[x.Name]
	for i, f := range x.Inputs {
		if asked := (taskqueue.FileRef{Run: m.run, LFN: f.File.LFN, Version: f.File.Version}); asked != j.reads[i] {
			return fmt.Errorf("job %s is given %s@%d instead of version %d", x.Name, f.File.LFN, f.File.Version,
				j.reads[i].Version)
		} else if want := m.content[asked]; f.Hash != "" && f.Hash != want {
			return fmt.Errorf("job %s is told that %s@%d holds %q instead of %q", x.Name, f.File.LFN, f.File.Version,
				f.Hash, want)
		}
	}
	for i, o := range x.Outputs {
		if o.Version != j.writes[i] {
			return fmt.Errorf("job %s is to write %s@%d instead of version %d", x.Name, o.LFN, o.Version, j.writes[i])
		}
	}
	if x.Needs.Memory > p.info.Has.Memory || x.Needs.MilliCPUs > p.info.Has.MilliCPUs {
		return fmt.Errorf("job %s does not fit pilot %s", x.Name, p.id)
	}
	p.queued = append(p.queued, &simAttempt{a: x})
	return p.gpusSuffice()
}

// gpusSuffice checks that a pilot is given no more shares of GPUs than it has for what runs, and as often
// again for what comes next as the configuration says; once at least, since what was given up may still run.
func (p *simPilot) gpusSuffice() error {
	sum, most := int64(0), quantity.WholeGPU*int64(len(p.gpus))*int64(1+max(1, p.s.core.config.Ahead))
	for _, a := range slices.Concat(p.running, p.queued) {
		sum += gpuParts(a)
	}
	if sum > most {
		return fmt.Errorf("pilot %s is given %d thousandths of GPUs, and has %d of them", p.id, sum, len(p.gpus))
	}
	return nil
}

// gpuParts is what an attempt needs of one GPU.
func gpuParts(a *simAttempt) int64 {
	return a.a.Needs.Countable[quantity.GPU]*quantity.WholeGPU + a.a.Needs.GPUShare
}

// takeGPU gives an attempt its part of the GPU that has the least left of those that have enough.
func (p *simPilot) takeGPU(a *simAttempt) bool {
	parts, best := gpuParts(a), -1
	for i, used := range p.gpus {
		if used+parts <= quantity.WholeGPU && (best < 0 || used > p.gpus[best]) {
			best = i
		}
	}
	if best >= 0 {
		a.gpu = best
		p.gpus[best] += parts
	}
	return best >= 0
}

func (p *simPilot) cpus(a *simAttempt) int64 {
	if a.a.Needs.MilliCPUs == 0 {
		return 1000
	}
	return a.a.Needs.MilliCPUs
}

func (p *simPilot) startQueued() {
	for len(p.queued) > 0 && p.used+p.cpus(p.queued[0]) <= p.info.Has.MilliCPUs && p.takeGPU(p.queued[0]) {
		a := p.queued[0]
		p.queued = p.queued[1:]
		p.running = append(p.running, a)
		p.used += p.cpus(a)
		if a.a.Tasks > 1 {
			p.s.after(p.s.ms(4000), func() error { return p.readies(a) })
			continue
		}
		p.s.after(p.s.ms(4000), func() error {
			a.begun = true
			return nil
		})
		p.s.after(p.s.ms(5000), func() error { return p.ends(a) })
	}
}

func (a *simAttempt) ref() taskqueue.AttemptRef {
	return taskqueue.AttemptRef{Job: a.a.Job, Attempt: a.a.Attempt, GangPlace: a.a.GangPlace}
}

// readies has a member of a gang ready, unless that fails.
func (p *simPilot) readies(a *simAttempt) error {
	if p.dead || a.dropped {
		return nil
	}
	if p.s.chance(5) {
		p.over(a, taskqueue.Result{Outcome: taskqueue.StageInFailed})
	} else {
		a.ready = true
		p.s.ready[a.a.Attempt] = true
	}
	p.startQueued()
	p.call()
	return nil
}

// beginsWith begins the command of a member that was told of the others. All of these were ready.
func (p *simPilot) beginsWith(b taskqueue.GangStart) error {
	i := slices.IndexFunc(p.running, func(x *simAttempt) bool { return x.a.Attempt == b.Attempt })
	if i < 0 || p.running[i].begun {
		return nil
	}
	a := p.running[i]
	if len(b.Members) != a.a.Tasks || b.GangPlace != a.a.GangPlace || a.a.Attempt != b.Leader+taskqueue.AttemptID(b.Task) {
		return fmt.Errorf("%s is to begin as %+v", a.a.Name, b)
	}
	for task, m := range b.Members {
		if m.Task != task || m.Host == "" || !p.s.ready[b.Leader+taskqueue.AttemptID(task)] {
			return fmt.Errorf("task %d of %s begins, and task %d was never ready", b.Task, a.a.Name, task)
		}
	}
	a.begun = true
	p.s.together++
	if !a.a.Once || b.Task == 0 {
		p.s.after(p.s.ms(5000), func() error { return p.ends(a) })
	}
	return nil
}

func (p *simPilot) end(id taskqueue.AttemptID) {
	for i, a := range p.queued {
		if a.a.Attempt == id {
			p.queued = slices.Delete(p.queued, i, i+1)
			p.report(a, taskqueue.Result{Outcome: taskqueue.Ended})
			return
		}
	}
	for _, a := range p.running {
		if a.a.Attempt == id {
			p.over(a, taskqueue.Result{Outcome: taskqueue.Ended})
			return
		}
	}
}

// ends is the end of a command: it has read its inputs and writes its outputs.
func (p *simPilot) ends(a *simAttempt) error {
	if p.dead || a.dropped {
		return nil
	}
	s := p.s
	r := taskqueue.Result{}
	switch n := s.rng.IntN(100); {
	case a.a.Task > 0 && (s.calm || n < 90):
	case s.calm || n < 75:
		r.Outputs = p.execute(a)
		if r.Lost = p.lost(a); len(r.Lost) > 0 {
			r.Outcome = taskqueue.InputLost
		} else if r.Outputs == nil {
			r.Outcome = taskqueue.StageInFailed
		}
	case n < 85:
		r.Outcome, r.ExitCode = taskqueue.Exited, 1
	case n < 90:
		r.Outcome = taskqueue.OutOfMemory
	case n < 95:
		r.Outputs = p.execute(a)
		r.Outcome = taskqueue.StageOutFailed
	default:
		r.Outputs = p.execute(a) // without one that was promised
		if len(r.Outputs) > 1 {
			r.Outputs = r.Outputs[1:]
		}
	}
	p.over(a, r)
	p.startQueued()
	p.call()
	return nil
}

func (p *simPilot) over(a *simAttempt, r taskqueue.Result) {
	a.dropped = true
	p.used -= p.cpus(a)
	p.gpus[a.gpu] -= gpuParts(a)
	p.running = slices.DeleteFunc(p.running, func(x *simAttempt) bool { return x == a })
	p.report(a, r)
}

func (p *simPilot) report(a *simAttempt, r taskqueue.Result) {
	r.Job, r.Attempt, r.GangPlace = a.a.Job, a.a.Attempt, a.a.GangPlace
	in := epoch.Add(p.s.ms(2000))
	r.Usage = taskqueue.Usage{
		StageInStart: epoch, Start: in, StageOutEnd: in.Add(p.s.ms(3000)), BytesStaged: int64(p.s.rng.IntN(20)),
	}
	p.ended = append(p.ended, simResult{r: r})
}

func (p *simPilot) execute(a *simAttempt) []taskqueue.WrittenFile {
	parts := decides(a.a.Name, string(a.a.Payload))
	for _, f := range a.a.Inputs {
		c, ok := p.read(f)
		if !ok || p.s.damaged[f.PFN] != "" {
			p.s.note("%s: %s cannot read %s@%d", p.id, a.a.Name, f.File.LFN, f.File.Version)
			return nil
		}
		parts = append(parts, c)
	}
	base := digestOf(parts...)
	written := []taskqueue.WrittenFile{}
	for _, o := range a.a.Outputs {
		names := []string{o.LFN}
		if o.Pattern {
			names = nil
			for k := range len(a.a.Name) % 3 {
				// a few jobs choose alike
				names = append(names, fmt.Sprintf("%s%d", o.LFN[:len(o.LFN)-1], (3*int(a.a.Job.Number())+k)%40))
			}
		}
		for _, lfn := range names {
			w := taskqueue.WrittenFile{LFN: lfn, Version: o.Version, Size: int64(len(lfn))}
			if a.a.Attempt%2 == 0 { // of a pilot that serves its cache
				w.Hash = digestOf(base, lfn)
			}
			ref := taskqueue.FileRef{LFN: lfn, Version: o.Version, Tag: taskqueue.Tag(a.a.Attempt)}
			if o.Storage == taskqueue.StorageElement {
				w.PFN = physical(lfn, o.Version, a.a.Attempt)
				p.s.storage[w.PFN] = digestOf(base, lfn)
			}
			if o.Storage == taskqueue.StorageCache || p.s.rng.IntN(2) == 0 && !o.Pattern {
				p.toCache(ref, digestOf(base, lfn))
			}
			written = append(written, w)
		}
	}
	return written
}

func (p *simPilot) read(f taskqueue.InputFile) (string, bool) {
	if c, ok := p.cache[f.File]; ok {
		return c, true
	}
	for _, o := range p.s.pilots {
		if c, ok := o.cache[f.File]; ok && !o.dead && o.info.Host == p.info.Host && o.info.CacheDir != "" {
			return c, true
		}
	}
	c, ok := p.s.storage[f.PFN]
	if ok && p.s.damaged[f.PFN] == "" && p.s.rng.IntN(2) == 0 {
		p.toCache(f.File, c)
	}
	return c, ok
}

const simCacheLimit = 6

func (p *simPilot) toCache(f taskqueue.FileRef, content string) {
	if _, ok := p.cache[f]; !ok {
		p.cacheOf = append(p.cacheOf, f)
	}
	p.cache[f] = content
	p.changed(f)
	if len(p.cacheOf) > simCacheLimit && !p.s.calm {
		old := p.cacheOf[0]
		p.cacheOf = p.cacheOf[1:]
		delete(p.cache, old)
		p.changed(old)
	}
}

// changed has a change sent until it is seen; one that was sent in another
// state before counts anew.
func (p *simPilot) changed(f taskqueue.FileRef) {
	p.changes = slices.DeleteFunc(p.changes, func(c simChange) bool { return c.file == f })
	p.changes = append(p.changes, simChange{file: f})
}

func (p *simPilot) die(how string) {
	if !p.dead {
		p.s.note("pilot %s is %s", p.id, how)
		p.dead = true
		p.cache = nil
	}
}
