package dispatch

import (
	"time"

	"fairway/internal/dispatch/room"
	"fairway/internal/taskqueue"
)

// lacks says what a pilot with these resources and tools is missing for a
// class, whatever else it runs.
func lacks(cl *class, has taskqueue.Resources, tools map[string]bool) []taskqueue.Unmet {
	whole := room.Room{Has: &has}
	list := whole.Lacks(&cl.takes)
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

// hasNow is what the pilot has, with the life that is left to it.
func (p *pilot) hasNow(now instant) taskqueue.Resources {
	has := p.info.Has
	if p.expires != 0 {
		has.Time = max(1, time.Duration(p.expires-now))
	}
	return has
}
