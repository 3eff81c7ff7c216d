package dispatch

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"fairway/internal/dispatch/records"
	"fairway/internal/logical"
	"fairway/internal/taskqueue"
)

// Load makes a Core from all its durable records, in any order, as a [Loading] does.
func Load(config taskqueue.Config, all []taskqueue.Record) (*Core, taskqueue.Effects, error) {
	l := NewLoading(config)
	tables := make(map[string][]taskqueue.Record)
	for _, r := range all {
		if r.Body != nil {
			tables[r.Table] = append(tables[r.Table], r)
		}
	}
	for _, table := range records.Tables() {
		t := tables[table]
		slices.SortFunc(t, func(a, b taskqueue.Record) int {
			return cmp.Or(cmp.Compare(a.Run, b.Run), strings.Compare(a.Key, b.Key))
		})
		for _, r := range t {
			if err := l.Add(r); err != nil {
				return nil, taskqueue.Effects{}, err
			}
		}
	}
	return l.End()
}

// Loading makes a Core from all its durable records, which it is given one by one, so
// that nobody needs to have them all in memory.
type Loading struct {
	c         *Core
	tables    []string // that records may still come from
	takes     map[string]func(taskqueue.Record) error
	remembers bool // there is a record of the store
	commits   map[taskqueue.JobID]*records.Commit
	fates     map[taskqueue.JobID]*fate

	job   records.Job         // the last one, as the next is much like it
	one   [1]taskqueue.Output // of the job, if it is the only one
	texts map[string]string   // that many results have in common
}

// NewLoading returns a Loading without any record.
func NewLoading(config taskqueue.Config) *Loading {
	l := &Loading{
		c: newCore(config), commits: make(map[taskqueue.JobID]*records.Commit), fates: make(map[taskqueue.JobID]*fate),
		texts: make(map[string]string), tables: records.Tables(),
	}
	l.takes = map[string]func(taskqueue.Record) error{
		records.TableMeta: decoded(l.takeMeta), records.TableRun: decoded(l.takeRun),
		records.TableResult: decoded(l.takeResult), records.TableFile: decoded(l.takeFile),
		records.TableCommit: decoded(l.takeCommit), records.TableFate: decoded(l.takeFate), records.TableJob: l.takeJob,
		records.TablePublished: decoded(l.takePublished), records.TableRemove: decoded(l.takeRemoval),
		records.TablePilot: decoded(l.takePilot), records.TableLaunch: decoded(l.takeLaunch),
		records.TableShares: decoded(l.takeShares), records.TableUsage: decoded(l.takeUsage),
	}
	l.c.transition.silent = true
	g := &l.c.fleet.grace
	g.awaited, g.byName = make(map[taskqueue.PilotID]string), make(map[string][]taskqueue.PilotID)
	return l
}

// decoded has a function take records of a table with their bodies.
func decoded[T any](take func(taskqueue.Record, *T) error) func(taskqueue.Record) error {
	return func(k taskqueue.Record) error {
		body := new(T)
		if err := records.Decode(k, body); err != nil {
			return err
		}
		return take(k, body)
	}
}

// Add takes a record. Tables come in the order of [records.Tables], and the records of a table in
// that of their runs and keys. Nothing refers to the body of the record afterwards. After
// an error the Loading is of no use.
func (l *Loading) Add(r taskqueue.Record) error {
	at := slices.Index(l.tables, r.Table)
	if at < 0 {
		return fmt.Errorf("dispatch: a record of table %s comes after those of table %s", r.Table, l.tables[0])
	}
	l.tables = l.tables[at:]
	if err := l.takes[r.Table](r); err != nil {
		return fmt.Errorf("dispatch: record %s of table %s: %w", r.Key, r.Table, err)
	}
	return nil
}

// End returns the Core, when all records were added. The Effects hold the record of the
// new incarnation, and the publications and removals that were not confirmed; they are to
// be treated like those of a Step. Sites are not durable: step a SetSite for each.
//
// No job is assigned before the pilots that were registered have sent their
// whole state, or [taskqueue.Config.ReconnectGrace] has passed since the first Step.
func (l *Loading) End() (*Core, taskqueue.Effects, error) {
	c := l.c
	if !l.remembers {
		c.journal.beginStore()
	}
	if err := c.checkWriters(); err != nil {
		return nil, taskqueue.Effects{}, err
	}
	c.dropRemoved()
	for j := range c.jobs.all {
		l.resume(j)
	}
	for j := range c.jobs.all {
		c.files.wantOwed(j)
	}
	c.propagateJobs()
	c.transition.silent = false
	c.work.fresh = c.work.fresh[:0]
	for j := range c.jobs.all {
		j.freshly = false
	}
	c.publishPending()
	c.journal.persistMeta(c.runs.last)
	return c, c.effects, nil
}

