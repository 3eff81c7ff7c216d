package dispatch

import (
	"errors"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode"
)

// Quota bounds what the runs of a user, or of all users of a group together, may have. Of
// each amount 0 means that it is not bounded.
type Quota struct {
	Running   int                  `json:"r,omitempty"` // attempts that were given to pilots
	MilliCPUs int64                `json:"c,omitempty"` // of these
	Queued    int                  `json:"q,omitempty"` // jobs that are waiting or ready: see Core.Queued
	Stored    int64                `json:"b,omitempty"` // bytes of outputs; above that nothing more is started
	Sites     map[string]SiteQuota `json:"s,omitempty"`
}

// SiteQuota bounds what they may have at one site; 0 means that it is not bounded.
type SiteQuota struct {
	Running   int   `json:"r,omitempty"`
	MilliCPUs int64 `json:"c,omitempty"`
}

// taken is what attempts at one site have of a SiteQuota.
type taken struct {
	running int
	cpus    int64
}

func (s *share) takeAt(site string, running int, cpus int64) {
	if len(s.quota.Sites) == 0 && s.atSite == nil {
		return
	}
	t := s.atSite[site]
	if t == nil {
		if s.atSite == nil {
			s.atSite = make(map[string]*taken)
		}
		t = &taken{}
		s.atSite[site] = t
	}
	t.running += running
	t.cpus += cpus
}

// mayBegin reports whether no quota forbids that a pilot gets any job of the user.
func (s *share) mayBegin(p *pilot) bool { return s.exceeded(p.launch.site.Name, 1, nil) == nil }

// exceeded returns the user or the nearest group that may not have an attempt more at a site, with
// so many thousandths of processors; nil if all may. One that it is to replace does not count.
func (s *share) exceeded(site string, cpus int64, replaced *attempt) *share {
	for x := range s.up {
		if x.quota.bounds() && x.wouldExceed(site, cpus, replaced) {
			x.stopped = true
			return x
		}
	}
	return nil
}

func (q *Quota) bounds() bool {
	return q.Running != 0 || q.MilliCPUs != 0 || q.Stored != 0 || len(q.Sites) != 0
}

func (s *share) wouldExceed(site string, cpus int64, replaced *attempt) bool {
	all, here := taken{s.attempts + 1, s.cpus + cpus}, taken{1, cpus}
	if t := s.atSite[site]; t != nil {
		here.running += t.running
		here.cpus += t.cpus
	}
	if a := replaced; a != nil && a.slots > 0 {
		all.running--
		all.cpus -= a.cpus
		if a.pilot.launch.site.Name == site {
			here.running--
			here.cpus -= a.cpus
		}
	}
	q := &s.quota
	return all.exceeds(q.Running, q.MilliCPUs) || here.exceeds(q.Sites[site].Running, q.Sites[site].MilliCPUs) ||
		q.Stored > 0 && s.stored >= q.Stored
}

func (t taken) exceeds(running int, cpus int64) bool {
	return running > 0 && t.running > running || cpus > 0 && t.cpus > cpus
}

// gaveBack is for a share of which an attempt has ended: if it was kept from more, parked pilots
// are to ask again.
func (sh *shares) gaveBack(s *share) {
	if s.stopped {
		s.stopped = false
		sh.freed = true
	}
}

// gaveBackOf is gaveBack for a user and all groups of that.
func (sh *shares) gaveBackOf(user *share) {
	for s := range user.up {
		sh.gaveBack(s)
	}
}

// SetKept says how many bytes of outputs of a user's runs are kept that were retired. It is not
// durable: the caller steps it again after each Load.
type SetKept struct {
	Account Account
	Bytes   int64
}

func (SetKept) isInput() {}

func (sh *shares) setKept(in SetKept) error {
	if err := in.Account.check(); err != nil {
		return err
	}
	user := sh.account(in.Account)
	for s := range user.up {
		s.stored += in.Bytes - user.kept
	}
	user.kept = in.Bytes
	sh.gaveBackOf(user)
	return nil
}

