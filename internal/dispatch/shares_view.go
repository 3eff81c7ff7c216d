package dispatch

import (
	"time"

	"fairway/internal/taskqueue"
)

// HalfLife is that of usage.
func (c *Core) HalfLife() time.Duration { return c.shares.HalfLife() }

// Limits returns those over all runs, by name.
func (c *Core) Limits() []taskqueue.LimitView { return c.shares.pools.Views() }

// Queued is how many jobs of a user, or of the nearest group of that with a limit for it, are waiting or
// ready in runs that go on, and how many may be: 0 where that is not bounded.
func (c *Core) Queued(a taskqueue.Account) (of string, queued, most int) {
	return c.shares.Tree.Queued(a, func(s *share) (n int) {
		for _, r := range s.Own.runs {
			if !r.halted() { // else nothing of it waits for a pilot
				n += r.totals.ByState[taskqueue.Waiting] + r.totals.ByState[taskqueue.Ready]
			}
		}
		return n
	})
}

// SharesSaid returns what the last SetShares said.
func (c *Core) SharesSaid() taskqueue.Shares { return c.shares.Said() }

// Shares returns all groups and users: those of a group after it, by their level fair share.
// Runs without an account are those of the user "".
func (c *Core) Shares() []taskqueue.ShareView {
	return c.shares.Views(c.now, func(s *share) int { return len(s.Own.runs) })
}
