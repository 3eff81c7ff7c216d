package dispatch

import (
	"cmp"
	"slices"
	"time"

	"fairway/internal/dispatch/records"
	"fairway/internal/taskqueue"
)

// A result lives as long as a run names it that is kept, whether that is under way, has failed, or
// was retired with RetireRun.Keep. After that it lives as long as a policy says: what the group that
// made it, or the next one around it, has said of retention (Shares) is a promise; Config.Retention
// is how long it stays if there is room.

// retention says how long a result is kept that no run names, and whether that is promised. Such as nobody
// else could take are not kept.
func (c *Core) retention(r *storedResult) (keeps time.Duration, promised bool) {
	if r.scope == "" {
		return 0, false
	}
	for s := c.shares.Known(taskqueue.Account{Group: r.origin.Account.Group}); s != nil; s = s.Parent() {
		if s.Said().Retention != 0 {
			return max(s.Said().Retention, 0), true
		}
	}
	return c.config.Retention, false
}

// endOf is when the time of a result is over that no run names since it was left.
func (c *Core) endOf(r *storedResult, left instant) (end instant, promised bool) {
	keeps, promised := c.retention(r)
	return left.After(keeps), promised
}

// Forgettable returns results that no run names and that are kept no longer at a time, in the order in
// which they may go: first those whose time is over, then the oldest that no group has promised to keep,
// as long as there are more than limit of these, or until so many bytes are given back in all. A
// caller has them forgotten by ForgetResults.
func (c *Core) Forgettable(now time.Time, limit int, bytes int64) []taskqueue.UnusedResult {
	type unused struct {
		key      identity
		end      instant
		promised bool
	}
	at := taskqueue.InstantOf(now)
	var over, others []unused
	for key, r := range c.journal.results {
		if !r.unused() {
			continue
		}
		u := unused{key: key}
		if u.end, u.promised = c.endOf(r, r.left); u.end <= at {
			over = append(over, u)
		} else if !u.promised {
			others = append(others, u)
		}
	}
	inOrder := func(a, b unused) int { return cmp.Or(cmp.Compare(a.end, b.end), compareKeys(a.key, b.key)) }
	slices.SortFunc(over, inOrder)
	var list []taskqueue.UnusedResult
	for _, u := range over {
		list = append(list, c.journal.results[u.key].asUnused(u.key))
		bytes -= list[len(list)-1].Bytes
	}
	if len(others) > limit || bytes > 0 {
		slices.SortFunc(others, inOrder)
	}
	for i, u := range others {
		if len(others)-i <= limit && bytes <= 0 {
			break
		}
		list = append(list, c.journal.results[u.key].asUnused(u.key))
		bytes -= list[len(list)-1].Bytes
	}
	return list
}

// NamedBy returns the results that a run names, whether it was retired or not, in the order of their
// jobs. What its jobs have stored that is no result is told of as such, and would go at once.
func (c *Core) NamedBy(id taskqueue.RunID, now time.Time) (list []taskqueue.NamedResult) {
	seen := make(map[identity]bool)
	add := func(r *storedResult, others []taskqueue.RunID) {
		n := taskqueue.NamedResult{Job: r.job, Others: others}
		for _, o := range r.outputs {
			if o.PFN != "" {
				n.Files = append(n.Files, taskqueue.StoredFile{File: taskqueue.FileRef{LFN: o.LFN}, PFN: o.PFN, Size: o.Size})
				n.Bytes += o.Size
			}
		}
		if end, promised := c.endOf(r, taskqueue.InstantOf(now)); end > taskqueue.InstantOf(now) {
			n.Until, n.Promised = end.Time(), promised
		}
		list = append(list, n)
	}
	if run := c.runs.byID[id]; run != nil {
		for j := range c.jobs.of(run) {
			if j.committed == 0 {
				continue
			}
			r := c.journal.results[j.key]
			if r == nil || j.key == (identity{}) {
				r = c.files.resultOf(j)
				if j.key == (identity{}) {
					r.scope = "" // it can be taken by nobody
				}
			}
			if !seen[j.key] || j.key == (identity{}) {
				add(r, r.othersThan(id))
			}
			seen[j.key] = true
		}
		return list
	}
	for _, key := range c.journal.resultKeysOf(func(r *storedResult) bool { return slices.Contains(r.runs, id) }) {
		r := c.journal.results[key]
		add(r, r.othersThan(id))
	}
	slices.SortStableFunc(list, func(a, b taskqueue.NamedResult) int { return cmp.Compare(a.Job, b.Job) })
	return list
}

// othersThan are the runs that name the result, but for one.
func (r *storedResult) othersThan(id taskqueue.RunID) (others []taskqueue.RunID) {
	for _, x := range r.runs {
		if x != id {
			others = append(others, x)
		}
	}
	for _, j := range r.takers {
		if x := j.id.Run(); x != id {
			others = append(others, x)
		}
	}
	slices.Sort(others)
	return slices.Compact(others)
}

// IsSharedWith reports whether a run may take the result of a key, as far as it is known.
func (c *Core) IsSharedWith(id taskqueue.RunID, key string) bool {
	parsed, err := records.ParseIdentity(key)
	run, result := c.runs.byID[id], c.journal.results[parsed]
	return err == nil && run != nil && result != nil && result.scope == run.Scope
}

// MadeBy is the name of the job that made the result of a key; empty if there is no such result.
func (c *Core) MadeBy(key string) string {
	if id, err := records.ParseIdentity(key); err == nil && c.journal.results[id] != nil {
		return c.journal.results[id].job
	}
	return ""
}

// ResultFiles yields the PFNs of the stored files of all results.
func (c *Core) ResultFiles(yield func(pfn string) bool) {
	for _, r := range c.journal.results {
		for i := range r.outputs {
			if pfn := r.outputs[i].PFN; pfn != "" && !yield(pfn) {
				return
			}
		}
	}
}

// countKept counts for its step what a job has stored to stay.
func (j *job) countKept(outputs []output) {
	if j.wasTaken() {
		return
	}
	for i := range outputs {
		if o := &outputs[i]; o.PFN != "" && !j.outputFor(o.LFN).Temporary {
			j.step.kept += o.Size
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
			bytes += int64(float64(s.kept) / float64(done) * float64(left))
		}
	}
	return bytes
}
