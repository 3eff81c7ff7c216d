package flow

import (
	"fmt"
	"slices"
	"time"

	"fairway/internal/dispatch/rows"
	"fairway/internal/flow/pattern"
	"fairway/internal/flow/workflow"
)

// Flow creates the jobs of one run of a workflow. It must not be used from
// two goroutines at once.
//
// Flow owns all of its state, and Step alone changes it. All of it follows from the
// workflow and the entries of the log, so Load makes it by taking these once more.
// Nothing leaves it before the run ends: a name that is known stays known, a step
// whose jobs are known up to a wave stays so.
type Flow struct {
	// The workflow as it was parsed, and what came of each part of it. wave counts the
	// files that arrived and the inputs that closed, and never falls.
	w      *workflow.Workflow
	steps  []*stepState // in canonical order
	inputs map[string]*inputState
	wave   int

	// Every name that a job reads or writes or that arrived, by LFN, and what tells
	// whether a further one would be in its way: folders has all folders above a file
	// that is there or that a known job writes.
	names    names
	made     map[*workflow.Maker]int // files that are known
	folders  map[string]string       // with a file in each
	patterns map[string]string       // makers, by the names with '*' that jobs choose under

	// Jobs whose commit creates others or makes names known, by name, from when they
	// are known until they are committed.
	followed map[string]*job

	// Temporary outputs that jobs still to be submitted may read, by LFN, with the steps
	// of these jobs, and those that none may as Load found them; see readers.go.
	awaited     map[string][]awaitedReader
	knownBefore []string

	// The order of rewritten files: a queue for each name that a job uses, from then
	// on; shared are the entries by which steps use such names, as parsed.
	queues map[string]*queue
	shared []workflow.Use

	// Groups of age-limited merges that have a file which exists and is not taken, the
	// one whose merge is due first in front, once nextAge has looked.
	aging rows.Ordered[aging]

	// What is still to do. A Step does a piece of it.
	agenda
	effects Effects

	// How far the run is. The numbers only grow, and what is set stays so.
	started bool
	stuck   bool   // a person was told that nothing can go on
	entries uint64 // in the log
	final   int    // steps that will create no more jobs
	refused []Held // what keeps the run from being finished
}

// New starts a run of a workflow, of which all parameters have a value.
func New(w *workflow.Workflow) (*Flow, error) {
	if err := w.Unbound(); err != nil {
		return nil, err
	}
	f := &Flow{
		w: w, inputs: map[string]*inputState{},
		names: names{rows.NewNamed(func(n *name) *string { return &n.lfn })}, made: map[*workflow.Maker]int{},
		folders: map[string]string{}, patterns: map[string]string{}, followed: map[string]*job{}, queues: map[string]*queue{},
		awaited: map[string][]awaitedReader{}, agenda: newAgenda(),
	}
	for _, in := range w.Inputs {
		f.inputs[in.Name] = &inputState{in: in, arrived: map[string]string{}}
	}
	for _, s := range w.Steps {
		f.steps = append(f.steps, newStepState(s))
	}
	f.linkSteps()
	return f, nil
}

func newStepState(s *workflow.Step) *stepState {
	st := &stepState{step: s, watermark: -1, begun: s.Replayed, took: make([]int, len(s.Sources()))}
	st.needed, st.aside = s.MakersBefore()
	if len(s.Data.Merge) > 0 {
		st.merging = &merging{groups: map[string]*group{}}
	} else if len(s.Data.Each) > 0 {
		st.join = newJoin(s.Data.Each)
	}
	return st
}

func (f *Flow) linkSteps() {
	states := map[*workflow.Step]*stepState{}
	for _, st := range f.steps {
		states[st.step] = st
		for _, before := range st.step.Before() {
			states[before].dependents = append(states[before].dependents, st)
		}
		f.shared = append(f.shared, st.step.SharedUses()...)
	}
}

// Workflow gives the workflow with the values of its parameters.
func (f *Flow) Workflow() *workflow.Workflow { return f.w }

// Inputs are the declared inputs, in order. The caller feeds those that exist
// in this order, so that the same files give the same run.
func (f *Flow) Inputs() []*workflow.DeclaredInput { return f.w.Inputs }

