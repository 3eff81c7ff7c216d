package dispatch

import (
	"time"

	"fairway/internal/taskqueue"
)

// lacks says what a pilot with these resources and tools is missing for a
// class, whatever else it runs.
func lacks(cl *class, has taskqueue.Resources, tools map[string]bool) []taskqueue.Unmet {
	p := pilot{info: taskqueue.PilotInfo{Has: has}}
	has.MilliCPUs = p.totalCPUs()
	list := tooLittle(cl, p.cpusOf(cl), &has, func(name string) int64 { return thousandths(has.Countable[name]) })
	if has.Time != 0 && cl.key.time > has.Time {
		list = append(list, taskqueue.Unmet{Name: "time", Unit: taskqueue.InTime, Needs: int64(cl.key.time),
			Has: int64(has.Time)})
	}
	for _, t := range cl.tools {
		if !tools[t] {
			list = append(list, taskqueue.Unmet{Name: t, Unit: taskqueue.IsProgram})
		}
	}
	return list
}

// lacksNow says of what a pilot that the class fits has too little beside what
// is assigned to it.
func (p *pilot) lacksNow(cl *class) []taskqueue.Unmet {
	left := taskqueue.Resources{
		MilliCPUs: p.totalCPUs() - p.used.milliCPUs,
		Memory:    p.info.Has.Memory - p.used.memory,
		Disk:      p.info.Has.Disk - p.used.disk,
	}
	return tooLittle(cl, p.cpusOf(cl), &left, func(name string) int64 {
		return thousandths(p.info.Has.Countable[name]) - p.used.count(name)
	})
}

func tooLittle(
	cl *class, milliCPUs int64, has *taskqueue.Resources, count func(name string) int64,
) (list []taskqueue.Unmet) {
	need := func(name string, unit taskqueue.Unit, needs, has int64) {
		if needs > has {
			list = append(list, taskqueue.Unmet{Name: name, Unit: unit, Needs: needs, Has: max(0, has)})
		}
	}
	need("cpus", taskqueue.InThousandths, milliCPUs, has.MilliCPUs)
	need("memory", taskqueue.InBytes, cl.key.memory, has.Memory)
	need("disk", taskqueue.InBytes, cl.key.disk, has.Disk)
	for _, n := range cl.countable {
		need(n.name, taskqueue.InThousandths, n.n, count(n.name))
	}
	return list
}

// hasNow is what the pilot has, with the life that is left to it.
func (p *pilot) hasNow(now instant) taskqueue.Resources {
	has := p.info.Has
	if p.expires != 0 {
		has.Time = max(1, time.Duration(p.expires-now))
	}
	return has
}
