package dispatch

import (
	"fmt"
	"slices"
	"strings"
)

// Load makes a Core from all its durable records, in any order. The Effects
// hold the record of the new incarnation, and the publications and removals
// that were not confirmed; they are to be treated like those of a Step. Sites
// are not durable: step a SetSite for each.
//
// No job is assigned before the pilots that were registered have sent their
// whole state, or [Config.ReconnectGrace] has passed since the first Step.
func Load(config Config, records []Record) (*Core, Effects, error) {
	l := loading{c: newCore(config), tables: make(map[string][]Record)}
	for _, r := range records {
		if r.Body != nil {
			l.tables[r.Table] = append(l.tables[r.Table], r)
		}
	}
	for _, t := range l.tables {
		slices.SortFunc(t, func(a, b Record) int { return strings.Compare(a.Key, b.Key) })
	}
	if err := l.all(); err != nil {
		return nil, Effects{}, err
	}
	return l.c, l.c.effects, nil
}

type loading struct {
	c       *Core
	tables  map[string][]Record
	commits map[JobID]*commitBody
	fates   map[JobID]*fate
}

func (l *loading) all() error {
	for _, load := range []func() error{
		l.meta, l.results, l.files, l.readCommits, l.readFates, l.jobs, l.published, l.removals, l.pilots, l.launches,
	} {
		if err := load(); err != nil {
			return err
		}
	}
	c := l.c
	if err := c.checkWriters(); err != nil {
		return err
	}
	for j := range c.queue.all {
		l.resume(j)
	}
	for j := range c.queue.all {
		c.files.wantOwed(j)
	}
	c.settleJobs()
	c.effects.Events = nil
	c.work.fresh = c.work.fresh[:0]
	for j := range c.queue.all {
		j.freshly = false
	}
	c.publishPending()
	c.journal.persistIncarnation()
	return nil
}

// checkWriters refuses versions that a job reads and that come from nowhere.
func (c *Core) checkWriters() error {
	for j := range c.queue.all {
		for i := range j.requests {
			if v := j.requests[i].read; v != nil && !v.existing && (v.writer == nil || v.writer.id >= j.id) {
				return fmt.Errorf("dispatch: job %s reads version %d of %s, which no job before it writes", j.name, v.number, v.file.lfn)
			}
		}
	}
	return nil
}

// each decodes the records of a table.
func each[T any](l *loading, table string, version func(*T) int, take func(key string, body *T) error) error {
	for _, r := range l.tables[table] {
		body := new(T)
		if err := decode(r, body); err != nil {
			return err
		}
		if v := version(body); v != bodyVersion {
			return fmt.Errorf("dispatch: record %s of table %s has form %d; this program knows %d", r.Key, table, v, bodyVersion)
		}
		if err := take(r.Key, body); err != nil {
			return fmt.Errorf("dispatch: record %s of table %s: %w", r.Key, table, err)
		}
	}
	return nil
}

func (l *loading) meta() error {
	if len(l.tables[TableMeta]) == 0 {
		l.c.journal.beginStore()
		return nil
	}
	return each(l, TableMeta, func(b *metaBody) int { return b.V }, func(_ string, b *metaBody) error {
		l.c.journal.incarnation, l.c.journal.since = b.Incarnation+1, b.Since
		return nil
	})
}

func (l *loading) results() error {
	return each(l, TableResult, func(b *resultBody) int { return b.V }, func(key string, b *resultBody) error {
		id, err := parseIdentity(key)
		l.c.journal.results[id] = storedResult{b.Job, b.Digest, b.Inputs, b.Made, b.Outputs}
		return err
	})
}

func (l *loading) files() error {
	return each(l, TableFile, func(b *fileBody) int { return b.V }, func(_ string, b *fileBody) error {
		v := l.c.files.named(b.LFN).versionFor(b.Version)
		v.existing, v.state, v.size, v.pfn, v.tag = true, present, b.Size, b.PFN, b.Tag
		v.identity = identityOf("existing", b.LFN, b.Identity)
		return nil
	})
}

func (l *loading) readCommits() error {
	l.commits = make(map[JobID]*commitBody)
	return each(l, TableCommit, func(b *commitBody) int { return b.V }, func(key string, b *commitBody) error {
		id, err := parseJobKey(key)
		l.commits[id] = b
		return err
	})
}

func (l *loading) readFates() error {
	l.fates = make(map[JobID]*fate)
	return each(l, TableFate, func(b *fateBody) int { return b.V }, func(key string, b *fateBody) error {
		id, err := parseJobKey(key)
		l.fates[id] = &b.fate
		return err
	})
}

// recorded gives the requests of a loaded job the versions that they had.
type recorded struct{ body *jobBody }

func (r recorded) read(i int, f *file) *version  { return f.versionFor(r.body.Read[i]) }
func (r recorded) write(i int, f *file) *version { return f.versionFor(r.body.Writes[i].Version) }

