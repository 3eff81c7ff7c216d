package dispatch

import (
	"math/bits"
	"slices"
	"strings"

	"fairway/internal/taskqueue"
)

// shape is what registered pilots of one kind have in common; whether a class fits it is
// found once. Each node has its own free memory and disk, so pilots are of one kind if
// these are about the same: a class that needs more than the least of it and no more than
// the most is compared with the pilot itself.
//
// A shape lives as long as it has pilots.
type shape struct {
	key    classKey
	least  taskqueue.Resources // that its pilots have
	most   taskqueue.Resources // that they may have
	tools  map[string]bool
	fitOf  []shapeFit     // by class index
	pilots []*pilot       // in no order
	hosts  map[string]int // of those pilots that are counted
	at     int            // index in fleet.shapes
}

// shapeFit says which pilots of a shape could run a class if they ran nothing else.
type shapeFit uint8

const (
	notAsked shapeFit = iota
	noneFits
	someFit
	allFit
)

// roundedBits is how many bits of an amount tell shapes apart: pilots of one shape have
// amounts that differ by less than an eighth.
const roundedBits = 4

// rounded returns the bounds between which pilots of a shape have an amount.
func rounded(amount int64) (least, most int64) {
	if amount <= 0 {
		return amount, amount
	}
	step := int64(1) << max(0, bits.Len64(uint64(amount))-roundedBits)
	least = amount / step * step
	return least, least + step - 1
}

// enterShape makes the pilot one of the shape of what it has.
func (fl *fleet) enterShape(p *pilot) {
	s := fl.shapeFor(&p.info)
	p.shape, p.member = s, len(s.pilots)
	s.pilots = append(s.pilots, p)
	s.countHost(p)
}

// countHost has the pilot counted among those that its host has of the shape, if it is open and gets
// jobs.
func (s *shape) countHost(p *pilot) {
	if h := p.host.health; !p.acceptsJobs() || h != nil && h.Withheld {
		s.uncountHost(p)
	} else if !p.counted {
		p.counted = true
		s.hosts[p.host.name]++
	}
}

func (s *shape) uncountHost(p *pilot) {
	if !p.counted {
		return
	}
	p.counted = false
	if s.hosts[p.host.name]--; s.hosts[p.host.name] == 0 {
		delete(s.hosts, p.host.name)
	}
}

// leaveShape undoes it, before info or host of the pilot change.
func (fl *fleet) leaveShape(p *pilot) {
	s := p.shape
	removeAt(&s.pilots, int32(p.member)).member = p.member
	s.uncountHost(p)
	if len(s.pilots) > 0 {
		return
	}
	delete(fl.shapeOf, s.key)
	removeAt(&fl.shapes, int32(s.at)).at = s.at
}

func (fl *fleet) shapeFor(i *taskqueue.PilotInfo) *shape {
	tools := slices.Clone(i.Tools)
	slices.Sort(tools)
	tools = slices.Compact(tools)
	least, most := i.Has, i.Has
	least.Memory, most.Memory = rounded(i.Has.Memory)
	least.Disk, most.Disk = rounded(i.Has.Disk)
	k := classKey{
		milliCPUs: i.Has.MilliCPUs, memory: least.Memory, disk: least.Disk, time: i.Has.Time,
		countable: joinCountable(i.Has.Countable), tools: strings.Join(tools, "\n"), site: i.Site,
	}
	if s := fl.shapeOf[k]; s != nil {
		return s
	}
	s := &shape{
		key: k, least: least, most: most, tools: make(map[string]bool), hosts: make(map[string]int), at: len(fl.shapes),
	}
	for _, t := range tools {
		s.tools[t] = true
	}
	fl.shapes = append(fl.shapes, s)
	fl.shapeOf[k] = s
	return s
}

func (s *shape) fit(cl *class) shapeFit {
	for len(s.fitOf) <= cl.index {
		s.fitOf = append(s.fitOf, notAsked)
	}
	if s.fitOf[cl.index] == notAsked {
		s.fitOf[cl.index] = noneFits
		if len(lacks(cl, s.least, s.tools)) == 0 {
			s.fitOf[cl.index] = allFit
		} else if len(lacks(cl, s.most, s.tools)) == 0 {
			s.fitOf[cl.index] = someFit
		}
	}
	return s.fitOf[cl.index]
}

// forget is for a class that is no more; another one may get its index.
func (s *shape) forget(index int) {
	if index < len(s.fitOf) {
		s.fitOf[index] = notAsked
	}
}

// fits reports whether some pilot of the shape could run the class if it ran nothing else.
func (s *shape) fits(cl *class) bool {
	fit := s.fit(cl)
	return fit == allFit || fit == someFit && slices.ContainsFunc(s.pilots, func(p *pilot) bool { return p.fits(cl) })
}

// fits reports whether the pilot could run the class if it ran nothing else.
func (p *pilot) fits(cl *class) bool {
	fit := p.shape.fit(cl)
	return fit == allFit || fit == someFit && len(lacks(cl, p.info.Has, p.shape.tools)) == 0
}
