package sim

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"fairway/internal/flow"
	"fairway/internal/flow/workflow"
	"fairway/internal/sim/experiment"
	"fairway/internal/taskqueue"
)

// unfolding creates the jobs of a workflow file as data appears, by the rules
// of internal/flow. What the commands would do is modelled.
type unfolding struct {
	run      *run
	flow     *flow.Flow
	records  map[string]int64 // of files, as far as the experiment says
	open     int              // inputs that get more files
	finished bool             // no more jobs will be created
	tick     alarm            // when flow asked for a Tick
}

// fileWorkflow reads the workflow file of an experiment. It has no jobs yet.
func fileWorkflow(s experiment.WorkflowSpec) (*jobGraph, error) {
	parsed, err := s.ReadFile()
	if err != nil {
		return nil, err
	}
	w := newWorkflow()
	f, err := flow.New(parsed)
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
		if spec.Every.IsZero() {
			u.arrive(in.Name, files)
			u.close(in.Name)
			continue
		}
		own := Stream(u.run.seed, "input", named(in.Name))
		at := time.Duration(0)
		for i := range files {
			u.run.after(at, func() { u.arrive(in.Name, files[i:i+1]) })
			at += spec.Every.Draw(own)
		}
		u.run.after(at, func() { u.close(in.Name) })
	}
}

// place stores the files of an input before the run.
func (u *unfolding) place(in *workflow.DeclaredInput, spec *experiment.InputSpec) []taskqueue.ExistingFile {
	var files []taskqueue.ExistingFile
	size := spec.Size
	if size == 0 {
		size = u.run.exp.Workflow.FileSize
	}
	for _, lfn := range filesOf(spec, in) {
		if spec.Storage != "" {
			u.run.work.homes[lfn] = spec.Storage + ":" + lfn
		}
		u.run.work.sizes[lfn] = int64(size)
		u.records[lfn] = spec.Records
		pfn := u.run.pfnOf(lfn)
		u.run.elementOf(pfn).hold(pfn, int64(size))
		files = append(files, taskqueue.ExistingFile{LFN: lfn, PFN: pfn, Size: int64(size), Identity: lfn})
	}
	return files
}

