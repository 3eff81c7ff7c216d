package dispatch

import (
	"slices"
	"strings"
)

// pilot is a registered pilot, as far as its syncs have told.
type pilot struct {
	id       PilotID
	info     PilotInfo
	shape    *shape
	host     *host
	launch   *launch
	seq      uint64 // of the newest Sync
	held     uint64 // Seq of the parked Sync, 0 if none
	heldAt   instant
	synced   bool   // its whole state is known
	base     uint64 // the first answer since it was registered; changes must build on it
	drains   bool
	news     bool   // something is to be said to it
	listed   bool   // on the list of those to be answered in this step
	acked    uint64 // the highest LastAnswer
	needFull bool   // its whole state is to be asked for

	attempts []*attempt // in the order of their assignment
	ending   []ending   // attempts that are not to be, until it has been told
	used     usage
	reserved *job // nothing else is assigned until this fits

	cached   map[*version]holding
	other    map[FileRef]int64 // sizes of copies that are, so far, none of a committed version
	versions []*version        // those of cached, in an order of their own
	hot      []*version        // that have ready readers, and some that had
	asked    uint64            // value of Core.offers when it last asked in vain, plus 1
	parked   int               // index in fleet.parked plus 1
	between  bool              // counted in Core.between
	asks     bool              // listed among those that want jobs in this step
	awaited  int               // jobs that are kept for it
	polls    bool              // its last Sync was not to be held
	due      instant           // of its next Sync, while none is held
	advice   advice

	silentAfter instant // from then on it counts as lost
	armed       instant // when its timer fires
	left        bool    // no longer registered
	toldToLeave bool
}

// holding is a version in a pilot's cache.
type holding struct {
	at     int32 // index in the pilot's list
	holder int32 // index of the pilot among the version's holders
	hot    int32 // index in hot plus 1; 0 if it is not listed there
}

type ending struct {
	attempt AttemptID
	number  uint64 // of the answer that said so first
}

// attempt is an assignment that has not ended.
type attempt struct {
	id        AttemptID
	job       *job
	pilot     *pilot
	next      *attempt // of the same job
	needs     *class
	number    uint64 // of the answer that carried it first, 0 if none did
	endNumber uint64 // of the answer that ended it first
	try       int
	since     instant // when it was known to run
	started   bool
	adopted   bool // the pilot reported it in its whole state
	ended     bool // the pilot is told to end it
	recall    bool // only because another pilot could run it now
	ahead     bool // beyond what was free
}

// usage is the sum of what assigned attempts need.
type usage struct {
	milliCPUs, memory, disk int64
	countable               []countable
}

// shape is what pilots of one kind have in common; whether a class fits it is
// found once.
type shape struct {
	key    classKey
	site   string
	has    Resources
	tools  map[string]bool
	fits   []int8 // by class index: 0 unknown, 1 yes, -1 no
	pilots int    // registered
	hosts  map[string]int
}

type host struct {
	name   string
	pilots []*pilot // in the order of their registration
	shares int      // how many of them share their caches
}

// minSlot is what a job that states no processors takes of one.
const minSlot = 1000

func (p *pilot) totalCPUs() int64 {
	if p.info.Has.MilliCPUs == 0 {
		return minSlot
	}
	return p.info.Has.MilliCPUs
}

func (p *pilot) cpusOf(cl *class) int64 {
	if cl.key.milliCPUs == 0 {
		return min(minSlot, p.totalCPUs())
	}
	return cl.key.milliCPUs
}

// slots is how many jobs of one processor each it runs at a time.
func (p *pilot) slots() int { return max(1, int(p.totalCPUs()/minSlot)) }

// room reports whether the pilot has, in all times over, what the class needs
// besides what is assigned already.
func (p *pilot) room(cl *class, times int64) bool {
	k := &cl.key
	if p.used.milliCPUs+p.cpusOf(cl) > times*p.totalCPUs() ||
		p.used.memory+k.memory > times*p.info.Has.Memory ||
		p.used.disk+k.disk > times*p.info.Has.Disk {
		return false
	}
	for _, n := range cl.countable {
		if p.used.count(n.name)+n.n > times*p.info.Has.Countable[n.name] {
			return false
		}
	}
	return true
}

func (u *usage) count(name string) int64 {
	for i := range u.countable {
		if u.countable[i].name == name {
			return u.countable[i].n
		}
	}
	return 0
}

// add takes (sign 1) or gives back (sign -1) what the class needs.
func (p *pilot) add(cl *class, sign int64) {
	u := &p.used
	u.milliCPUs += sign * p.cpusOf(cl)
	u.memory += sign * cl.key.memory
	u.disk += sign * cl.key.disk
	for _, n := range cl.countable {
		i := slices.IndexFunc(u.countable, func(x countable) bool { return x.name == n.name })
		if i < 0 {
			u.countable = append(u.countable, countable{name: n.name})
			i = len(u.countable) - 1
		}
		u.countable[i].n += sign * n.n
	}
}

