package flow

import (
	"fmt"
	"slices"
	"strings"

	"fairway/internal/flow/pattern"
	"fairway/internal/flow/workflow"
	"fairway/internal/logical"
	"fairway/internal/quantity"
	"fairway/internal/taskqueue"
)

// maxChunks bounds the jobs that one file is split into. A file that would
// give more is not split; its step then never becomes final, and a note says
// why.
const maxChunks = 1_000_000

// splitFile makes the jobs of one file as soon as the number of its records
// is known.
func (f *Flow) splitFile(st *stepState, in *file, values pattern.Binding) {
	st.counting.add(in.wave)
	taker := splitTaker{st, values}
	if in.there {
		taker.exists(f, in)
		return
	}
	in.takers = append(in.takers, taker)
}

// splitTaker is told when the file exists.
type splitTaker struct {
	st     *stepState
	values pattern.Binding
}

func (t splitTaker) exists(f *Flow, in *file) {
	split := t.st.step.Data.Split
	switch {
	case split.Unit == workflow.RecordBytes && !in.unsized:
		f.split(t.st, in, t.values, parts(in.size, split.Bytes))
	case in.records > 0:
		f.split(t.st, in, t.values, in.records)
	default:
		f.hold(&pendingJob{state: t.st, values: t.values, label: t.st.label(t.values, in) + "/records", in: []*file{in},
			wave: in.wave, count: true})
	}
}

// fillCount describes the job that counts the records of a file.
func (f *Flow) fillCount(j *job, d *pendingJob) {
	s := j.state.step
	text := s.Data.Split.Count
	if s.Data.Split.Unit != workflow.RecordCounted {
		text = countCommands[s.Data.Split.Unit]
	}
	c := &commandSource{w: f.w, step: &workflow.Step{Reads: d.readEntries(),
		Data: workflow.StepData{EachNames: s.Data.EachNames}},
		values: d.values,
		in:     []string{d.in[0].lfn}, reads: d.reads}
	j.new.Job, j.new.From, j.new.Counts = f.describe(j), 1, true
	j.new.Job.Tasks, j.new.Job.Apart, j.new.Job.Once = 0, false, false
	j.new.Job.Reads = logical.Unique(append(slices.Clone(c.in), d.reads...))
	j.new.Job.Writes = []taskqueue.Output{{LFN: logical.Escape(j.countPrefix()) + "*", Pattern: true}}
	f.fillAccess(j, c)
	j.new.Command = workflow.Command{
		Environment: c.environment(text), InputVariables: c.inputVariables(), Shell: fmt.Sprintf(countScript, text),
	}
	j.new.Command.Environment["out"] = strings.TrimSuffix(j.countPrefix(), "/")
	j.new.Job.Digest = workflow.Digest(j.new)
}

func (f *Flow) counted(j *job, files []taskqueue.CommittedFile) {
	pattern := j.countPrefix()
	for _, out := range files {
		if name := out.File.LFN; len(name) > len(pattern) && name[:len(pattern)] == pattern {
			f.countedAs(j, name[len(pattern):])
			return
		}
	}
	f.refuse(j.state, "job %s ended without a number of records", j.name)
}

func (f *Flow) countedAs(j *job, text string) {
	n, err := quantity.Whole(text)
	if err != nil {
		f.refuse(j.state, "job %s counted the records of %s: %v", j.name, j.in.lfn, err)
		return
	}
	if split := j.state.step.Data.Split; split.Unit == workflow.RecordBytes {
		n = parts(n, split.Bytes)
	}
	f.split(j.state, j.in, j.values, n)
}

func parts(n, size int64) int64 {
	if n%size > 0 {
		return n/size + 1
	}
	return n / size
}

func (j *job) countPrefix() string { return logical.CountFolder + j.name + "/" }

// split makes the jobs of a file with so many records.
func (f *Flow) split(st *stepState, in *file, values pattern.Binding, records int64) {
	per := st.step.Data.Split.Records
	count := parts(records, per)
	if count > maxChunks {
		f.refuse(st, "step %s would split %s into %d jobs, the limit is %d: give each job more records", st.step.Name, in.lfn,
			count, maxChunks)
		return
	}
	st.counting.remove(in.wave)
	f.touch(st)
	f.willRead(st, in.lfn, count)
	f.noRecords(st, in, records)
	if count > 0 {
		all := &chunks{state: st, in: in, values: values, label: st.label(values, in), records: records, count: count}
		f.makeAll(all.place(), all)
	}
}
