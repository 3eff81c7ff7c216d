package flow

import (
	"strconv"

	"fairway/internal/flow/pattern"
)

// making is jobs that are decided and still to be made known: one, or those that are left of a
// sequence. The key is a place in the canonical order that none of them stands before, nor any
// that follows from them.
type making struct {
	key
	one  *pendingJob
	rest sequence
}

// Before is the canonical order.
func (m making) Before(other making) bool { return m.key.compare(other.key) < 0 }

// sequence is the jobs that one event makes of a step, which may be a million. next decides on the
// next of them, of which there must be one, and returns where the others begin in the canonical
// order, if there are more.
type sequence interface {
	next(f *Flow) (rest key, more bool)
}

// make has a pending job made known in its turn, since all its names are.
func (f *Flow) make(d *pendingJob) {
	f.making.Push(making{
		key: key{wave: d.wave, step: d.state.step.Order, first: earliest(d.in, d.wave), name: d.label}, one: d,
	})
}

// makeAll has jobs made known that begin at a place in the canonical order.
func (f *Flow) makeAll(first key, all sequence) { f.making.Push(making{key: first, rest: all}) }

// makeNext makes the first job known of those that are decided, or decides on one.
func (f *Flow) makeNext() {
	m := f.making.Pop()
	if m.rest == nil {
		f.create(m.one, m.key)
	} else if rest, more := m.rest.next(f); more {
		f.makeAll(rest, m.rest)
	}
}

// mayPrecede reports whether the first job that nothing keeps may be let out before all others are
// made known: so a million that one step makes need not be in memory together. None that is still
// to come stands before it.
func (f *Flow) mayPrecede() bool {
	if len(f.making) == 0 || f.ready.Len() <= f.piece/10 || len(f.queues) > 0 {
		return false
	}
	if !f.undecided.known {
		f.undecided.key, f.undecided.known = f.firstUndecided(), true
	}
	front := f.ready.Front().key
	return front.compare(f.making[0].key) < 0 && front.compare(f.undecided.key) < 0
}

// firstUndecided is a place in the canonical order before which no job comes of those that nobody
// has decided on yet.
func (f *Flow) firstUndecided() key {
	first := key{wave: forever}
	for _, st := range f.steps {
		waits := st.merging != nil || st.step.Plain() && !st.begun
		if from := (key{wave: st.watermark, step: st.step.Order}); waits && st.watermark != forever {
			from.wave++
			if from.compare(first) < 0 {
				first = from
			}
		}
	}
	return first
}

// numbered are the jobs of a step that runs a number of times.
type numbered struct {
	state *stepState
	wave  int
	made  int64
}

func (s *numbered) next(f *Flow) (key, bool) {
	s.made++
	number := strconv.FormatInt(s.made, 10)
	f.hold(&pendingJob{
		state: s.state, values: pattern.Binding{"number": number}, label: s.state.step.Name + "/" + number, wave: s.wave,
	})
	return s.place(), s.made < s.state.step.Data.Times
}

// place is that of the next job.
func (s *numbered) place() key {
	return key{wave: s.wave, step: s.state.step.Order, first: s.wave,
		name: s.state.step.Name + "/" + strconv.FormatInt(s.made+1, 10)}
}

// chunks are the jobs of a file that is split.
type chunks struct {
	state   *stepState
	in      *file
	values  pattern.Binding
	label   string // of the file
	records int64
	made    int64
	count   int64
}

func (s *chunks) next(f *Flow) (key, bool) {
	per, done := s.state.step.Data.Split.Records, s.made*s.state.step.Data.Split.Records
	s.made++
	chunk := strconv.FormatInt(s.made, 10)
	f.hold(&pendingJob{
		state: s.state, in: []*file{s.in}, wave: s.in.wave, label: s.label + "/" + chunk,
		values: union(s.values, pattern.Binding{
			"chunk": chunk,
			"first": strconv.FormatInt(done+1, 10),
			"last":  strconv.FormatInt(done+min(per, s.records-done), 10),
		}),
	})
	return s.place(), s.made < s.count
}

// place is that of the next job.
func (s *chunks) place() key {
	return key{wave: s.in.wave, step: s.state.step.Order, first: s.in.first,
		name: s.label + "/" + strconv.FormatInt(s.made+1, 10)}
}
