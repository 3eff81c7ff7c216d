// Package room counts what jobs need against what pilots have: processors, memory, disk, and countable things. It
// knows neither jobs nor pilots.
package room

import (
	"cmp"
	"maps"
	"slices"

	"fairway/internal/quantity"
	"fairway/internal/taskqueue"
)

// Slot is what a job that states no processors takes of one, in thousandths.
const Slot = 1000

// Needs is what a job takes of its pilot. Memory and disk are bytes.
type Needs struct {
	MilliCPUs, Memory, Disk int64
	Countable               []Countable // each name once
}

// Countable is so much of a countable thing.
type Countable struct {
	Name string
	N    int64 // in thousandths: some are shared
}

// maxCount bounds how much of a countable thing there can be.
const maxCount = 1 << 40

func thousandths(n int64) int64 { return min(n, maxCount) * quantity.WholeGPU }

// CountableOf are the countable things that a job needs, by their names.
func CountableOf(r *taskqueue.Resources) (list []Countable) {
	for _, name := range slices.Sorted(maps.Keys(r.Countable)) {
		list = append(list, Countable{name, thousandths(r.Countable[name])})
	}
	if r.GPUShare > 0 {
		list = append(list, Countable{quantity.GPU, r.GPUShare})
	}
	return list
}

// Room is what a pilot has, and how much of that is in use. A Room with what it has alone is one of
// which nothing is in use.
type Room struct {
	Has  *taskqueue.Resources
	used Needs
}

// Clone is a Room that changes by itself.
func (r *Room) Clone() Room {
	c := *r
	c.used.Countable = slices.Clone(r.used.Countable)
	return c
}

// CPUs is how many thousandths of processors there are, in use or not: one at least if it is not known.
func (r *Room) CPUs() int64 { return cmp.Or(r.Has.MilliCPUs, Slot) }

// CPUsOf is how many of these a job takes.
func (r *Room) CPUsOf(n *Needs) int64 { return cmp.Or(n.MilliCPUs, min(Slot, r.CPUs())) }

// Slots is how many jobs of one processor each run at a time.
func (r *Room) Slots() int { return max(1, int(r.CPUs()/Slot)) }

// IsFull reports whether all processors are in use.
func (r *Room) IsFull() bool { return r.used.MilliCPUs >= r.CPUs() }

// Used is how much is in use: the sum of what jobs take.
func (r *Room) Used() Needs { return r.used }

func (r *Room) usedOf(name string) int64 {
	for i := range r.used.Countable {
		if r.used.Countable[i].Name == name {
			return r.used.Countable[i].N
		}
	}
	return 0
}

// Add counts what a job takes (sign 1), or gives back (sign -1).
func (r *Room) Add(n *Needs, sign int64) {
	u := &r.used
	u.MilliCPUs += sign * r.CPUsOf(n)
	u.Memory += sign * n.Memory
	u.Disk += sign * n.Disk
	for _, x := range n.Countable {
		i := slices.IndexFunc(u.Countable, func(c Countable) bool { return c.Name == x.Name })
		if i < 0 {
			u.Countable = append(u.Countable, Countable{Name: x.Name})
			i = len(u.Countable) - 1
		}
		u.Countable[i].N += sign * x.N
	}
}

// Fits reports whether there is, in all times over, what a job needs besides what is in use.
func (r *Room) Fits(n *Needs, times int64) bool {
	u, has := &r.used, r.Has
	if u.MilliCPUs+r.CPUsOf(n) > times*r.CPUs() || u.Memory+n.Memory > times*has.Memory ||
		u.Disk+n.Disk > times*has.Disk {
		return false
	}
	for _, x := range n.Countable {
		if r.usedOf(x.Name)+x.N > times*thousandths(has.Countable[x.Name]) {
			return false
		}
	}
	return true
}

// Free is how many such jobs fit at once besides what is in use.
func (r *Room) Free(n *Needs) int {
	u, has := &r.used, r.Has
	most := (r.CPUs() - u.MilliCPUs) / r.CPUsOf(n)
	if n.Memory > 0 {
		most = min(most, (has.Memory-u.Memory)/n.Memory)
	}
	if n.Disk > 0 {
		most = min(most, (has.Disk-u.Disk)/n.Disk)
	}
	for _, x := range n.Countable {
		if x.N > 0 {
			most = min(most, (thousandths(has.Countable[x.Name])-r.usedOf(x.Name))/x.N)
		}
	}
	return int(max(0, most))
}

// Whole is how many such jobs fit at once if nothing else is in use.
func (r *Room) Whole(n *Needs) int {
	empty := Room{Has: r.Has}
	return empty.Free(n)
}

// TakesASlot reports whether such a job fits whenever another one of such jobs has ended.
func (r *Room) TakesASlot(n *Needs) bool {
	slots := int64(r.Slots())
	return r.CPUsOf(n) <= Slot && n.Memory*slots <= r.Has.Memory && n.Disk*slots <= r.Has.Disk && len(n.Countable) == 0
}

// SlotsOf is how many slots a job takes: the largest part that it needs of anything that there is, in slots.
func (r *Room) SlotsOf(n *Needs) float64 {
	part := float64(r.CPUsOf(n)) / float64(r.CPUs())
	if n.Memory > 0 {
		part = max(part, float64(n.Memory)/float64(max(r.Has.Memory, 1)))
	}
	if n.Disk > 0 {
		part = max(part, float64(n.Disk)/float64(max(r.Has.Disk, 1)))
	}
	for _, x := range n.Countable {
		if most := thousandths(r.Has.Countable[x.Name]); most > 0 {
			part = max(part, float64(x.N)/float64(most))
		}
	}
	return min(part, 1) * float64(r.CPUs()) / Slot
}

// Lacks says of what there is too little for a job beside what is in use.
func (r *Room) Lacks(n *Needs) (list []taskqueue.Unmet) {
	need := func(name string, unit taskqueue.Unit, needs, has int64) {
		if needs > has {
			list = append(list, taskqueue.Unmet{Name: name, Unit: unit, Needs: needs, Has: max(0, has)})
		}
	}
	need("cpus", taskqueue.InThousandths, r.CPUsOf(n), r.CPUs()-r.used.MilliCPUs)
	need("memory", taskqueue.InBytes, n.Memory, r.Has.Memory-r.used.Memory)
	need("disk", taskqueue.InBytes, n.Disk, r.Has.Disk-r.used.Disk)
	for _, x := range n.Countable {
		need(x.Name, taskqueue.InThousandths, x.N, thousandths(r.Has.Countable[x.Name])-r.usedOf(x.Name))
	}
	return list
}