func (u *unfolding) arrive(input string, files []taskqueue.ExistingFile) {
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
	e := taskqueue.Event{Kind: taskqueue.JobCommitted, At: u.run.instant(), Name: t.job.Name, Step: t.job.Step}
	for _, m := range t.made {
		e.Files = append(e.Files, taskqueue.CommittedFile{
			File: taskqueue.FileRef{LFN: m.lfn}, Pattern: m.pattern, Size: m.size,
		})
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
	u.tick.setAt(effects.WakeAt)
}

// rests reports whether no more jobs will come while nothing happens.
func (u *unfolding) rests() bool { return u.finished || u.open == 0 && u.tick.due == never }

// left says why jobs were never created.
func (u *unfolding) left() error {
	for _, held := range u.flow.Held(1) {
		return fmt.Errorf("not all jobs were created: %s: %s", held.Job, held.Reason)
	}
	return nil
}

// model makes the task that stands for a job of the workflow file. Its draws
// depend on the name of the job alone.
func (u *unfolding) model(j *workflow.NewJob) task {
	t := task{job: j.Job, made: []made{}}
	t.job.Needs = taskqueue.Resources{Time: j.Job.Needs.Time}
	t.job.Tools = nil
	s := u.run.exp.Workflow.Steps[j.Job.Step]
	own := Stream(u.run.seed, "job", named(j.Job.Name))
	if j.Counts {
		t.run = u.counting(&s, own)
		t.made = append(t.made, u.counted(j))
		return t
	}
	read := u.bytesFrom(j)
	run := s.Run
	if run.IsZero() {
		run = u.run.exp.Workflow.Run
	}
	t.run = run.Draw(own) + time.Duration(float64(s.PerGB)*read/1e9)
	u.imagine(&t, &s, read)
	t.prepare(u.run.exp, own)
	return t
}

func (u *unfolding) counting(s *experiment.StepSpec, own *rand.Rand) time.Duration {
	if s.Count.IsZero() {
		return time.Second
	}
	return s.Count.Draw(own)
}

// counted is the empty file whose name is the number of records.
func (u *unfolding) counted(j *workflow.NewJob) made {
	pattern, lfn := j.Job.Writes[0].LFN, j.Job.Reads[0]
	if u.records[lfn] == 0 {
		u.run.fail("job %s splits %s, and the experiment does not say how many records that has: give records under "+
			"workflow.inputs or workflow.steps", j.Job.Name, lfn)
	}
	return made{extant{strings.TrimSuffix(pattern, "*") + strconv.FormatInt(u.records[lfn], 10), 0}, pattern}
}

// bytesFrom counts the bytes that a job was made from; of a file that is split
// those of its records. A job that is made from none counts as if from one.
func (u *unfolding) bytesFrom(j *workflow.NewJob) float64 {
	if j.From == 0 {
		return float64(u.run.exp.Workflow.FileSize)
	}
	var bytes int64
	for _, lfn := range j.Job.Reads[:j.From] {
		bytes += u.run.work.sizes[lfn]
	}
	return float64(bytes) * u.share(j)
}

// share is the part of its first input that a job of a split takes.
func (u *unfolding) share(j *workflow.NewJob) float64 {
	first, err1 := strconv.ParseInt(j.Command.Environment["first"], 10, 64)
	last, err2 := strconv.ParseInt(j.Command.Environment["last"], 10, 64)
	if err1 != nil || err2 != nil || u.records[j.Job.Reads[0]] == 0 {
		return 1
	}
	all := u.records[j.Job.Reads[0]]
	return float64(last-first+1) / float64(all)
}

// imagine says what a job writes.
func (u *unfolding) imagine(t *task, s *experiment.StepSpec, read float64) {
	for _, o := range t.job.Writes {
		if !o.Pattern {
			t.made = append(t.made, made{extant{lfn: o.LFN}, ""})
			continue
		}
		for _, n := range experiment.Numbered(max(s.Files, 1)) {
			t.made = append(t.made, made{extant{lfn: strings.ReplaceAll(o.LFN, "*", n)}, o.LFN})
		}
	}
	size := sizeOf(s, read, len(t.made))
	for i := range t.made {
		t.made[i].size = size
		u.run.work.sizes[t.made[i].lfn] = size
		u.records[t.made[i].lfn] = s.Records
	}
}

// filesOf imagines the files of a declared input, in the order of the values.
func filesOf(s *experiment.InputSpec, in *workflow.DeclaredInput) []string {
	combinations := []map[string]string{{}}
	for _, name := range in.Placeholders() {
		values, ok := s.Values[name]
		if !ok {
			values = experiment.Numbered(1)
		}
		combinations = with(combinations, name, values)
	}
	var lfns []string
	seen := map[string]bool{}
	for _, values := range combinations {
		for _, lfn := range in.Named(values) {
			if !seen[lfn] {
				seen[lfn] = true
				lfns = append(lfns, lfn)
			}
		}
	}
	return lfns
}

// with adds each value of one more placeholder to each combination.
func with(combinations []map[string]string, name string, values []string) []map[string]string {
	var all []map[string]string
	for _, c := range combinations {
		for _, value := range values {
			next := map[string]string{name: value}
			maps.Copy(next, c)
			all = append(all, next)
		}
	}
	return all
}

// sizeOf is the size of each of n outputs of a job that reads so many bytes.
func sizeOf(s *experiment.StepSpec, read float64, n int) int64 {
	switch {
	case s.Size > 0:
		return int64(s.Size)
	case n == 0:
		return 0
	case s.Ratio > 0:
		read *= s.Ratio
	}
	return int64(read / float64(n))
}
