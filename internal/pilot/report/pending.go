package report

import (
	"slices"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"fairway/internal/wire"
)

// Pending is what the TaskQueue is still to be told, or has not acknowledged
// yet. The pilot's mutex guards it.
type Pending struct {
	seq      uint64 // of the newest Sync
	fullFrom uint64 // answers to Syncs before this one are from another life of the TaskQueue
	answer   uint64 // number of the last answer that was carried out
	Full     bool   // the next Sync carries the whole state
	News     bool   // there is something that no Sync has carried
	started  []told[*wire.AttemptRef]
	ended    []told[*wire.Report]
	failures int // of these, of attempts that failed here
}

// told is a report, the Sync that carried it first, 0 if none did, and when what it tells of happened.
type told[T any] struct {
	value T
	seq   uint64
	at    time.Time
}

// Start has the start of an attempt told, which began at that time.
func (r *Pending) Start(attempt *wire.AttemptRef, at time.Time) {
	r.started = append(r.started, told[*wire.AttemptRef]{value: attempt, at: at})
	r.News = true
}

// longAgo is from when on it is told how long ago an attempt began: else it begins as it is told.
const longAgo = time.Second

// Running returns the attempt with how long it runs, if it began long before it is told.
func Running(attempt *wire.AttemptRef, since time.Time) *wire.AttemptRef {
	ago := time.Since(since)
	if ago < longAgo {
		return attempt
	}
	attempt = proto.CloneOf(attempt) // an earlier message may still be on its way
	attempt.Running = durationpb.New(ago)
	return attempt
}

// End replaces the report that the attempt started.
func (r *Pending) End(result *wire.Result, ticket []byte) {
	makeSendable(result)
	r.started = slices.DeleteFunc(r.started, func(t told[*wire.AttemptRef]) bool {
		return t.value.GetAttempt() == result.GetAttempt()
	})
	r.ended = append(r.ended, told[*wire.Report]{value: &wire.Report{Result: result, Ticket: ticket}})
	r.failures += failures(result)
	r.News = true
}

// Blames reports whether a result is a failure that may be due to the node.
func Blames(result *wire.Result) bool {
	switch result.GetOutcome() {
	case wire.Outcome_OUTCOME_EXITED, wire.Outcome_OUTCOME_SIGNALLED, wire.Outcome_OUTCOME_STAGE_IN_FAILED,
		wire.Outcome_OUTCOME_STAGE_OUT_FAILED, wire.Outcome_OUTCOME_OUT_OF_DISK:
		return true
	}
	return false
}

func failures(result *wire.Result) int {
	if Blames(result) {
		return 1
	}
	return 0
}

// HasFailures reports whether attempts have failed here of which the TaskQueue has not confirmed that it
// knows.
func (r *Pending) HasFailures() bool { return r.failures > 0 }

// HasEnded reports whether the end of an attempt is still to be told or acknowledged.
func (r *Pending) HasEnded(attempt uint64) bool {
	return slices.ContainsFunc(r.ended, func(t told[*wire.Report]) bool {
		return t.value.GetResult().GetAttempt() == attempt
	})
}

// Untold returns the results that the TaskQueue should know and does not. What was only
// ended or lost, it finds out without.
func (r *Pending) Untold() (results []*wire.Report) {
	for _, t := range r.ended {
		switch t.value.GetResult().GetOutcome() {
		case wire.Outcome_OUTCOME_ENDED, wire.Outcome_OUTCOME_LOST:
		default:
			results = append(results, t.value)
		}
	}
	return results
}

// MaxReported bounds the results in one message, in bytes. A single one is never
// longer.
const MaxReported = 16 << 20

// Take has results told that the pilot found, and did not make.
func (r *Pending) Take(found []*wire.Report) {
	for _, report := range found {
		r.ended = append(r.ended, told[*wire.Report]{value: report})
		r.failures += failures(report.GetResult())
	}
}

// Carry puts what is not acknowledged into a message. It returns the results for
// which there was no room.
func (r *Pending) Carry(m *wire.SyncRequest) (left []*wire.Report) {
	r.seq++
	m.Seq, m.LastAnswer = r.seq, r.answer
	for i := range r.started {
		mark(&r.started[i].seq, r.seq)
		m.Started = append(m.Started, Running(r.started[i].value, r.started[i].at))
	}
	size := 0
	for i := range r.ended {
		report := r.ended[i].value
		if size += proto.Size(report); size > MaxReported && len(m.Ended) > 0 {
			left = append(left, report)
			continue
		}
		mark(&r.ended[i].seq, r.seq)
		m.Ended = append(m.Ended, report)
	}
	r.News = len(left) > 0
	return left
}

// CarryFull is carry for a message with the whole state, of which the caller puts in what
// runs.
func (r *Pending) CarryFull(m *wire.SyncRequest) (left []*wire.Report) {
	r.Full, r.started = false, r.started[:0]
	return r.Carry(m)
}

func mark(first *uint64, seq uint64) {
	if *first == 0 {
		*first = seq
	}
}

// Acknowledge forgets what is durable at the TaskQueue, and returns the results
// of it.
func (r *Pending) Acknowledge(seen uint64) (ended []*wire.Report) {
	r.started = slices.DeleteFunc(r.started, func(t told[*wire.AttemptRef]) bool { return t.acknowledged(seen) })
	r.ended = slices.DeleteFunc(r.ended, func(t told[*wire.Report]) bool {
		if !t.acknowledged(seen) {
			return false
		}
		ended = append(ended, t.value)
		r.failures -= failures(t.value.GetResult())
		return true
	})
	return ended
}

func (t *told[T]) acknowledged(seen uint64) bool { return t.seq != 0 && t.seq <= seen }

// Accept reports whether an answer is to be carried out. Answers are numbered in
// the order in which the TaskQueue decided; an older one is out of date.
func (r *Pending) Accept(seq uint64, a *wire.SyncAnswer) bool {
	if a.GetSuperseded() || r.Superseded(seq) {
		return false
	}
	if a.GetNeedFull() {
		r.StartOver()
		return false
	}
	if a.GetNumber() <= r.answer {
		return false
	}
	r.answer = a.GetNumber()
	return true
}

// Superseded reports whether a Sync was sent before the last StartOver.
func (r *Pending) Superseded(seq uint64) bool { return seq < r.fullFrom }

// StartOver has the next Sync carry the whole state.
func (r *Pending) StartOver() {
	r.Full, r.News = true, true
	r.fullFrom = r.seq + 1
	r.answer = 0
}