// willing says whether the pilot itself is prepared to take jobs.
func (p *pilot) willing() bool { return p.synced && !p.drains && !p.left && p.info.Error == "" }

// takes says whether the pilot may be given jobs at all.
func (fl *fleet) takes(p *pilot) bool { return p.willing() && fl.stop == running && fl.grace.over }

func (fl *fleet) shapeFor(i *PilotInfo) *shape {
	tools := slices.Clone(i.Tools)
	slices.Sort(tools)
	tools = slices.Compact(tools)
	k := classKey{
		milliCPUs: i.Has.MilliCPUs, memory: i.Has.Memory, disk: i.Has.Disk,
		countable: joinCountable(i.Has.Countable), tools: strings.Join(tools, "\n"), site: i.Site,
	}
	if s := fl.shapeOf[k]; s != nil {
		return s
	}
	s := &shape{key: k, site: i.Site, has: i.Has, tools: make(map[string]bool), hosts: make(map[string]int)}
	for _, t := range tools {
		s.tools[t] = true
	}
	fl.shapes = append(fl.shapes, s)
	fl.shapeOf[k] = s
	return s
}

// slots is how many jobs of one processor each a pilot of this shape runs at a
// time.
func (s *shape) slots() int { return int(max(1, s.has.MilliCPUs/minSlot)) }

// suits reports whether a pilot of this shape could run the class if it ran
// nothing else.
func (s *shape) suits(cl *class) bool {
	for len(s.fits) <= cl.index {
		s.fits = append(s.fits, 0)
	}
	if s.fits[cl.index] == 0 {
		s.fits[cl.index] = -1
		if len(lacks(cl, s.has, s.tools)) == 0 {
			s.fits[cl.index] = 1
		}
	}
	return s.fits[cl.index] > 0
}

// searched is up to how many versions a search through all of them is faster
// than a look into the map.
const searched = 16

// holds says whether the version is in the pilot's cache.
func (p *pilot) holds(v *version) bool {
	if len(p.versions) <= searched {
		return slices.Contains(p.versions, v)
	}
	_, held := p.cached[v]
	return held
}

// heat lists a held version as one that has ready readers.
func (p *pilot) heat(v *version) {
	if h := p.cached[v]; h.hot == 0 {
		p.hot = append(p.hot, v)
		h.hot = int32(len(p.hot))
		p.cached[v] = h
	}
}

// cool takes a held version off that list.
func (p *pilot) cool(v *version) {
	h := p.cached[v]
	if h.hot == 0 {
		return
	}
	if moved := removeAt(&p.hot, h.hot-1); moved != v {
		m := p.cached[moved]
		m.hot = h.hot
		p.cached[moved] = m
	}
	h.hot = 0
	p.cached[v] = h
}

// removeAt puts the last element in the place of another, and returns it.
func removeAt[T any](list *[]T, i int32) T {
	moved := pop(list)
	if int(i) < len(*list) {
		(*list)[i] = moved
	}
	return moved
}

// hold is for a copy with the version's tag that came into a pilot's cache, with
// the size that is known of it.
func (fs *files) hold(p *pilot, v *version, size int64) {
	if p.holds(v) {
		fs.outdate(p, v, size)
		return
	}
	p.advice.incoming += size
	p.cached[v] = holding{at: int32(len(p.versions)), holder: int32(len(v.holders))}
	p.versions = append(p.versions, v)
	v.holders = append(v.holders, p)
	if v.announced {
		p.heat(v)
	}
	if v.state == gone || v.state == missing && v.identity != (identity{}) {
		fs.backAgain(v)
	}
}

// dropCopy is for a version that left a pilot's cache.
func (c *Core) dropCopy(p *pilot, v *version) {
	if c.files.drop(p, v) {
		c.lostLastCopy(v)
	}
}

// drop takes a version out of a pilot's cache, and reports whether that was the
// last copy of one that could be had.
func (fs *files) drop(p *pilot, v *version) bool {
	if !p.holds(v) {
		return false
	}
	p.cool(v)
	h := p.cached[v]
	delete(p.cached, v)
	delete(fs.older, copyOf{p, v})
	if moved := removeAt(&p.versions, h.at); moved != v {
		m := p.cached[moved]
		m.at = h.at
		p.cached[moved] = m
	}
	if moved := removeAt(&v.holders, h.holder); moved != p {
		m := moved.cached[v]
		m.holder = h.holder
		moved.cached[v] = m
	}
	return v.state == present && !v.hasCopy()
}

func (c *Core) clearCache(p *pilot) {
	for len(p.versions) > 0 {
		c.dropCopy(p, p.versions[len(p.versions)-1])
	}
	clear(p.other)
}