// Closed reports whether an input was closed.
func (f *Flow) Closed(input string) bool {
	state := f.inputs[input]
	return state != nil && state.closing
}

// Accepts reports whether jobs may still be submitted: the workflow is open, and was not closed.
func (f *Flow) Accepts() bool { return f.w.Open() && !f.Closed(workflow.SubmittedJobs) }

// Step takes one input, and does a piece of what it asks for. An error means that the input was refused and
// changed nothing. While [Flow.Unfinished], inputs are taken, and a Tick alone has the next piece done.
func (f *Flow) Step(now time.Time, in Input) (Effects, error) {
	take, err := f.accept(now, in)
	if err != nil {
		return Effects{}, err
	}
	_, goOn := in.(Tick)
	goOn = goOn || !f.Unfinished()
	before := f.letOut
	f.effects = Effects{}
	f.start()
	take()
	if goOn {
		f.work(now, f.piece)
	}
	f.noteProgress(before)
	f.report(now)
	return f.effects, nil
}

// StepToEnd is Step and all pieces after it, for a caller that has nobody else to serve meanwhile.
func (f *Flow) StepToEnd(now time.Time, in Input) (Effects, error) {
	all, err := f.Step(now, in)
	for err == nil && f.Unfinished() {
		var next Effects
		next, err = f.Step(now, Tick{})
		all.add(&next)
	}
	return all, err
}

// accept checks an input without a change, and gives what takes it.
func (f *Flow) accept(now time.Time, in Input) (take func(), err error) {
	switch in := in.(type) {
	case Arrived:
		return f.arrived(now, in)
	case Closed:
		return f.closed(in)
	case Happened:
		return func() { f.happened(in.Event) }, nil
	case Tick:
		return func() {}, nil
	}
	panic(fmt.Sprintf("flow: unknown input %T", in))
}

// take has an input carried out when those before it have ended.
func (f *Flow) take(act func()) { f.taken = append(f.taken, act) }

func (f *Flow) start() {
	if f.started {
		return
	}
	f.started, f.ended = true, false
	f.record(TableRun, "run", runRecord{logFormat, f.w.Name, f.w.Digest()})
	f.touchAll()
	for _, st := range f.steps {
		if st.step.Plain() && !st.begun && len(st.step.Found.After) == 0 {
			f.plainJobs(st)
		}
	}
}

func (f *Flow) plainJobs(st *stepState) {
	st.begun = true
	wave := 0
	if len(st.step.Found.After) > 0 {
		wave = f.sourcesEnded(st)
	}
	if st.step.Data.Times == 0 {
		f.hold(&pendingJob{state: st, values: pattern.Binding{}, label: st.step.Name, wave: wave})
	}
	if st.step.Data.Times > 0 {
		all := &numbered{state: st, wave: wave}
		f.makeAll(all.place(), all)
	}
}

// finish reports final steps, and once what can never be submitted.
func (f *Flow) finish() {
	slices.SortFunc(f.candidates, func(a, b *stepState) int { return a.step.Order - b.step.Order })
	for _, st := range f.candidates {
		if !st.final && st.watermark == forever && st.held == 0 {
			st.final = true
			f.final++
			f.effects.Final = append(f.effects.Final, st.step.Name)
			f.readsNoMore(st)
		}
	}
	f.candidates = f.candidates[:0]
	if !f.stuck && !f.finished() && !f.open() &&
		!slices.ContainsFunc(f.steps, func(st *stepState) bool { return st.watermark != forever }) {
		f.stuck = true
		told := len(f.refused)
		for _, held := range f.Held(told + maxStuckNotes)[told:] {
			f.notify("job %s will never run: %s", held.Job, held.Reason)
		}
	}
}

// finished reports whether no more jobs will be created.
func (f *Flow) finished() bool { return f.final == len(f.steps) && len(f.refused) == 0 && !f.open() }

// open reports whether jobs may be submitted.
func (f *Flow) open() bool {
	state := f.inputs[workflow.SubmittedJobs]
	return f.w.Open() && (state == nil || !state.closed)
}

// report says how far a Step has come.
func (f *Flow) report(now time.Time) {
	if f.Unfinished() {
		f.effects.WakeAt = now
		return
	}
	f.effects.Finished, f.effects.WakeAt = f.finished(), f.nextAge()
}
