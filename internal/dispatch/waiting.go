package dispatch

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"fairway/internal/quantity"
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

// explainWaits says which inputs an attempt waits for at its pilot, from where they come and how fast.
func (a *attempt) explainWaits(e *Explanation) {
	for i := range a.pilot.waiting {
		w := &a.pilot.waiting[i]
		v := a.job.readVersion(w.LFN)
		if w.Attempt != a.id || v == nil {
			continue
		}
		from := "storage"
		if strings.Contains(w.Source, "://") {
			from = w.Source
		} else if w.Source != "" {
			from = fmt.Sprintf("the cache of pilot %s", w.Source)
		}
		text := fmt.Sprintf("it waits for input %s, which is read from %s for %v", w.LFN, from, w.For.Round(time.Second))
		isPeer := w.Source != "" && from != w.Source
		if (isPeer || w.Bytes > 0) && v.size > 0 && w.For > 0 {
			came, rate := min(w.Bytes, v.size), float64(w.Bytes)/w.For.Seconds()
			text += fmt.Sprintf(": %s of %s have come, %s a second", quantity.Bytes(came), quantity.Bytes(v.size),
				quantity.Bytes(int64(rate)))
		}
		e.say("%s", text)
		for _, s := range a.pilot.away {
			e.say("%s is away, and waited for: %s", s.Server, s.Reason)
		}
	}
}

// readVersion is the version of a file that the job reads, nil if it reads none.
func (j *job) readVersion(lfn string) *version {
	for i := range j.requests {
		if v := j.requests[i].read; v != nil && v.file.lfn == lfn {
			return v
		}
	}
	return nil
}
