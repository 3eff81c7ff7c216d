package flow

import (
	"math"
	"time"

	"fairway/internal/dispatch/rows"
)

// PieceJobs bounds what one Step does: so many jobs are decided on, made known, or let out. The next Tick goes
// on with what is left, so that nobody else waits for all that one event makes.
const PieceJobs = 1000

// agenda is what a Flow has still to do: inputs that were taken and wait for those before them; and
// of the one that is under way jobs to make known, steps whose watermark may rise (which are looked
// at when all jobs are known), jobs to submit, steps that may have become final. When all is done
// and the end was looked at, it has ended.
type agenda struct {
	taken      []func()
	making     rows.Ordered[making]
	dirty      rows.Ordered[rank]
	ready      rows.Ascending[readyJob]
	candidates []*stepState
	ended      bool
	undecided  struct { // firstUndecided, until a watermark rises or the next input is under way
		key   key
		known bool
	}
	piece int // PieceJobs

	// How many jobs were let out, and whether the log says that some are left. Load, which wants
	// neither records nor jobs, stops at those that were let out before.
	letOut, letOutBefore uint64
	noted                bool
	replaying            bool
}

func newAgenda() agenda { return agenda{ended: true, piece: PieceJobs, letOutBefore: math.MaxUint64} }

// Unfinished reports whether inputs were taken of which something is left to do: a Tick goes on with it.
func (f *Flow) Unfinished() bool {
	return !f.ended || len(f.taken)+len(f.making)+len(f.dirty)+f.ready.Len() > 0
}

// work does up to so much of what the inputs ask for, in their order, and of each all before the next. So how
// much it does at a time, and what is taken meanwhile, makes no difference to the jobs and to their order.
func (f *Flow) work(now time.Time, most int) {
	for range most {
		if !f.workOn(now) {
			return
		}
	}
}

// workOn does what is next, and reports whether there was something.
func (f *Flow) workOn(now time.Time) bool {
	precedes := f.mayPrecede()
	switch {
	case len(f.making) > 0 && !precedes:
		f.makeNext()
	case len(f.dirty) > 0 && !precedes:
		f.raiseNext()
	case f.ready.Len() > 0:
		if f.letOut == f.letOutBefore {
			return false
		}
		f.letOutNext()
	case !f.ended:
		f.ended = true
		f.finish()
	case len(f.taken) > 0:
		act := f.taken[0]
		f.taken = f.taken[1:]
		f.ended, f.undecided.known = false, false
		act()
	case f.ageNext(now):
		f.ended, f.undecided.known = false, false
	default:
		return false
	}
	return true
}

// noteProgress records how many jobs were let out if some are left, and at last that none is: Load goes on there.
func (f *Flow) noteProgress(before uint64) {
	more := f.Unfinished()
	if more && (!f.noted || f.letOut > before) || !more && f.noted {
		f.persist(logEntry{Kind: logLetOut, Jobs: f.letOut, More: more})
		f.noted = more
	}
}
