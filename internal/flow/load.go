package flow

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"fairway/internal/flow/workflow"
	"fairway/internal/taskqueue"
)

// ErrOtherWorkflow says that the records belong to another workflow or to
// other parameters. The caller may start a new Flow: jobs whose command and
// inputs are unchanged are then not run again by dispatch.
var ErrOtherWorkflow = errors.New("the stored run is of another workflow, or of other parameters")

// Load restores a Flow from its records, in any order. Records of other
// tables are passed over; without records of its own Load does what New does.
// The jobs that it created before are not submitted again.
func Load(w *workflow.Workflow, records []taskqueue.Record) (*Flow, error) {
	f, err := New(w)
	if err != nil {
		return nil, err
	}
	run, log, err := decode(records)
	if err != nil || run == nil {
		return f, err
	}
	if run.Format != logFormat || run.Digest != f.w.Digest() {
		return nil, fmt.Errorf("%s: %w", w.File, ErrOtherWorkflow)
	}
	f.replaying = true
	for _, e := range log {
		switch {
		case e.Kind != logLetOut:
		case e.More:
			f.letOutBefore = e.Jobs
		default:
			f.letOutBefore = math.MaxUint64
		}
	}
	f.start()
	f.work(time.Time{}, math.MaxInt)
	for i, e := range log {
		if err := f.replay(e); err != nil {
			return nil, fmt.Errorf("replay the stored run: %w", err)
		}
		f.entries = uint64(i) + 1
		f.work(time.Time{}, math.MaxInt) // of each entry all: a step that was final stays so, whatever is refused later
		f.effects = Effects{}
	}
	f.effects, f.replaying, f.letOutBefore = Effects{}, false, math.MaxUint64
	return f, nil
}

func decode(records []taskqueue.Record) (*runRecord, []logEntry, error) {
	var run *runRecord
	logs := slices.Clone(records)
	slices.SortStableFunc(logs, func(a, b taskqueue.Record) int { return strings.Compare(a.Key, b.Key) })
	var log []logEntry
	for _, r := range logs {
		var err error
		switch r.Table {
		case TableRun:
			run = &runRecord{}
			err = json.Unmarshal(r.Body, run)
		case TableLog:
			var e logEntry
			err = json.Unmarshal(r.Body, &e)
			log = append(log, e)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("record %s %s: %w", r.Table, r.Key, err)
		}
	}
	return run, log, nil
}

func (f *Flow) replay(e logEntry) error {
	var in Input
	switch e.Kind {
	case logArrived:
		in = Arrived{Input: e.Name, Files: e.Files}
	case logClosed:
		in = Closed{Input: e.Name}
	case logCommitted:
		in = Happened{e.event()}
	case logAged:
		return f.replayAged(e)
	case logLetOut:
		f.noted = e.More
		return nil
	default:
		return fmt.Errorf("unknown entry %q", e.Kind)
	}
	take, err := f.accept(e.At, in)
	if err == nil {
		take()
	}
	return err
}

func (f *Flow) replayAged(e logEntry) error {
	for _, st := range f.steps {
		if st.step.Name != e.Name || st.merging == nil || st.merging.groups[e.Group] == nil {
			continue
		}
		g := st.merging.groups[e.Group]
		files := make([]*file, 0, len(e.LFNs))
		for _, lfn := range e.LFNs {
			if n := f.names.Find(lfn); n != nil && n.file != nil {
				files = append(files, n.file)
			}
		}
		f.ended = false
		f.ageMerge(st, g, files)
		return nil
	}
	return fmt.Errorf("step %q has no group %q", e.Name, e.Group)
}