// pool is a resource that is none of pilots: all attempts, or those of one run, together hold at
// most so much of it. It is granted with the other needs of a job, when that is given out, and
// given back when the attempt ends.
type pool struct {
	name    string
	most    int64
	used    int64
	stopped bool // somebody was not granted it since some was given back

	keptFor   *job // it was passed over for too long, and nobody else is granted any
	keptUntil instant
}

// poolNeed is how much a class needs of a pool.
type poolNeed struct {
	pool *pool
	n    int64
}

// poolsOf returns the pools of a name that jobs of a run draw on: those of the run itself and of
// the TaskQueue.
func (js *jobs) poolsOf(id RunID, name string) (list []*pool) {
	if r := js.runs.byID[id]; r != nil && r.pools[name] != nil {
		list = append(list, r.pools[name])
	}
	if p := js.shares.pools[name]; p != nil {
		list = append(list, p)
	}
	return list
}

// setPools takes what a caller says of the limits of a run or of the TaskQueue.
func setPools(pools map[string]*pool, limits map[string]int64) map[string]*pool {
	if len(limits) == 0 && len(pools) == 0 {
		return nil
	}
	now := make(map[string]*pool, len(limits))
	for name, most := range limits {
		p := pools[name]
		if p == nil {
			p = &pool{name: name}
		}
		p.most = most
		now[name] = p
	}
	return now
}

// grants takes (sign 1) what the class needs of pools, or gives it back (sign -1).
func (sh *shares) grants(pools []poolNeed, sign int64) {
	for _, x := range pools {
		x.pool.used += sign * x.n
		if sign < 0 && x.pool.stopped {
			x.pool.stopped = false
			sh.freed = true
		}
	}
}

// lackingPool returns the first pool that has too little left for a job of the class, nil if none
// has. What is kept for another job is not left. What an attempt holds that is to be replaced is.
func (sh *shares) lackingPool(cl *class, j *job, replaced *attempt) *pool {
	for _, x := range cl.pools {
		used := x.pool.used
		if replaced != nil {
			used -= replaced.holds(x.pool)
		}
		kept := x.pool.keptFor != nil && x.pool.keptFor != j && sh.now < x.pool.keptUntil
		if used+x.n > x.pool.most || kept {
			x.pool.stopped = true
			return x.pool
		}
	}
	return nil
}

func (a *attempt) holds(p *pool) int64 {
	for _, x := range a.pools {
		if x.pool == p {
			return x.n
		}
	}
	return 0
}

// allowed reports whether neither a quota nor a pool forbids that the pilot gets the job. What an
// attempt of the job has now counts as given back.
func (pl *placement) allowed(j *job, p *pilot) bool {
	if pl.shares.solo && len(j.class.pools) == 0 {
		return true
	}
	return pl.shares.lackingPool(j.class, j, j.attempt) == nil && pl.withinQuota(j.share(), j.class, p, j.attempt)
}

// withinQuota reports whether no quota forbids that the pilot gets a job of the user and the class,
// in place of an attempt if that is not nil.
func (pl *placement) withinQuota(s *share, cl *class, p *pilot, replaced *attempt) bool {
	return s.exceeded(p.launch.site.Name, p.cpusOf(cl), replaced) == nil
}

// offerFreed has parked pilots ask again when something was given back that jobs wait for.
func (pl *placement) offerFreed() {
	if !pl.shares.freed {
		return
	}
	pl.shares.freed = false
	pl.fleet.monitor.changed = true
	pl.offers++
	for _, p := range pl.fleet.parked {
		pl.fleet.wantsJobs(p)
	}
}

// startable yields the groups of ready jobs with how many of them limits would allow to be given out
// now, if there were pilots for all.
func (js *jobs) startable(yield func(*group, int) bool) {
	for s := range js.shares.inOrder {
		room := s.room()
		for _, l := range s.levels {
			for _, g := range l.groups {
				each := g.class.tasks()
				n := min(g.ready, room/each)
				for _, x := range g.class.pools {
					if x.n > 0 {
						n = min(n, int(max(0, x.pool.most-x.pool.used)/(x.n*int64(each))))
					}
				}
				if n == 0 {
					continue
				}
				if !yield(g, n) {
					return
				}
				room -= n * each
			}
		}
	}
}

