package server

import (
	"fairway/internal/dispatch"
	"fairway/internal/fault"
)

var beforeLetOut = fault.New("server.letout.before")

// outlet is where effects go once they are durable. Nothing in it blocks.
type outlet struct {
	waiters *waiters
	publish *mailbox[dispatch.Publish]
	remove  *mailbox[string]
	start   *mailbox[dispatch.Start]
	stop    *mailbox[string]
	adopt   *mailbox[string]
	pilots  *pilots
}

func newOutlet(pilots *pilots) *outlet {
	return &outlet{
		pilots:  pilots,
		waiters: newWaiters(),
		publish: newMailbox[dispatch.Publish](),
		remove:  newMailbox[string](),
		start:   newMailbox[dispatch.Start](),
		stop:    newMailbox[string](),
		adopt:   newMailbox[string](),
	}
}

func (o *outlet) letOut(t *transaction) {
	_ = beforeLetOut.Hit()
	for _, a := range t.answers {
		o.waiters.resolve(a)
	}
	o.publish.put(t.publish...)
	o.remove.put(t.remove...)
	o.pilots.asked(t.start)
	o.start.put(t.start...)
	o.stop.put(t.stop...)
}
