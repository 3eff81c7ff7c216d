package flow

import (
	"slices"
	"time"

	"fairway/internal/flow/pattern"
)

// aging is a group whose oldest file becomes too old at a time.
type aging struct {
	due   time.Time
	state *stepState
	group *group
}

func (a aging) Before(b aging) bool {
	if !a.due.Equal(b.due) {
		return a.due.Before(b.due)
	}
	if a.state != b.state {
		return a.state.step.Order < b.state.step.Order
	}
	return pattern.Natural(a.group.key, b.group.key) < 0
}

// mergeable starts the clock of a file that exists, if the step has one.
func (f *Flow) mergeable(st *stepState, g *group, made *file) {
	if st.step.Data.Limits.Latency == 0 || g.taken[made] {
		return
	}
	g.aged = append(g.aged, made)
	if len(g.aged) == 1 {
		f.aging.Push(aging{made.since.Add(st.step.Data.Limits.Latency), st, g})
	}
}

// ageNext makes the next merge that is due, records what it takes, and reports
// whether there was one. What a merge took cannot be found again from the
// files, so a reloaded Flow takes it from the record.
func (f *Flow) ageNext(now time.Time) bool {
	if f.nextAge(); len(f.aging) == 0 || f.aging[0].due.After(now) {
		return false
	}
	due := f.aging.Pop()
	files := due.group.aged
	entry := logEntry{Kind: logAged, Name: due.state.step.Name, Group: due.group.key}
	for _, file := range files {
		entry.LFNs = append(entry.LFNs, file.lfn)
	}
	f.persist(entry)
	f.ageMerge(due.state, due.group, files)
	return true
}

// nextAge is when the next merge is due, or zero. Groups whose oldest file
// was taken otherwise get their new place first.
func (f *Flow) nextAge() time.Time {
	for len(f.aging) > 0 {
		next := &f.aging[0]
		if !next.group.refresh() {
			f.aging.Pop()
			continue
		}
		due := next.group.aged[0].since.Add(next.state.step.Data.Limits.Latency)
		if due.Equal(next.due) {
			return due
		}
		next.due = due
		f.aging.Sink()
	}
	return time.Time{}
}

// refresh forgets files that other merges took, and reports whether any is left.
func (g *group) refresh() bool {
	g.aged = slices.DeleteFunc(g.aged, func(file *file) bool { return g.taken[file] })
	return len(g.aged) > 0
}

func (f *Flow) ageMerge(st *stepState, g *group, files []*file) {
	g.aged = nil
	slices.SortFunc(files, func(a, b *file) int {
		if a.before(b) {
			return -1
		}
		return 1
	})
	f.mergeJob(st, g, files, max(latest(files), f.wave))
	g.queue = slices.DeleteFunc(g.queue, func(file *file) bool { return g.taken[file] })
	g.scan, g.bytes = 0, 0
	st.merging.touch(g)
	f.touch(st)
}
