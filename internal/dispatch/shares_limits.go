package dispatch

import (
	"fairway/internal/dispatch/fairtree"
	"fairway/internal/dispatch/pools"
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

// poolsOf returns the pools of a name that jobs of a run draw on: those of the run itself and of
// the TaskQueue.
func (js *jobs) poolsOf(id taskqueue.RunID, name string) (list []*pools.Pool[*job]) {
	if r := js.runs.byID[id]; r != nil && r.pools[name] != nil {
		list = append(list, r.pools[name])
	}
	if p := js.shares.pools[name]; p != nil {
		list = append(list, p)
	}
	return list
}

// allowed reports whether neither a quota nor a pool forbids that the pilot gets the job. What an
// attempt of the job has now counts as given back.
func (pl *placement) allowed(j *job, p *pilot) bool {
	if pl.shares.Alone() && len(j.class.pools) == 0 {
		return true
	}
	var held pools.Needs[*job]
	if j.attempt != nil {
		held = j.attempt.cost.pools
	}
	return !j.class.pools.Lacks(pl.now, j, 1, held) && pl.withinQuota(j.share(), j.class, p, j.attempt)
}

// withinQuota reports whether no quota forbids that the pilot gets a job of the user and the class,
// in place of an attempt if that is not nil.
func (pl *placement) withinQuota(s *share, cl *class, p *pilot, replaced *attempt) bool {
	return exceeded(s, p.launch.site.Name, p.room.CPUsOf(&cl.takes), replaced) == nil
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
				n := min(g.ready, room/each, g.class.pools.Room(each))
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
