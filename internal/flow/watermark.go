package flow

import (
	"slices"

	"fairway/internal/flow/workflow"
)

// touch has the watermark of a step looked at again before this Step ends.
func (f *Flow) touch(st *stepState) {
	if !st.dirty {
		st.dirty = true
		f.dirty.Push(rank(st.step.Order))
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

// raiseNext finds for the next step in canonical order up to which wave all its jobs
// are known, makes the merges that this decides, and lets rewritten files go
// on. All jobs that are decided are known before.
func (f *Flow) raiseNext() {
	st := f.steps[f.dirty.Pop()-1]
	st.dirty = false
	f.undecided.known = false
	f.raiseWatermark(st)
}

func (f *Flow) raiseWatermark(st *stepState) {
	known := f.sourcesWatermark(st)
	switch {
	case st.merging != nil:
		known = f.mergeUpTo(st, known)
	case st.step.Data.Split != nil:
		known = min(known, st.counting.closed())
	case st.step.Plain():
		known = f.plainWatermark(st, known)
	}
	if len(f.making) > 0 { // it has just decided on jobs
		f.touch(st)
		return
	}
	if f.mayComeAside(st) {
		known = min(known, st.placed.closed())
	}
	if known <= st.watermark {
		f.lookForNothing(st) // its jobs may have chosen names since
		return
	}
	st.watermark = known
	f.lookForNothing(st)
	if known == forever {
		st.ended = max(st.ended, f.sourcesEnded(st))
		f.candidates = append(f.candidates, st)
	}
	f.touchAfter(st)
	for len(st.waiting) > 0 && st.waiting[0].wave <= known {
		wait := st.waiting.Pop()
		wait.queue.waitsFor = nil
		f.advance(wait.queue)
	}
}

// mayComeAside reports whether files that are set aside may still become known, and with them
// jobs whose place is known before.
func (f *Flow) mayComeAside(st *stepState) bool {
	return slices.ContainsFunc(st.aside, func(m *workflow.Maker) bool { return f.makerWatermark(m) != forever })
}

// plainWatermark creates the jobs of a plain step that come after all jobs of
// others.
func (f *Flow) plainWatermark(st *stepState, known int) int {
	if known == forever && !st.begun {
		f.plainJobs(st)
	}
	if st.created() {
		return forever
	}
	return known
}

func (f *Flow) sourcesWatermark(st *stepState) int {
	known := forever
	for _, m := range st.needed {
		known = min(known, f.makerWatermark(m))
	}
	for _, before := range st.step.Found.After {
		known = min(known, f.steps[before.Order-1].watermark)
	}
	return known
}

// makerWatermark is the wave up to which all files of a maker are known.
func (f *Flow) makerWatermark(m *workflow.Maker) int {
	if m.Input != nil {
		if f.inputs[m.Input.Name].closed {
			return forever
		}
		return f.wave
	}
	st := f.steps[m.Step.Order-1]
	if m.Fresh {
		return min(st.watermark, st.open.closed())
	}
	return st.watermark
}

// sourcesEnded is the wave in which the data of a step ended.
func (f *Flow) sourcesEnded(st *stepState) int {
	ended := 0
	for _, m := range st.needed {
		if m.Input != nil {
			ended = max(ended, f.inputs[m.Input.Name].ended)
		} else {
			ended = max(ended, f.steps[m.Step.Order-1].ended)
		}
	}
	for _, before := range st.step.Found.After {
		ended = max(ended, f.steps[before.Order-1].ended)
	}
	return ended
}

// watermarkWait is a queue that waits until the watermark of a step reaches a wave.
type watermarkWait struct {
	wave  int
	queue *queue
}

func (w watermarkWait) Before(other watermarkWait) bool { return w.wave < other.wave }
