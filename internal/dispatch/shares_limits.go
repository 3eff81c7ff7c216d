package dispatch

import (
	"fairway/internal/dispatch/fairtree"
	"fairway/internal/taskqueue"
)

// exceeded returns the user or the nearest group that may not have an attempt more at a site, with
// so many thousandths of processors; nil if all may. One that it is to replace does not count.
func exceeded(s *share, site string, cpus int64, replaced *attempt) *share {
	more := fairtree.Amount{Running: 1, MilliCPUs: cpus}
	if replaced == nil || replaced.cost.slots == 0 {
		return s.Beyond(site, more, "", fairtree.Amount{})
	}
	return s.Beyond(site, more, replaced.site(), replaced.amount())
}

func (sh *shares) setKept(in taskqueue.SetKept) error {
	if err := in.Account.Check(); err != nil {
		return err
	}
	user := sh.Of(in.Account)
	user.SetKept(in.Bytes)
	sh.gaveBack(user)
	return nil
}

func (sh *shares) hold(why string) {
	if sh.Hold(why) {
		sh.freed = true
	}
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
func (js *jobs) poolsOf(id taskqueue.RunID, name string) (list []*pool) {
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
	for _, x := range a.cost.pools {
		if x.pool == p {
			return x.n
		}
	}
	return 0
}

// allowed reports whether neither a quota nor a pool forbids that the pilot gets the job. What an
// attempt of the job has now counts as given back.
func (pl *placement) allowed(j *job, p *pilot) bool {
	if pl.shares.Alone() && len(j.class.pools) == 0 {
		return true
	}
	return pl.shares.lackingPool(j.class, j, j.attempt) == nil && pl.withinQuota(j.share(), j.class, p, j.attempt)
}

// withinQuota reports whether no quota forbids that the pilot gets a job of the user and the class,
// in place of an attempt if that is not nil.
func (pl *placement) withinQuota(s *share, cl *class, p *pilot, replaced *attempt) bool {
	return exceeded(s, p.launch.site.Name, p.cpusOf(cl), replaced) == nil
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
	for s := range js.shares.InOrder {
		room := s.Room()
		for _, l := range s.Own.levels {
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

// amount is what the attempt takes of what quotas bound.
func (a *attempt) amount() fairtree.Amount {
	return fairtree.Amount{Running: 1, MilliCPUs: a.cost.cpus}
}
