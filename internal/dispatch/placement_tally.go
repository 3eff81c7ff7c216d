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

// tally finds, for one pilot and one level, the ready job that reads most of
// what the pilot holds. A job that reads only one of the pilot's files comes
// after those before it in the list of that file. So the candidates are the jobs that
// stand in several lists, and the first of each list; the others only where
// these do not decide.
type tally struct {
	level      *level
	lists      []readerList
	listed     int    // jobs in lists
	touched    uint32 // see touch
	met        filter
	shared     []uint32
	candidates []candidate
	slots      [2 * maxTallied]uint32 // round<<16 | index+1 in candidates, by hash of the job
	round      uint32
	long       []*readyReader
	longWeight int64 // at most this much of a job's input is in the longer lists
	all        bool  // all jobs of lists are candidates
	weighed    []weighed
}

// readerList is the ready readers of one held file that are of one group, if
// these are not too many.
type readerList struct {
	*readyReader
	file   int32 // index among the hot files of the pilot
	weight int64
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
	t.level, t.lists, t.listed, t.long, t.longWeight = l, t.lists[:0], 0, t.long[:0], 0
	t.candidates, t.all = t.candidates[:0], false
	t.round++
	if t.round == 1<<16 {
		t.round = 1
		t.slots = [len(t.slots)]uint32{}
	}
}

// find returns the candidate of the job, or nil and where it is to be entered.
func (t *tally) find(id uint32) (*candidate, uint32) {
	for i := id * 2654435761 >> 19; ; i = (i + 1) % uint32(len(t.slots)) {
		s := t.slots[i]
		if s>>16 != t.round {
			return nil, i
		}
		if x := &t.candidates[s&0xffff-1]; x.id == id {
			return x, i
		}
	}
}

// enter makes a job of the list a candidate, if it is none.
func (t *tally) enter(id uint32, l *readerList) {
	if x, slot := t.find(id); x == nil {
		t.slots[slot] = t.round<<16 | uint32(len(t.candidates)+1)
		t.candidates = append(t.candidates, candidate{id, l.file, l.weight, l.group})
	}
}

// count enters a job of the list, or adds to what it reads.
func (t *tally) count(id uint32, l *readerList) {
	x, _ := t.find(id)
	if x == nil {
		t.enter(id, l)
	} else if x.file != l.file {
		x.file = l.file
		x.weight += l.weight
	}
}

// countShared enters the jobs that stand in several lists, and a few others.
func (t *tally) countShared() {
	t.shared = t.shared[:0]
	t.met = filter{}
	for i := range t.lists {
		for _, id := range t.lists[i].jobs {
			if t.met.add(id) {
				t.shared = append(t.shared, id)
			}
		}
	}
	if len(t.shared) == 0 {
		return
	}
	t.met = filter{}
	for _, id := range t.shared {
		t.met.add(id)
	}
	for i := range t.lists {
		for _, id := range t.lists[i].jobs {
			if t.met.has(id) {
				t.count(id, &t.lists[i])
			}
		}
	}
}

// filter is a set of jobs that may hold some by mistake. It is so small that it
// stays in the processor's nearest cache.
type filter [512]uint64

func (f *filter) bit(id uint32) (word *uint64, mask uint64) {
	h := id * 2654435761 >> 17
	return &f[h/64], 1 << (h % 64)
}

// add reports whether the job seemed to be there before.
func (f *filter) add(id uint32) bool {
	word, mask := f.bit(id)
	before := *word
	*word = before | mask
	return before&mask != 0
}

func (f *filter) has(id uint32) bool {
	word, mask := f.bit(id)
	return *word&mask != 0
}

// enterAll makes all jobs of the lists candidates.
func (t *tally) enterAll() {
	if t.all {
		return
	}
	t.all = true
	for i := range t.lists {
		for _, id := range t.lists[i].jobs {
			t.enter(id, &t.lists[i])
		}
	}
}

// tallyLevel goes through the pilot's hot versions and forgets those that no
// ready job reads any more.
func (pl *placement) tallyLevel(p *pilot, l *level) {
	t := &pl.tally
	t.begin(l)
	t.touched = touch(p.copies.hot)
	for i := 0; i < len(p.copies.hot); {
		v := p.copies.hot[i]
		if pl.tallyVersion(p, l, v, int32(i)) {
			i++
			continue
		}
		p.cool(v)
		v.announced = false
	}
	t.countShared()
	for i := range t.lists {
		t.enter(t.lists[i].jobs[0], &t.lists[i])
	}
}

