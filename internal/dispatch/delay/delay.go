// Package delay has the rules of delay scheduling: what a file in a cache counts when pilots are compared for a job,
// and for how long a ready job is kept for a pilot that holds more of its input (waitForData of paper 3, section
// IV-E).
//
// It knows neither jobs nor pilots, and reads nothing but its arguments.
package delay

import (
	"time"

	"fairway/internal/taskqueue"
)

// Rule is a rule for matching. It reads nothing but its arguments.
type Rule interface {
	// Weight is what a version of so many bytes in a cache counts.
	Weight(size int64) int64
	// WaitsForBusy reports whether patience may ever be above 0 for a holder that
	// is not idle.
	WaitsForBusy() bool
	// Patience is for how much longer to keep a job for a holder; 0: not at all.
	Patience(Prospect) time.Duration
}

// Prospect is a holder, a pilot with more of a job's input in its cache than
// the one that could start the job now.
type Prospect struct {
	Idle   bool          // it runs nothing
	Free   time.Duration // until it is expected to take the job
	Saved  time.Duration // by which its cache is expected to shorten the job
	Waited time.Duration // since the job became ready
	Limit  time.Duration // WaitForData of the job
}

// RuleOf is the rule of a name; that of AsConfigured is ByGain.
func RuleOf(p taskqueue.Placement) Rule {
	switch p {
	case taskqueue.ByFiles:
		return byFiles{}
	case taskqueue.ByBytes:
		return byBytes{}
	}
	return byGain{}
}

type byBytes struct{ forIdle }

func (byBytes) Weight(size int64) int64 { return max(size, 1) }

type byFiles struct{ forIdle }

// fileWeight is what a file counts by number: so many bytes, beside jobs and sites that count bytes.
const fileWeight = 1 << 30

func (byFiles) Weight(int64) int64 { return fileWeight }

// forIdle is waitForData: a job is kept for an idle pilot that will ask in
// time, never for a busy one.
type forIdle struct{}

func (forIdle) WaitsForBusy() bool { return false }

func (forIdle) Patience(x Prospect) time.Duration {
	if !x.Idle || x.Waited+x.Free > x.Limit {
		return 0
	}
	return x.Limit - x.Waited
}

type byGain struct{}

// MinGain is the least gain that is worth keeping a job for: less is lost in
// the exchange of messages.
const MinGain = 100 * time.Millisecond

func (byGain) Weight(size int64) int64 { return max(size, 1) }

func (byGain) WaitsForBusy() bool { return true }

// Patience never lets a job wait in all for longer than waiting can save. So it
// ends at most twice as late as it would have, however wrong the estimates are.
func (byGain) Patience(x Prospect) time.Duration {
	worth := min(x.Saved, x.Limit)
	if worth < MinGain || x.Waited+x.Free > worth {
		return 0
	}
	return worth - x.Waited
}
