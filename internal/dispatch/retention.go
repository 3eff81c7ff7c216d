package dispatch

import (
	"cmp"
	"slices"
	"time"

	"fairway/internal/taskqueue"
)

// A result lives as long as a run names it that is kept, whether that is under way, has failed, or
// was retired with RetireRun.Keep. After that it lives as long as a policy says: what the group that
// made it, or the next one around it, has said of retention (Shares) is a promise; Config.Retention
// is how long it stays if there is room.

// retention says how long a result of a group is kept that no run names, and whether that is promised.
func (c *Core) retention(group string) (keeps time.Duration, promised bool) {
	for s := range c.shares.Known(taskqueue.Account{Group: group}).Up {
		if s.Said().Retention != 0 {
			return max(s.Said().Retention, 0), true
		}
	}
	return c.config.Retention, false
}

// NamedBy returns the results that a run names, whether it was retired or not, in the order of their
// jobs. What its jobs have stored that is no result is told of as such, and would go at once.
func (c *Core) NamedBy(id taskqueue.RunID, now time.Time) (list []taskqueue.NamedResult) {
	run, all := c.runs.byID[id], &c.journal.results
	if run == nil {
		for _, key := range all.NamedByRetired(id) {
			list = append(list, all.Named(all.Of(key), id, now))
		}
		slices.SortStableFunc(list, func(a, b taskqueue.NamedResult) int { return cmp.Compare(a.Job, b.Job) })
		return list
	}
	seen := make(map[identity]bool)
	for j := range c.jobs.of(run) {
		if j.committed == 0 || seen[j.key] {
			continue
		}
		r := all.Of(j.key)
		if j.key == (identity{}) {
			r = c.files.resultOf(j)
			r.Scope = "" // it can be taken by nobody
		} else if seen[j.key] = true; r == nil {
			r = c.files.resultOf(j)
		}
		list = append(list, all.Named(r, id, now))
	}
	return list
}

// IsSharedWith reports whether a run may take the result of a key, as far as it is known.
func (c *Core) IsSharedWith(id taskqueue.RunID, key string) bool {
	run := c.runs.byID[id]
	return run != nil && c.IsIn(run.Scope, key)
}

// countStored counts for its step what a job has stored to stay.
func (j *job) countStored(outputs []output) {
	if j.wasTaken() {
		return
	}
	for i := range outputs {
		if o := &outputs[i]; o.PFN != "" && !j.outputFor(o.LFN).Temporary {
			j.step.storedBytes += o.Size
		}
	}
}

// Expected is how many bytes the jobs of a run that are known and not done are expected to store
// to stay, by what those of their steps have stored on average; of steps of which none is done, none.
func (c *Core) Expected(id taskqueue.RunID) (bytes int64) {
	r := c.runs.byID[id]
	if r == nil || r.state != taskqueue.RunGoing {
		return 0
	}
	for _, s := range r.stepOrder {
		n := &s.ByState
		if done := n[taskqueue.Done]; done > 0 {
			left := n[taskqueue.Waiting] + n[taskqueue.Ready] + n[taskqueue.Assigned] + n[taskqueue.Running]
			bytes += int64(float64(s.storedBytes) / float64(done) * float64(left))
		}
	}
	return bytes
}