// checkWriters refuses versions that a job reads and that come from nowhere.
func (c *Core) checkWriters() error {
	for j := range c.jobs.all {
		for v := range j.inputs {
			if !v.existing && (v.writer == nil || v.writer.id.Number() >= j.id.Number()) {
				return fmt.Errorf("dispatch: job %s reads version %d of %s, which no job before it writes", j.name,
					v.number, v.file.lfn)
			}
		}
	}
	return nil
}

func (l *Loading) takeMeta(k taskqueue.Record, b *records.Meta) error {
	l.remembers = true
	l.c.journal.incarnation, l.c.journal.since, l.c.runs.last = b.Incarnation+1, b.Since, b.LastRun
	return nil
}

func (l *Loading) takeRun(k taskqueue.Record, b *records.Run) error {
	if k.Run == 0 || b.State > taskqueue.RunEnded {
		return errors.New("there is no such run, or no such state of one")
	}
	r := l.c.runs.add(k.Run, taskqueue.Account{Group: b.Group, User: b.User})
	r.Name, r.KeepGoing, r.Limits, r.pools = b.Name, b.KeepGoing, b.Limits, r.pools.Limited(b.Limits)
	r.Scope, r.NoReuse, r.raised = b.Scope, b.NoReuse, b.Raised
	r.state, r.complete, r.reason = b.State, b.Complete, b.Reason
	if (r.halted() || r.complete) && r.state != taskqueue.RunEnded {
		l.c.runs.mayEnd(r)
	}
	return nil
}

// run is the run that a record belongs to.
func (l *Loading) run(k taskqueue.Record) (*run, error) {
	if r := l.c.runs.byID[k.Run]; r != nil {
		return r, nil
	}
	return nil, fmt.Errorf("it belongs to run %d, which is not recorded", k.Run)
}

func (l *Loading) takeResult(k taskqueue.Record, b *records.Result) error {
	r := &storedResult{Result: *b}
	id, err := records.ParseIdentity(k.Key)
	r.Group, r.User, r.Scope = l.readBefore(r.Group), l.readBefore(r.User), l.readBefore(r.Scope)
	l.c.journal.results.Add(id, r)
	return err
}

// readBefore returns a text that was read before, if it is the same.
func (l *Loading) readBefore(text string) string {
	if before, ok := l.texts[text]; ok {
		return before
	}
	l.texts[text] = text
	return text
}

func (l *Loading) takeFile(k taskqueue.Record, b *records.File) error {
	r, err := l.run(k)
	if err != nil {
		return err
	}
	v := r.files.named(b.LFN).versionFor(b.Version)
	v.existing, v.state, v.size, v.pfn, v.tag = true, present, b.Size, b.PFN, b.Tag
	v.identity, v.compared = logical.Known(b.LFN, b.Identity), logical.TellsContents(b.Identity)
	return nil
}

func (l *Loading) takeCommit(k taskqueue.Record, b *records.Commit) error {
	id, err := records.ParseJobKey(k.Run, k.Key)
	l.commits[id] = b
	return err
}

func (l *Loading) takeFate(k taskqueue.Record, b *records.Fate) error {
	id, err := records.ParseJobKey(k.Run, k.Key)
	l.fates[id] = &fate{Fate: *b}
	return err
}

// recorded gives the requests of a loaded job the versions that they had.
type recorded struct{ body *records.Job }

func (r recorded) read(i int, f *file) *version  { return f.versionFor(r.body.Read[i]) }
func (r recorded) write(i int, f *file) *version { return f.versionFor(r.body.Written[i].Version) }

func (l *Loading) takeJob(k taskqueue.Record) error {
	c, b := l.c, &l.job
	r, err := l.run(k)
	if err != nil {
		return err
	}
	if err := records.DecodeIn(&r.texts, k, b); err != nil {
		return err
	}
	id, err := records.ParseJobKey(k.Run, k.Key)
	if err != nil || id.Number() != r.jobs+1 {
		return fmt.Errorf("expected job %d", r.jobs+1)
	}
	if len(b.Read) != len(b.Reads) {
		return fmt.Errorf("job %s has %d inputs but %d versions of them", b.Name, len(b.Reads), len(b.Read))
	}
	s := b.Job
	if len(b.Written) > 0 {
		s.Writes = l.one[:0] // of which newJob makes a copy
	}
	for i := range b.Written {
		s.Writes = append(s.Writes, b.Written[i].Output)
	}
	if err := s.Check(); err != nil {
		return err
	}
	hash := r.names.Hash(s.Name)
	if _, ok := c.jobs.named(r, hash, s.Name); ok {
		return fmt.Errorf("job name %s is used twice", s.Name)
	}
	j := c.jobs.newJob(r, &s)
	r.names.Add(hash, j.id.Number())
	j.text.submitted = b.Submitted
	reads := c.files.readFiles[:0]
	for _, lfn := range s.Reads {
		reads = append(reads, r.files.named(lfn))
	}
	c.files.readFiles = reads
	c.files.requestFiles(j, reads, s.Access, recorded{b})
	j.fate = l.fates[id]
	j.effective = j.ownPriority()
	if j.fate != nil && j.fate.Gang != nil {
		c.fleet.recordedGangs = append(c.fleet.recordedGangs, j)
	}
	if s := j.saved(); s != nil {
		c.files.saves[taskqueue.Tag(s.Attempt)] = true
	}
	return l.committed(j)
}

