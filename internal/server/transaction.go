package server

import (
	"fairway/internal/dispatch"
	"fairway/internal/server/convert"
	"fairway/internal/wire"
)

// transaction gathers what stepping leads to until its records are durable: one
// commit, and what may be let out after it.
type transaction struct {
	records []dispatch.Record
	answers []answer
	start   []order
	stop    []string
	publish []dispatch.Publish
	remove  []string
	done    []func(error)
}

// answer is a reply in the clothes of the wire, for the Sync of pilot numbered
// seq.
type answer struct {
	pilot   dispatch.PilotID
	seq     uint64
	message *wire.SyncAnswer
	err     error
}

func (t *transaction) empty() bool {
	return len(t.records)+len(t.answers)+len(t.start)+len(t.stop)+len(t.publish)+len(t.remove)+len(t.done) == 0
}

// collect takes over the effects of one step, which the next step overwrites.
// Events, and the naming of launches, are left to the caller.
func (t *transaction) collect(e *dispatch.Effects) {
	t.records = append(t.records, e.Persist...)
	for i := range e.Replies {
		r := &e.Replies[i]
		message, err := convert.AnswerToWire(r.Answer)
		t.answers = append(t.answers, answer{pilot: r.Pilot, seq: r.Seq, message: message, err: err})
	}
	t.stop = append(t.stop, e.Stop...)
	t.publish = append(t.publish, e.Publish...)
	t.remove = append(t.remove, e.Remove...)
}

// lose tells everybody who waits that nothing came of it.
func (t *transaction) lose(err error) {
	for _, done := range t.done {
		done(err)
	}
}