// touch reads the beginnings of all lists, without a use of it. So the
// processor fetches them from memory together, instead of one after the other.
func touch(hot []*version) (sum uint32) {
	for _, v := range hot {
		for i := range v.ready {
			if jobs := v.ready[i].jobs; len(jobs) > 0 {
				sum += jobs[0]
			}
		}
	}
	return sum
}

func (pl *placement) tallyVersion(p *pilot, l *level, v *version, file int32) bool {
	live := v.ready[:0]
	for _, r := range v.ready {
		if len(r.jobs) <= maxReaders {
			r.jobs.Retain(pl.jobs.readyBit)
		} else {
			pl.jobs.topOf(&r)
		}
		if len(r.jobs) == 0 {
			continue
		}
		live = append(live, r)
		if r.group.level == l && r.group.admission == always {
			pl.tally.list(&live[len(live)-1], file, pl.ruleFor(r.group.class, p).Weight(v.size))
		}
	}
	clear(v.ready[len(live):])
	v.ready = live
	return len(live) > 0
}

// list takes the readers of a file that the pilot holds.
func (t *tally) list(r *readyReader, file int32, weight int64) {
	if len(r.jobs) > maxReaders || t.listed+len(r.jobs) > maxTallied {
		t.long = append(t.long, r)
		t.longWeight += weight
		return
	}
	t.listed += len(r.jobs)
	t.lists = append(t.lists, readerList{r, file, weight})
}

// bestCached returns the job of the tallied level with most input at the
// pilot, of those that are not kept for another, or nil if it holds nothing of
// any.
func (pl *placement) bestCached(p *pilot) *job {
	t := &pl.tally
	var best *job
	var most int64
	better := func(j *job, w int64) {
		if w < most || w == most && best != nil && j.row >= best.row {
			return
		}
		if !pl.mayFill(p, j) || pl.keepForOther(j, p) {
			t.enterAll()
			return
		}
		best, most = j, w
	}
	for _, r := range t.long {
		if id, ok := pl.jobs.topOf(r); ok && r.group.admission == always {
			better(pl.jobs.table.At(id), pl.weigh(p, pl.jobs.table.At(id)))
		}
	}
	if t.longWeight > 0 {
		t.enterAll()
	}
	for range maxWeighed {
		i := t.heaviest()
		if i < 0 || t.candidates[i].weight+t.longWeight < most {
			break
		}
		x := t.candidates[i]
		t.candidates[i].weight = 0
		if !pl.mayTake(&x) {
			pl.enterFirst()
			continue
		}
		t.weighed = append(t.weighed, weighed{i, x.weight})
		better(pl.jobs.table.At(x.id), pl.weigh(p, pl.jobs.table.At(x.id)))
		if best != nil && x.weight+t.longWeight == most && best.row == x.id {
			break
		}
	}
	for _, x := range t.weighed {
		t.candidates[x.index].weight = x.weight
	}
	t.weighed = t.weighed[:0]
	return best
}

// mayTake reports whether the candidate is still one. A list may name it under a
// group that it has left for another.
func (pl *placement) mayTake(x *candidate) bool {
	if !pl.jobs.readyBit.Has(x.id) {
		return false
	}
	g := pl.jobs.table.At(x.id).group
	return g.level == pl.tally.level && g.admission == always
}

// enterFirst enters those that are first in their lists now.
func (pl *placement) enterFirst() {
	for i := range pl.tally.lists {
		l := &pl.tally.lists[i]
		if id, ok := pl.jobs.topOf(l.readyReader); ok {
			pl.tally.enter(id, l)
		}
	}
}

// heaviest returns the index of the candidate of most weight, of these the
// first by rank, or -1.
func (t *tally) heaviest() int {
	best := -1
	for i := range t.candidates {
		x := &t.candidates[i]
		if x.weight > 0 && x.group.admission == always && (best < 0 || x.weight > t.candidates[best].weight ||
			x.weight == t.candidates[best].weight && x.id < t.candidates[best].id) {
			best = i
		}
	}
	return best
}
