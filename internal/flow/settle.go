package flow

// touch lets a step settle again before this Step ends.
func (f *Flow) touch(st *stepState) {
	if !st.dirty {
		st.dirty = true
		f.dirty.push(rank(st.step.order))
	}
}

func (f *Flow) touchAll() {
	for _, st := range f.steps {
		f.touch(st)
	}
}

func (f *Flow) touchAfter(st *stepState) {
	for _, after := range st.dependents {
		f.touch(after)
	}
}

// settle finds, step by step in canonical order, up to which wave all jobs
// are known, makes the merges that this decides, and lets rewritten files go
// on.
func (f *Flow) settle() {
	for f.dirty.len() > 0 {
		st := f.steps[f.dirty.pop()-1]
		st.dirty = false
		f.settleStep(st)
	}
}

func (f *Flow) settleStep(st *stepState) {
	settled := f.sourcesSettled(st)
	switch {
	case st.merging != nil:
		settled = f.settleMerges(st, settled)
	case st.step.split != nil:
		settled = min(settled, st.counting.closed())
	case st.step.plain():
		settled = f.settlePlain(st, settled)
	}
	if settled <= st.settled {
		f.lookForNothing(st) // its jobs may have chosen names since
		return
	}
	st.settled = settled
	f.lookForNothing(st)
	if settled == forever {
		st.ended = max(st.ended, f.sourcesEnded(st))
		f.candidates = append(f.candidates, st)
	}
	f.touchAfter(st)
	for st.waiting.len() > 0 && st.waiting.least().wave <= settled {
		wait := st.waiting.pop()
		wait.queue.waitsFor = nil
		f.advance(wait.queue)
	}
}

// settlePlain creates the jobs of a plain step that come after all jobs of
// others.
func (f *Flow) settlePlain(st *stepState, settled int) int {
	if settled == forever && !st.drafted {
		f.plainJobs(st)
	}
	if st.created() {
		return forever
	}
	return settled
}

func (f *Flow) sourcesSettled(st *stepState) int {
	settled := forever
	for _, m := range st.needed {
		settled = min(settled, f.makerSettled(m))
	}
	for _, before := range st.step.after {
		settled = min(settled, f.steps[before.order-1].settled)
	}
	return settled
}

// makerSettled is the wave up to which all files of a maker are known.
func (f *Flow) makerSettled(m *maker) int {
	if m.input != nil {
		if f.inputs[m.input.Name].closed {
			return forever
		}
		return f.wave
	}
	st := f.steps[m.step.order-1]
	if m.fresh {
		return min(st.settled, st.open.closed())
	}
	return st.settled
}

// sourcesEnded is the wave in which the data of a step ended.
func (f *Flow) sourcesEnded(st *stepState) int {
	ended := 0
	for _, m := range st.needed {
		if m.input != nil {
			ended = max(ended, f.inputs[m.input.Name].ended)
		} else {
			ended = max(ended, f.steps[m.step.order-1].ended)
		}
	}
	for _, before := range st.step.after {
		ended = max(ended, f.steps[before.order-1].ended)
	}
	return ended
}

func (f *Flow) allSettled() bool {
	for _, st := range f.steps {
		if st.settled != forever {
			return false
		}
	}
	return true
}

// settleWait is a queue that waits until a step is settled up to a wave.
type settleWait struct {
	wave  int
	queue *queue
}

func (w settleWait) before(other settleWait) bool { return w.wave < other.wave }
