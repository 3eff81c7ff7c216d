package dispatch

import "time"

// Placement names the rule by which jobs are matched to pilots' caches.
type Placement uint8

const (
	// ByGain, the default, prefers the job with the most input bytes in the
	// pilot's cache, and keeps a job for an idle or a busy pilot that holds more
	// as long as what that cache is expected to save is worth the waiting.
	ByGain Placement = iota
	// ByBytes prefers as ByGain does, and keeps a job for an idle pilot that
	// holds more, until that asks.
	ByBytes
	// ByFiles prefers the job with the most input files there, and waits as
	// ByBytes does: the cache-aware scheduling and waitForData of paper 3,
	// section IV-E.
	ByFiles
)

// Placements are the rules by the names that people give them.
var Placements = map[string]Placement{"by-gain": ByGain, "by-bytes": ByBytes, "by-files": ByFiles}

// placementRule is a rule for matching. It reads nothing but its arguments.
type placementRule interface {
	// weight is what a version of so many bytes in a cache counts.
	weight(size int64) int64
	// waitsForBusy reports whether patience may ever be above 0 for a holder that
	// is not idle.
	waitsForBusy() bool
	// patience is for how much longer to keep a job for a holder; 0: not at all.
	patience(prospect) time.Duration
}

// prospect is a holder, a pilot with more of a job's input in its cache than
// the one that could start the job now.
type prospect struct {
	idle   bool          // it runs nothing
	free   time.Duration // until it is expected to take the job
	saved  time.Duration // by which its cache is expected to shorten the job
	waited time.Duration // since the job became ready
	limit  time.Duration // WaitForData of the job
}

func ruleOf(p Placement) placementRule {
	switch p {
	case ByFiles:
		return byFiles{}
	case ByBytes:
		return byBytes{}
	}
	return byGain{}
}

type byBytes struct{ forIdle }

func (byBytes) weight(size int64) int64 { return max(size, 1) }

type byFiles struct{ forIdle }

func (byFiles) weight(int64) int64 { return 1 }

// forIdle is waitForData: a job is kept for an idle pilot that will ask in
// time, never for a busy one.
type forIdle struct{}

func (forIdle) waitsForBusy() bool { return false }

func (forIdle) patience(x prospect) time.Duration {
	if !x.idle || x.waited+x.free > x.limit {
		return 0
	}
	return x.limit - x.waited
}

type byGain struct{}

// minGain is the least gain that is worth keeping a job for: less is lost in
// the exchange of messages.
const minGain = 100 * time.Millisecond

func (byGain) weight(size int64) int64 { return max(size, 1) }

func (byGain) waitsForBusy() bool { return true }

// patience never lets a job wait in all for longer than waiting can save. So it
// ends at most twice as late as it would have, however wrong the estimates are.
func (byGain) patience(x prospect) time.Duration {
	worth := min(x.saved, x.limit)
	if worth < minGain || x.waited+x.free > worth {
		return 0
	}
	return worth - x.waited
}