// committed gives a job that was committed its outputs.
func (l *Loading) committed(j *job) error {
	b := l.commits[j.id]
	if b == nil {
		return nil
	}
	delete(l.commits, j.id)
	c := l.c
	outputs := b.Outputs
	if b.Key != (identity{}) {
		r := c.journal.results.Of(b.Key)
		if r == nil && !b.Whole {
			return fmt.Errorf("job %s is committed, but its result %s is not there", j.name, b.Key.Hex())
		}
		if j.key = b.Key; !b.Whole {
			outputs, j.result = r.Outputs, lentResult
		}
		if r != nil {
			r.Takers = append(r.Takers, j)
		}
	}
	j.committed = b.Attempt
	if b.Reused {
		j.result = takenResult
	}
	stored := j.reusable(outputs)
	if stored == nil {
		return fmt.Errorf("job %s is committed without the outputs that it promises", j.name)
	}
	j.countStored(stored)
	for _, o := range stored {
		v := c.files.outputVersion(j, &o)
		v.store(o.PFN, o.Size)
		v.records, v.tag = o.Records, o.TagOf(j.committed)
		v.noteProof(o.Adler32, o.Written)
		c.files.setHash(v, o.Hash, "")
		v.identity = j.identityOf(o.LFN)
		v.state = gone
		if v.pfn != "" {
			v.state = present
		}
	}
	for v := range j.writes {
		if v.file.pattern {
			v.state = present
		}
	}
	c.jobs.setState(j, taskqueue.Done)
	return nil
}

// resume lets a loaded job go on from where it stood.
func (l *Loading) resume(j *job) {
	c := l.c
	if j.state == taskqueue.Done && (j.fate == nil || j.fate.End == taskqueue.Waiting) {
		for v := range j.inputs {
			v.pins--
		}
		return
	}
	if f := j.fate; f != nil && f.End != taskqueue.Waiting {
		c.jobs.setState(j, f.End)
		for v := range j.writes {
			if v.state == pending {
				v.state = missing
			}
		}
		return
	}
	if j.fate == nil || !j.fate.Withdrawn {
		for i := range j.requests {
			c.files.insert(&j.requests[i])
		}
	}
	if j.fate != nil && j.fate.NotBefore > 0 {
		c.jobs.armBackoff(j)
	}
	c.placement.letGo(c.jobs.inheritPriority(j)...)
	if j.fate != nil && j.fate.Gang != nil {
		c.fleet.newGang(j, j.fate.Gang.Leader)
	}
	c.files.enlist(j)
}

func (l *Loading) takePublished(k taskqueue.Record, b *records.Published) error {
	r, err := l.run(k)
	if err != nil {
		return err
	}
	r.files.named(k.Key).publishFrom = b.Version + 1
	return nil
}

// publishPending asks again for what was committed and not yet published.
func (c *Core) publishPending() {
	for j := range c.jobs.all {
		if j.state != taskqueue.Done {
			continue
		}
		for _, v := range c.files.writtenBy(j) {
			if v.state == present {
				c.files.publish(j, v)
			}
		}
	}
}

func (l *Loading) takeRemoval(k taskqueue.Record, _ *records.Removal) error {
	l.c.files.removing[k.Key] = true
	l.c.effects.Remove = append(l.c.effects.Remove, k.Key)
	return nil
}

func (l *Loading) takeShares(k taskqueue.Record, b *taskqueue.Shares) error {
	if err := b.Check(); err != nil {
		return err
	}
	l.c.shares.arrange(*b)
	return nil
}

func (l *Loading) takeUsage(k taskqueue.Record, b *records.Usage) error {
	l.c.shares.Restore(taskqueue.Account{Group: b.Group, User: b.User}, b.At, b.Used)
	return nil
}

func (l *Loading) takePilot(k taskqueue.Record, b *records.Pilot) error {
	g, id := &l.c.fleet.grace, taskqueue.PilotID(k.Key)
	name := launchName(id, b.Launch)
	g.awaited[id] = b.Launch
	g.byName[name] = append(g.byName[name], id) // in the order of the IDs
	l.c.fleet.monitor.launched(launchName(id, b.Launch), b.Site).expected = true
	return nil
}

func (l *Loading) takeLaunch(k taskqueue.Record, b *records.Launch) error {
	l.c.fleet.monitor.launched(k.Key, b.Site)
	return nil
}
