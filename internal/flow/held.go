package flow

import (
	"fmt"
	"maps"
	"slices"
)

// maxStuckNotes bounds how many jobs that never run are named.
const maxStuckNotes = 10

// Held is a job that is known and not submitted, or a step of which something
// was refused.
type Held struct {
	Job    string
	Reason string
}

// refuse keeps a run from being finished, for a reason that people are told at
// once and again at its end. The step, which may be nil, gets no more final
// than it is.
func (f *Flow) refuse(st *stepState, format string, args ...any) {
	refused := Held{Reason: fmt.Sprintf(format, args...)}
	if st != nil {
		st.held++
		refused.Job = st.step.Name
	}
	f.refused = append(f.refused, refused)
	f.notify("%s", refused.Reason)
}

// Refused says what the workflow asks for and cannot have, oldest first: jobs
// that cannot be created, inputs and steps without a result. A run that was refused
// something is never finished.
func (f *Flow) Refused() []string {
	reasons := make([]string, len(f.refused))
	for i, refused := range f.refused {
		reasons[i] = refused.Reason
	}
	return reasons
}

// Held says for up to limit jobs why they are not submitted yet, for people:
// first those that others wait for.
func (f *Flow) Held(limit int) []Held {
	l := &heldList{limit: limit, named: map[string]bool{}}
	for _, refused := range f.refused[:min(limit, len(f.refused))] {
		l.held = append(l.held, refused)
		l.named[refused.Job] = true
	}
	names, queues := f.names.sorted(), slices.Sorted(maps.Keys(f.queues))
	for _, n := range names {
		for _, d := range n.pending {
			l.add(d.label, d.state, fmt.Sprintf("nothing made %s yet", n.lfn))
		}
	}
	for _, lfn := range queues {
		for _, j := range f.queues[lfn].waiting {
			l.add(j.name, j.state, f.queues[lfn].reason(j))
		}
	}
	for _, n := range names {
		for _, j := range n.readers {
			l.add(j.name, j.state, fmt.Sprintf("%s, which makes %s, is held itself", n.maker, n.lfn))
		}
	}
	return l.held
}

type heldList struct {
	limit int
	held  []Held
	named map[string]bool
}

func (l *heldList) add(job string, st *stepState, reason string) {
	if len(l.held) < l.limit && !l.named[job] {
		l.named[job] = true
		l.held = append(l.held, Held{job, reason})
	}
}

func (q *queue) reason(j *job) string {
	u := j.useOf(q)
	switch {
	case q.waiting[0] != j:
		return fmt.Sprintf("it comes after %s in the order of %s", q.waiting[0].name, q.lfn)
	case q.waitsFor != nil:
		return fmt.Sprintf("step %s may still make jobs that use %s before it", q.waitsFor.step.Name, q.lfn)
	case u.reads && !q.version:
		return fmt.Sprintf("it reads %s, and nothing writes it before", q.lfn)
	}
	return fmt.Sprintf("its turn for %s has not come", q.lfn)
}
