package sim

import (
	"fmt"
	"time"

	"fairway/internal/dispatch"
	"fairway/internal/flow"
)

// unfolding creates the jobs of a workflow file as data appears, by the rules
// of internal/flow. What the commands would do is modelled (model.go).
type unfolding struct {
	run      *run
	flow     *flow.Flow
	records  map[string]int64 // of files, as far as the experiment says
	open     int              // inputs that get more files
	finished bool             // no more jobs will be created
	tick     alarm            // when flow asked for a Tick
}

// fileWorkflow reads the workflow file of an experiment. It has no jobs yet.
func fileWorkflow(s WorkflowSpec) (*workflow, error) {
	parsed, err := s.parseFile()
	if err != nil {
		return nil, err
	}
	w := newWorkflow(parsed.Name)
	f, err := flow.New(parsed, s.Parameters)
	if err != nil {
		return nil, fmt.Errorf("read the workflow: %w", err)
	}
	w.rules = &unfolding{flow: f, records: map[string]int64{}, open: len(parsed.Inputs)}
	return w, nil
}

// attach says of which run the jobs are.
func (u *unfolding) attach(r *run) {
	u.run = r
	u.tick = newAlarm(&r.engine, func() { u.step(flow.Tick{}) })
}

// begin lets the files of the declared inputs arrive, in their order.
func (u *unfolding) begin() {
	u.step(flow.Tick{})
	for _, in := range u.flow.Inputs() {
		spec := u.run.exp.Workflow.Inputs[in.Name]
		files := u.place(in, &spec)
		if spec.Every.zero() {
			u.arrive(in.Name, files)
			u.close(in.Name)
			continue
		}
		own := stream(u.run.seed, "input", named(in.Name))
		at := time.Duration(0)
		for i := range files {
			u.run.after(at, func() { u.arrive(in.Name, files[i:i+1]) })
			at += spec.Every.draw(own)
		}
		u.run.after(at, func() { u.close(in.Name) })
	}
}

// place stores the files of an input before the run.
func (u *unfolding) place(in *flow.DeclaredInput, spec *InputSpec) []dispatch.ExistingFile {
	var files []dispatch.ExistingFile
	size := spec.Size
	if size == 0 {
		size = u.run.exp.Workflow.FileSize
	}
	for _, lfn := range spec.files(in) {
		if spec.Storage != "" {
			u.run.work.homes[lfn] = spec.Storage + ":" + lfn
		}
		u.run.work.sizes[lfn] = int64(size)
		u.records[lfn] = spec.Records
		pfn := u.run.pfnOf(lfn)
		u.run.elementOf(pfn).hold(pfn, int64(size))
		files = append(files, dispatch.ExistingFile{LFN: lfn, PFN: pfn, Size: int64(size), Identity: lfn})
	}
	return files
}

func (u *unfolding) arrive(input string, files []dispatch.ExistingFile) {
	arrived := make([]flow.InputFile, len(files))
	for i, file := range files {
		arrived[i].ExistingFile = file
	}
	u.step(flow.Arrived{Input: input, Files: arrived})
}

func (u *unfolding) close(input string) {
	u.open--
	u.step(flow.Closed{Input: input})
	u.run.checkEnd()
}

// committed tells of a job whose outputs are there.
func (u *unfolding) committed(t *task) {
	e := dispatch.Event{Kind: dispatch.JobCommitted, At: u.run.instant(), Name: t.job.Name, Step: t.job.Step}
	for _, m := range t.made {
		e.Files = append(e.Files, dispatch.CommittedFile{File: dispatch.FileRef{LFN: m.lfn}, Pattern: m.pattern, Size: m.size})
	}
	u.step(flow.Happened{Event: e})
}

// step takes the jobs that come of an input to those who submit them. That may
// lead to a step of dispatch, so it is done later at the same instant.
func (u *unfolding) step(in flow.Input) {
	r := u.run
	effects, err := u.flow.Step(r.instant(), in)
	if err != nil {
		r.fail("the workflow refuses %T: %v", in, err)
		return
	}
	u.finished = effects.Finished
	var fresh []int
	for i := range effects.Submit {
		fresh = append(fresh, r.work.append(u.model(&effects.Submit[i])))
	}
	if len(fresh)+len(effects.AddFiles) > 0 {
		r.after(0, func() { r.creator.add(effects.AddFiles, fresh) })
	}
	u.wakeAt(effects.WakeAt)
}

// wakeAt lets time pass for merges that do not wait for ever.
func (u *unfolding) wakeAt(t time.Time) {
	if t.IsZero() {
		u.tick.stop()
		return
	}
	u.tick.set(t.Sub(epoch))
}

// rests says that no more jobs will come while nothing happens.
func (u *unfolding) rests() bool { return u.finished || u.open == 0 && u.tick.due == never }

// left says why jobs were never created.
func (u *unfolding) left() error {
	for _, held := range u.flow.Held(1) {
		return fmt.Errorf("not all jobs were created: %s: %s", held.Job, held.Reason)
	}
	return nil
}