func (l *loading) jobs() error {
	c := l.c
	return each(l, TableJob, func(b *jobBody) int { return b.V }, func(key string, b *jobBody) error {
		id, err := parseJobKey(key)
		if err != nil || id != JobID(c.queue.jobs.Len()) {
			return fmt.Errorf("expected job %d", c.queue.jobs.Len())
		}
		if len(b.Read) != len(b.Reads) {
			return fmt.Errorf("job %s has %d inputs but %d versions of them", b.Name, len(b.Reads), len(b.Read))
		}
		s := b.job()
		if err := s.check(); err != nil {
			return err
		}
		if _, ok := c.JobNamed(s.Name); ok {
			return fmt.Errorf("job name %s is used twice", s.Name)
		}
		j := c.queue.bareJob(&s)
		c.queue.names.Add(c.queue.names.Hash(j.name), uint32(j.id))
		j.submitted = b.Submitted
		c.files.requestFiles(j, c.files.allNamed(s.Reads), recorded{b})
		j.fate = l.fates[id]
		return l.committed(j)
	})
}

// committed gives a job that was committed its outputs.
func (l *loading) committed(j *job) error {
	b := l.commits[j.id]
	if b == nil {
		return nil
	}
	c := l.c
	outputs := b.Outputs
	if b.Key != "" {
		key, err := parseIdentity(b.Key)
		if err != nil {
			return err
		}
		r, ok := c.journal.results[key]
		if !ok && !b.Whole {
			return fmt.Errorf("job %s is committed, but its result %s is not there", j.name, b.Key)
		}
		if !b.Whole {
			outputs = r.outputs
		}
		delete(c.journal.results, key)
		j.key = key
	}
	j.committed = b.Attempt
	if b.Reused {
		c.queue.markReused(j)
	}
	stored := j.reusable(outputs)
	if stored == nil {
		return fmt.Errorf("job %s is committed without the outputs that it promises", j.name)
	}
	for _, o := range stored {
		v := c.files.outputVersion(j, &o)
		v.size, v.records, v.adler, v.pfn, v.tag = o.Size, o.Records, o.Adler32, o.PFN, o.tag(j.committed)
		v.identity = j.identityOf(o.LFN)
		v.state = gone
		if v.pfn != "" {
			v.state = present
		}
	}
	for i := range j.requests {
		if v := j.requests[i].write; v != nil && v.file.pattern {
			v.state = present
		}
	}
	c.queue.setState(j, Done)
	return nil
}

// resume lets a loaded job go on from where it stood.
func (l *loading) resume(j *job) {
	c := l.c
	if j.state == Done && (j.fate == nil || j.fate.End == Waiting) {
		j.unpinLoaded()
		return
	}
	if f := j.fate; f != nil && f.End != Waiting {
		c.queue.setState(j, f.End)
		for i := range j.requests {
			if v := j.requests[i].write; v != nil && v.state == pending {
				v.state = missing
			}
		}
		if f.End == Cancelled {
			j.unpinLoaded()
		}
		return
	}
	if !j.withdrawn() {
		for i := range j.requests {
			c.files.insert(&j.requests[i])
		}
	}
	if j.fate != nil && j.fate.NotBefore > 0 {
		c.queue.armBackoff(j)
	}
	c.placement.letGoAll(c.queue.inheritPriority(j))
	c.files.startOut(j)
}

func (j *job) unpinLoaded() {
	for i := range j.requests {
		if v := j.requests[i].read; v != nil {
			v.pins--
		}
	}
}

func (l *loading) published() error {
	return each(l, TablePublished, func(b *publishedBody) int { return b.V }, func(lfn string, b *publishedBody) error {
		l.c.files.named(lfn).published = b.Version + 1
		return nil
	})
}

// publishPending asks again for what was committed and not yet published.
func (c *Core) publishPending() {
	for j := range c.queue.all {
		if j.state != Done {
			continue
		}
		for _, v := range c.files.writtenBy(j) {
			if v.state == present {
				c.files.publish(j, v)
			}
		}
	}
}

func (l *loading) removals() error {
	return each(l, TableRemove, func(b *removeBody) int { return b.V }, func(pfn string, _ *removeBody) error {
		l.c.files.removing[pfn] = true
		l.c.effects.Remove = append(l.c.effects.Remove, pfn)
		return nil
	})
}

func (l *loading) pilots() error {
	g := &l.c.fleet.grace
	g.awaited, g.byName = make(map[PilotID]string), make(map[string][]PilotID)
	return each(l, TablePilot, func(b *pilotBody) int { return b.V }, func(id string, b *pilotBody) error {
		name := launchName(PilotID(id), b.Launch)
		g.awaited[PilotID(id)] = b.Launch
		g.byName[name] = append(g.byName[name], PilotID(id)) // in the order of the IDs
		l.c.fleet.monitor.expect(PilotID(id), b)
		return nil
	})
}

func (l *loading) launches() error {
	return each(l, TableLaunch, func(b *launchBody) int { return b.V }, func(launch string, b *launchBody) error {
		l.c.fleet.monitor.launched(launch, b.Site)
		return nil
	})
}
