package dispatch

// Bounds of one look through the lists of ready readers of what a pilot
// holds. The choice is exact when at most one of its files has more than
// maxReaders ready readers of one group, and all others together have at most
// maxTallied. Beyond that, only the first reader by rank of each longer list
// is a candidate.
const (
	maxReaders = 64
	maxTallied = 4096
	maxWeighed = 256 // candidates whose share in the longer lists is looked up
)

// tally counts, for one pilot and one level, what it holds of the inputs of
// each ready job.
type tally struct {
	level      *level
	candidates []candidate
	slots      [2 * maxTallied]uint32 // round<<16 | index+1 in candidates, by hash of the job
	round      uint32
	long       []*readyReader
	weighed    []weighed
	longWeight int64 // at most this much of a job's input is in the longer lists
}

// weighed is a candidate that was set aside with its weight.
type weighed struct {
	index  int
	weight int64
}

type candidate struct {
	id     uint32
	file   int32 // the last one counted, so that none counts twice
	weight int64
	group  *group
}

func (t *tally) begin(l *level) {
	t.level, t.candidates, t.long, t.longWeight = l, t.candidates[:0], t.long[:0], 0
	t.round++
	if t.round == 1<<16 {
		t.round = 1
		t.slots = [len(t.slots)]uint32{}
	}
}

func (t *tally) add(id uint32, file int32, weight int64, g *group) {
	for i := id * 2654435761 >> 19; ; i = (i + 1) % uint32(len(t.slots)) {
		s := t.slots[i]
		if s>>16 != t.round {
			t.slots[i] = t.round<<16 | uint32(len(t.candidates)+1)
			t.candidates = append(t.candidates, candidate{id, file, weight, g})
			return
		}
		if x := &t.candidates[s&0xffff-1]; x.id == id {
			if x.file != file {
				x.file = file
				x.weight += weight
			}
			return
		}
	}
}

func (c *Core) weight(v *version) int64 { return c.rule.weight(v.size) }

// tallyLevel goes through the pilot's hot versions and forgets those that no
// ready job reads any more.
func (c *Core) tallyLevel(p *pilot, l *level) {
	c.tally.begin(l)
	hot := p.hot[:0]
	for i, v := range p.hot {
		if c.tallyVersion(p, l, v, int32(i)) {
			hot = append(hot, v)
			continue
		}
		h := p.cached[v]
		h.hot = false
		p.cached[v] = h
		v.announced = false
	}
	clear(p.hot[len(hot):])
	p.hot = hot
}

func (c *Core) tallyVersion(p *pilot, l *level, v *version, file int32) bool {
	t := &c.tally
	kept := v.ready[:0]
	for _, r := range v.ready {
		if len(r.jobs) <= maxReaders {
			r.jobs.keep(c.readyBit)
		} else {
			c.topOf(&r)
		}
		if len(r.jobs) == 0 {
			continue
		}
		kept = append(kept, r)
		if r.group.priority != l.priority || r.group.open != always {
			continue
		}
		if len(r.jobs) > maxReaders || len(t.candidates)+len(r.jobs) > maxTallied {
			t.long = append(t.long, &kept[len(kept)-1])
			t.longWeight += c.weight(v)
			continue
		}
		for _, id := range r.jobs {
			t.add(id, file, c.weight(v), r.group)
		}
	}
	clear(v.ready[len(kept):])
	v.ready = kept
	return len(kept) > 0
}

func (c *Core) topOf(r *readyReader) (uint32, bool) { return c.top(&r.jobs, r.group) }

// bestCached returns the job of the tallied level with most input at the
// pilot, of those that are not kept for another, or nil if it holds nothing of
// any.
func (c *Core) bestCached(p *pilot) *job {
	t := &c.tally
	var best *job
	var most int64
	better := func(j *job, w int64) {
		if (w > most || w == most && (best == nil || j.id < best.id)) && !c.keepBack(j, p) {
			best, most = j, w
		}
	}
	for _, r := range t.long {
		if id, ok := c.topOf(r); ok && r.group.open == always {
			better(c.jobs[id], c.weigh(p, c.jobs[id]))
		}
	}
	for range maxWeighed {
		i := t.heaviest()
		if i < 0 || t.candidates[i].weight+t.longWeight < most {
			break
		}
		x := &t.candidates[i]
		w := x.weight
		x.weight = 0
		if !c.isReady(x.id, x.group) {
			continue
		}
		t.weighed = append(t.weighed, weighed{i, w})
		better(c.jobs[x.id], c.weigh(p, c.jobs[x.id]))
		if best != nil && w+t.longWeight == most && best.id == JobID(x.id) {
			break
		}
	}
	for _, x := range t.weighed {
		t.candidates[x.index].weight = x.weight
	}
	t.weighed = t.weighed[:0]
	return best
}

// heaviest returns the index of the candidate of most weight, of these the
// first by rank, or -1.
func (t *tally) heaviest() int {
	best := -1
	for i := range t.candidates {
		x := &t.candidates[i]
		if x.weight > 0 && x.group.open == always && (best < 0 || x.weight > t.candidates[best].weight ||
			x.weight == t.candidates[best].weight && x.id < t.candidates[best].id) {
			best = i
		}
	}
	return best
}

// weigh returns how much of the job's input the pilot holds.
func (c *Core) weigh(p *pilot, j *job) int64 {
	var sum int64
	for i := range j.requests {
		if v := j.requests[i].read; v != nil {
			if _, ok := p.cached[v]; ok {
				sum += c.weight(v)
			}
		}
	}
	return sum
}
