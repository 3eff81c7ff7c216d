package dispatch

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"fairway/internal/quantity"
	"fairway/internal/taskqueue"
)

// unmetNeed is something that a class needs and a pilot does not have.
type unmetNeed struct {
	name       string // of the resource or the program
	unit       needUnit
	needs, has int64
}

type needUnit uint8

const (
	ofNumber needUnit = iota // in thousandths
	ofBytes
	ofTime
	ofPrograms // it has it or not
)

// lacks says what a pilot with these resources and tools is missing for a
// class, whatever else it runs.
func lacks(cl *class, has taskqueue.Resources, tools map[string]bool) []unmetNeed {
	p := pilot{info: taskqueue.PilotInfo{Has: has}}
	has.MilliCPUs = p.totalCPUs()
	list := tooLittle(cl, p.cpusOf(cl), &has, func(name string) int64 { return thousandths(has.Countable[name]) })
	if has.Time != 0 && cl.key.time > has.Time {
		list = append(list, unmetNeed{"time", ofTime, int64(cl.key.time), int64(has.Time)})
	}
	for _, t := range cl.tools {
		if !tools[t] {
			list = append(list, unmetNeed{name: t, unit: ofPrograms})
		}
	}
	return list
}

// lacksNow says of what a pilot that the class fits has too little beside what
// is assigned to it.
func (p *pilot) lacksNow(cl *class) []unmetNeed {
	left := taskqueue.Resources{
		MilliCPUs: p.totalCPUs() - p.used.milliCPUs,
		Memory:    p.info.Has.Memory - p.used.memory,
		Disk:      p.info.Has.Disk - p.used.disk,
	}
	return tooLittle(cl, p.cpusOf(cl), &left, func(name string) int64 {
		return thousandths(p.info.Has.Countable[name]) - p.used.count(name)
	})
}

func tooLittle(cl *class, milliCPUs int64, has *taskqueue.Resources, count func(name string) int64) (list []unmetNeed) {
	need := func(name string, unit needUnit, needs, has int64) {
		if needs > has {
			list = append(list, unmetNeed{name, unit, needs, max(0, has)})
		}
	}
	need("cpus", ofNumber, milliCPUs, has.MilliCPUs)
	need("memory", ofBytes, cl.key.memory, has.Memory)
	need("disk", ofBytes, cl.key.disk, has.Disk)
	for _, n := range cl.countable {
		need(n.name, ofNumber, n.n, count(n.name))
	}
	return list
}

// shortage is what the pilots that come closest to running a class lack, for
// each way of coming close that of the closest one.
type shortage [][]unmetNeed

func (s *shortage) add(list []unmetNeed) {
	if len(*s) > 0 && len(list) != len((*s)[0]) {
		if len(list) < len((*s)[0]) {
			*s = shortage{list}
		}
		return
	}
	for i, known := range *s {
		if slices.Equal(namesOf(known), namesOf(list)) {
			if list[0].has > known[0].has {
				(*s)[i] = list
			}
			return
		}
	}
	*s = append(*s, list)
}

// names gives all that is lacking, each once.
func (s shortage) names() (names []string) {
	for _, list := range s {
		for _, name := range namesOf(list) {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// ofPrograms reports whether a program is among what is lacking.
func (s shortage) ofPrograms() bool {
	return slices.ContainsFunc(s, func(list []unmetNeed) bool {
		return slices.ContainsFunc(list, func(n unmetNeed) bool { return n.unit == ofPrograms })
	})
}

func (s shortage) String() string {
	var ways []string
	for _, list := range s {
		ways = append(ways, joined(list))
	}
	return strings.Join(ways, "; or ")
}

func namesOf(list []unmetNeed) []string {
	names := make([]string, len(list))
	for i, s := range list {
		names[i] = s.name
	}
	return names
}

func joined(list []unmetNeed) string {
	texts := make([]string, len(list))
	for i, s := range list {
		texts[i] = s.String()
	}
	return strings.Join(texts, ", ")
}

func (s unmetNeed) String() string {
	if s.unit == ofPrograms {
		return "the program " + s.name
	}
	return fmt.Sprintf("%s (%s needed, %s there)", s.name, s.unit.text(s.needs), s.unit.text(s.has))
}

func (u needUnit) text(n int64) string {
	switch u {
	case ofBytes:
		return quantity.Bytes(n)
	case ofTime:
		return time.Duration(n).Round(time.Second).String()
	default:
		return strconv.FormatFloat(float64(n)/1000, 'f', -1, 64)
	}
}
