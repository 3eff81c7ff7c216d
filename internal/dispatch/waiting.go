package dispatch

import (
	"slices"

	"fairway/internal/taskqueue"
)

// takeWaiting takes what a pilot waits for. It decides nothing: people are told. Of a server that no pilot has
// found away before there is an event.
func (c *Core) takeWaiting(p *pilot, s *taskqueue.Sync) {
	before := p.away
	p.waiting, p.away = s.Waiting, s.Away
	for _, now := range s.Away {
		same := func(o taskqueue.AwayServer) bool { return o.Server == now.Server }
		others := func(o *pilot) bool { return o != p && slices.ContainsFunc(o.away, same) }
		if slices.ContainsFunc(before, same) || slices.ContainsFunc(c.fleet.inOrder(), others) {
			continue
		}
		c.event(taskqueue.Event{Kind: taskqueue.ServerAway, Pilot: p.id, Site: p.info.Site, Host: p.info.Host,
			Name:   now.Server,
			Reason: now.Reason})
	}
}

// readVersion is the version of a file that the job reads, nil if it reads none.
func (j *job) readVersion(lfn string) *version {
	for v := range j.inputs {
		if v.file.lfn == lfn {
			return v
		}
	}
	return nil
}
