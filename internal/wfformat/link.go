package wfformat

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"fairway/internal/dispatch/rows"
	"fairway/internal/flow/workflow"
	"fairway/internal/logical"
)

// link finds the tasks' order and the files between them.
func (t *trace) link() error {
	tasks, err := t.collect()
	if err != nil {
		return err
	}
	t.tasks, err = t.sorted(tasks)
	if err != nil {
		return err
	}
	t.linkFiles()
	t.linkControl()
	return nil
}

// collect joins the two descriptions of each task, and links parents, which
// the trace may give in either of two ways.
func (t *trace) collect() ([]*traceTask, error) {
	byID := map[string]*traceTask{}
	var tasks []*traceTask
	for i, s := range t.record.Workflow.Specification.Tasks {
		if s == nil || s.ID == "" {
			return nil, fmt.Errorf("task %d has no id", i+1)
		}
		if byID[s.ID] != nil {
			return nil, fmt.Errorf("two tasks have the id %q", s.ID)
		}
		byID[s.ID] = &traceTask{specification: s, execution: &executionRecord{}, rank: i}
		tasks = append(tasks, byID[s.ID])
	}
	if err := t.executions(byID); err != nil {
		return nil, err
	}
	for _, task := range tasks {
		for _, id := range task.specification.Parents {
			if byID[id] == nil {
				return nil, fmt.Errorf("task %q has the parent %q, which does not exist", task.specification.ID, id)
			}
			task.parents = append(task.parents, byID[id])
		}
		for _, id := range task.specification.Children {
			if byID[id] == nil {
				return nil, fmt.Errorf("task %q has the child %q, which does not exist", task.specification.ID, id)
			}
			byID[id].parents = append(byID[id].parents, task)
		}
	}
	return tasks, nil
}

func (t *trace) executions(byID map[string]*traceTask) error {
	if t.record.Workflow.Execution == nil {
		return nil
	}
	for _, e := range t.record.Workflow.Execution.Tasks {
		if e == nil || byID[e.ID] == nil {
			continue
		}
		if !(e.Runtime >= 0) {
			return fmt.Errorf("task %q took %g seconds", e.ID, e.Runtime)
		}
		byID[e.ID].execution = e
	}
	return nil
}

// sorted puts tasks after their parents, and otherwise in the order of the
// file; if possible also after whoever makes a file that they read.
func (t *trace) sorted(tasks []*traceTask) ([]*traceTask, error) {
	makers := map[string][]*traceTask{}
	for _, task := range tasks {
		for _, id := range task.specification.Outputs {
			makers[id] = append(makers[id], task)
		}
	}
	parents, all := make([][]int, len(tasks)), make([][]int, len(tasks))
	for i, task := range tasks {
		for _, parent := range task.parents {
			parents[i] = append(parents[i], parent.rank)
		}
		all[i] = slices.Clone(parents[i])
		for _, id := range task.specification.Inputs {
			if len(makers[id]) == 1 && makers[id][0] != task {
				all[i] = append(all[i], makers[id][0].rank)
			}
		}
	}
	order := rows.Topological(all)
	if len(order) < len(tasks) {
		order = rows.Topological(parents)
	}
	for i, task := range tasks {
		if len(order) < len(tasks) && !slices.Contains(order, i) {
			return nil, fmt.Errorf("task %q is among its own ancestors, or descends from tasks that are", task.specification.ID)
		}
	}
	sorted := make([]*traceTask, len(order))
	for i, at := range order {
		sorted[i] = tasks[at]
	}
	return sorted, nil
}

// linkFiles gives each version of a file a logical name: what existed before,
// and what each task wrote. A task reads what was written last before it.
func (t *trace) linkFiles() {
	t.sizes = map[string]int64{}
	t.names = &lfns{taken: map[string]bool{}, folders: map[string]bool{}}
	for _, f := range t.record.Workflow.Specification.Files {
		if f.Size >= 0 {
			t.sizes[f.ID] = int64(math.Round(min(f.Size*t.scales.SizeScale, 1<<60)))
		}
	}
	current := map[string]string{}
	for _, task := range t.tasks {
		for _, id := range task.specification.Inputs {
			lfn, ok := current[id]
			if !ok {
				lfn = t.names.of(id)
				current[id] = lfn
				t.outside = append(t.outside, workflow.SizedFile{LFN: lfn, Size: t.sizes[id]})
			}
			task.reads = append(task.reads, lfn)
		}
		for _, id := range logical.Unique(slices.Clone(task.specification.Outputs)) {
			current[id] = t.names.of(id)
			task.writes = append(task.writes, workflow.SizedFile{LFN: current[id], Size: t.sizes[id]})
		}
		task.reads = logical.Unique(task.reads)
	}
}

func (t *trace) linkControl() {
	for _, task := range t.tasks {
		reads := map[string]bool{}
		for _, lfn := range task.reads {
			reads[lfn] = true
		}
		for _, parent := range task.parents {
			if slices.ContainsFunc(parent.writes, func(w workflow.SizedFile) bool { return reads[w.LFN] }) {
				continue
			}
			if parent.control == "" {
				parent.control = t.names.of(controlFolder + strings.ReplaceAll(parent.specification.ID, "/", "_"))
				parent.writes = append(parent.writes, workflow.SizedFile{LFN: parent.control})
			}
			reads[parent.control] = true
			task.reads = append(task.reads, parent.control)
		}
	}
}
