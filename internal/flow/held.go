package flow

import "fmt"

// maxStuckNotes bounds how many jobs that never run are named.
const maxStuckNotes = 10

// Held is a job that is known and not submitted.
type Held struct {
	Job, Step string
	Reason    string
}

// Held says for up to limit jobs why they are not submitted yet, for people.
func (f *Flow) Held(limit int) []Held {
	var held []Held
	for _, lfn := range sortedKeys(f.names) {
		n := f.names[lfn]
		for _, d := range n.drafts {
			held = append(held, Held{d.label, d.state.step.name, fmt.Sprintf("nothing made %s yet", lfn)})
		}
		for _, j := range n.readers {
			held = append(held, Held{j.name, j.state.step.name, fmt.Sprintf("%s, which makes %s, is held itself", n.maker, lfn)})
		}
	}
	for _, lfn := range sortedKeys(f.queues) {
		for _, j := range f.queues[lfn].waiting {
			held = append(held, Held{j.name, j.state.step.name, f.queues[lfn].reason(j)})
		}
	}
	for _, st := range f.steps {
		for _, why := range st.refused {
			held = append(held, Held{st.step.name, st.step.name, why})
		}
	}
	return held[:min(limit, len(held))]
}

func (q *queue) reason(j *job) string {
	u := j.useOf(q)
	switch {
	case q.waiting[0] != j:
		return fmt.Sprintf("it comes after %s in the order of %s", q.waiting[0].name, q.lfn)
	case q.waitsFor != nil:
		return fmt.Sprintf("step %s may still make jobs that use %s before it", q.waitsFor.step.name, q.lfn)
	case u.reads && !q.version:
		return fmt.Sprintf("it reads %s, and nothing writes it before", q.lfn)
	}
	return fmt.Sprintf("its turn for %s has not come", q.lfn)
}
