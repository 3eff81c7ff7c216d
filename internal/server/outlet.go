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
	pilots  *pilots
}

func newOutlet(pilots *pilots) *outlet {
	return &outlet{
		pilots:  pilots,
		waiters: newWaiters(),
		publish: newMailbox[dispatch.Publish](),
		remove:  newMailbox[string](),
	}
}

func (o *outlet) letOut(t *transaction) {
	_ = beforeLetOut.Hit()
	for _, a := range t.answers {
		o.waiters.resolve(a)
	}
	o.publish.put(t.publish...)
	o.remove.put(t.remove...)
	o.pilots.start(t.start)
	o.pilots.withdraw(t.stop)
}
