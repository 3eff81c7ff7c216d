// Package pools counts resources that are none of pilots, as licences are: all jobs that run, or those of one
// run, together hold at most so much of each. It knows a job as an identity J only; the zero J is none.
package pools

import (
	"maps"
	"math"
	"slices"

	"fairway/internal/taskqueue"
)

// Pool is one such resource. It is granted with the other needs of a job, when that is given out, and
// given back when the attempt ends.
type Pool[J comparable] struct {
	name    string
	most    int64
	used    int64
	stopped bool // somebody was not granted it since some was given back

	keptFor   J // it was passed over for too long, and nobody else is granted any
	keptUntil taskqueue.Instant
}

// Used is how much of it is granted.
func (p *Pool[J]) Used() int64 { return p.used }

// isKept reports whether it is kept for another job.
func (p *Pool[J]) isKept(now taskqueue.Instant, from J) bool {
	var none J
	return p.keptFor != none && p.keptFor != from && now < p.keptUntil
}

// Set is pools by their names.
type Set[J comparable] map[string]*Pool[J]

// Limited returns the pools that the limits name, of which those stay that were there.
func (s Set[J]) Limited(limits map[string]int64) Set[J] {
	if len(limits) == 0 && len(s) == 0 {
		return nil
	}
	now := make(Set[J], len(limits))
	for name, most := range limits {
		p := s[name]
		if p == nil {
			p = &Pool[J]{name: name}
		}
		p.most = most
		now[name] = p
	}
	return now
}

// Views returns what there is of each, by name.
func (s Set[J]) Views() (list []taskqueue.LimitView) {
	for _, name := range slices.Sorted(maps.Keys(s)) {
		list = append(list, taskqueue.LimitView{Name: name, Most: s[name].most, Used: s[name].used})
	}
	return list
}

// Need is how much a job needs of a pool.
type Need[J comparable] struct {
	Pool *Pool[J]
	N    int64
}

// Needs is what a job needs of pools, or what an attempt holds of them. Each pool is there once.
type Needs[J comparable] []Need[J]

// Grant counts what a job is given.
func (n Needs[J]) Grant() {
	for _, x := range n {
		x.Pool.used += x.N
	}
}

// GiveBack counts what an attempt gives back. It reports whether somebody was kept from it.
func (n Needs[J]) GiveBack() (freed bool) {
	for _, x := range n {
		x.Pool.used -= x.N
		freed = freed || x.Pool.stopped
		x.Pool.stopped = false
	}
	return freed
}

// Lacks reports whether a pool has too little left for so many tasks of the job, which GiveBack tells later. What
// is kept for another job is not left. What an attempt holds that is to be replaced is.
func (n Needs[J]) Lacks(now taskqueue.Instant, of J, tasks int, replaced Needs[J]) bool {
	for _, x := range n {
		if x.Pool.used-replaced.of(x.Pool)+x.N*int64(tasks) > x.Pool.most || x.Pool.isKept(now, of) {
			x.Pool.stopped = true
			return true
		}
	}
	return false
}

func (n Needs[J]) of(p *Pool[J]) int64 {
	for _, x := range n {
		if x.Pool == p {
			return x.N
		}
	}
	return 0
}

// Keep keeps the pools from all others than the job until a time, but for those that are kept for another one.
func (n Needs[J]) Keep(now taskqueue.Instant, of J, until taskqueue.Instant) {
	for _, x := range n {
		if !x.Pool.isKept(now, of) {
			x.Pool.keptFor, x.Pool.keptUntil = of, until
		}
	}
}

// LetGo ends that. It reports whether somebody was kept from a pool.
func (n Needs[J]) LetGo(of J) (freed bool) {
	var none J
	for _, x := range n {
		if x.Pool.keptFor == of {
			x.Pool.keptFor = none
			freed = freed || x.Pool.stopped
		}
	}
	return freed
}

// Room is how many jobs of so many tasks may have what each needs.
func (n Needs[J]) Room(tasks int) int {
	room := math.MaxInt
	for _, x := range n {
		if x.N > 0 {
			room = min(room, int(max(0, x.Pool.most-x.Pool.used)/(x.N*int64(tasks))))
		}
	}
	return room
}

// Standing tells of the pools that keep a job of so many tasks from being given out; name is what a job is called.
func (n Needs[J]) Standing(
	now taskqueue.Instant, of J, tasks int, name func(J) string,
) (list []taskqueue.PoolStanding) {
	for _, x := range n {
		p := x.Pool
		at := taskqueue.PoolStanding{Name: p.name, Needs: x.N * int64(tasks), Most: p.most, Used: p.used}
		if p.used+at.Needs <= p.most {
			if !p.isKept(now, of) {
				continue
			}
			at.KeptFor = name(p.keptFor)
		}
		list = append(list, at)
	}
	return list
}