// room is how many attempts more a user may have.
func (s *share) room() int {
	room := math.MaxInt
	for x := range s.up {
		if q := &x.quota; q.Stored > 0 && x.stored >= q.Stored {
			return 0
		} else if q.Running > 0 {
			room = min(room, max(0, q.Running-x.attempts))
		}
	}
	return room
}

// keepPools keeps what the job needs of pools from others, until it gets that: it was passed over
// for too long. A pilot that could run it must ask at least each MaxPassOver, or others get it.
func (pl *placement) keepPools(j *job) {
	for _, x := range j.class.pools {
		if x.pool.keptFor == nil || x.pool.keptFor == j || x.pool.keptUntil <= pl.now {
			x.pool.keptFor, x.pool.keptUntil = j, pl.now.after(pl.config.MaxPassOver)
		}
	}
}

// freePools ends that for a job that is not ready any more.
func (pl *placement) freePools(j *job) {
	for _, x := range j.class.pools {
		if x.pool.keptFor == j {
			x.pool.keptFor = nil
			pl.shares.freed = pl.shares.freed || x.pool.stopped
		}
	}
}

// check refuses an account whose name others could be mistaken for.
func (a Account) check() error {
	if a.User == "" {
		if a.Group != "" {
			return refuse("dispatch: group %s without a user", a.Group)
		}
		return nil
	}
	if !NamesShare(a.User) {
		return refuse("dispatch: %q cannot be the name of a user", a.User)
	}
	if a.Group == "" {
		return nil
	}
	for name := range strings.SplitSeq(a.Group, "/") {
		if !NamesShare(name) {
			return refuse("dispatch: %q cannot be the name of a group", a.Group)
		}
	}
	return nil
}

// maxShareName bounds the name of a user or a group, in bytes.
const maxShareName = 256

// NamesShare reports whether a user or a group may have the name.
func NamesShare(name string) bool {
	return name != "" && len(name) <= maxShareName && !strings.ContainsFunc(name, func(c rune) bool {
		return c == '/' || unicode.IsControl(c) || unicode.IsSpace(c)
	})
}

func (s Shares) check() error {
	if s.HalfLife < 0 {
		return refuse("dispatch: a half-life cannot be negative")
	}
	if err := checkLimits(s.Limits); err != nil {
		return err
	}
	n := 0
	return checkShares(s.Of, &n)
}

func checkLimits(limits map[string]int64) error {
	for _, name := range slices.Sorted(maps.Keys(limits)) {
		if name == "" || limits[name] < 0 {
			return refuse("dispatch: limit %q of %d", name, limits[name])
		}
	}
	return nil
}

var errManyShares = errors.New("too many users and groups")

func checkShares(list []Share, n *int) error {
	type named struct {
		name string
		user bool
	}
	known := make(map[named]bool)
	for i := range list {
		s := &list[i]
		if *n++; *n > maxAccounts {
			return refuse("dispatch: %w", errManyShares)
		}
		q := &s.Limits
		switch {
		case !NamesShare(s.Name):
			return refuse("dispatch: %q cannot be the name of a user or a group", s.Name)
		case known[named{s.Name, s.User}]:
			return refuse("dispatch: %s is named twice in one group", s.Name)
		case s.Weight < 0:
			return refuse("dispatch: the weight of %s is negative", s.Name)
		case s.User && len(s.Of) > 0:
			return refuse("dispatch: user %s is no group", s.Name)
		case q.Running < 0 || q.MilliCPUs < 0 || q.Queued < 0 || q.Stored < 0:
			return refuse("dispatch: a limit of %s is negative", s.Name)
		}
		for site, at := range q.Sites {
			if at.Running < 0 || at.MilliCPUs < 0 {
				return refuse("dispatch: a limit of %s at site %s is negative", s.Name, site)
			}
		}
		known[named{s.Name, s.User}] = true
		if err := checkShares(s.Of, n); err != nil {
			return err
		}
	}
	return nil
}
