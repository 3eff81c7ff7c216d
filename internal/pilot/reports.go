package pilot

import (
	"slices"

	"google.golang.org/protobuf/proto"

	"fairway/internal/wire"
)

// reports is what the TaskQueue is still to be told, or has not acknowledged
// yet. The pilot's mutex guards it.
type reports struct {
	seq      uint64 // of the newest Sync
	fullFrom uint64 // answers to Syncs before this one are from another life of the TaskQueue
	answer   uint64 // number of the last answer that was carried out
	full     bool   // the next Sync carries the whole state
	news     bool   // there is something that no Sync has carried
	started  []told[*wire.AttemptRef]
	ended    []told[*wire.Report]
}

// told is a report and the Sync that carried it first, 0 if none did.
type told[T any] struct {
	value T
	seq   uint64
}

func (r *reports) start(attempt *wire.AttemptRef) {
	r.started = append(r.started, told[*wire.AttemptRef]{value: attempt})
	r.news = true
}

// end replaces the report that the attempt started.
func (r *reports) end(result *wire.Result, ticket []byte) {
	makeSendable(result)
	r.started = slices.DeleteFunc(r.started, func(t told[*wire.AttemptRef]) bool { return t.value.GetAttempt() == result.GetAttempt() })
	r.ended = append(r.ended, told[*wire.Report]{value: &wire.Report{Result: result, Ticket: ticket}})
	r.news = true
}

// maxReported bounds the results in one message, in bytes. A single one is never
// longer.
const maxReported = 16 << 20

// take has results told that the pilot found, and did not make.
func (r *reports) take(found []*wire.Report) {
	for _, report := range found {
		r.ended = append(r.ended, told[*wire.Report]{value: report})
	}
}

// carry puts what is not acknowledged into a message. It returns the results for
// which there was no room.
func (r *reports) carry(m *wire.SyncRequest) (left []*wire.Report) {
	r.seq++
	m.Seq, m.LastAnswer = r.seq, r.answer
	for i := range r.started {
		mark(&r.started[i].seq, r.seq)
		m.Started = append(m.Started, r.started[i].value)
	}
	size := 0
	for i := range r.ended {
		report := r.ended[i].value
		if size += proto.Size(report); size > maxReported && len(m.Ended) > 0 {
			left = append(left, report)
			continue
		}
		mark(&r.ended[i].seq, r.seq)
		m.Ended = append(m.Ended, report)
	}
	r.news = len(left) > 0
	return left
}

func mark(first *uint64, seq uint64) {
	if *first == 0 {
		*first = seq
	}
}

// acknowledge forgets what is durable at the TaskQueue, and returns the results
// of it.
func (r *reports) acknowledge(seen uint64) (ended []*wire.Report) {
	r.started = slices.DeleteFunc(r.started, func(t told[*wire.AttemptRef]) bool { return t.acknowledged(seen) })
	r.ended = slices.DeleteFunc(r.ended, func(t told[*wire.Report]) bool {
		if !t.acknowledged(seen) {
			return false
		}
		ended = append(ended, t.value)
		return true
	})
	return ended
}

func (t *told[T]) acknowledged(seen uint64) bool { return t.seq != 0 && t.seq <= seen }

// accept reports whether an answer is to be carried out. Answers are numbered in
// the order in which the TaskQueue decided; an older one is out of date.
func (r *reports) accept(seq uint64, a *wire.SyncAnswer) bool {
	if a.GetSuperseded() || seq < r.fullFrom {
		return false
	}
	if a.GetNeedFull() {
		r.startOver()
		return false
	}
	if a.GetNumber() <= r.answer {
		return false
	}
	r.answer = a.GetNumber()
	return true
}

// startOver has the next Sync carry the whole state.
func (r *reports) startOver() {
	r.full, r.news = true, true
	r.fullFrom = r.seq + 1
	r.answer = 0
}
