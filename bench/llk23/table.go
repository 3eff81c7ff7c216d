package main

import (
	"fmt"
	"os/exec"

	"fairway/bench/measure"
)

// row is a line of the table. Ratios are medians over the rounds of what ran
// in the same round.
type row struct {
	N            int      `json:"n"`
	Cores        int      `json:"cores"`
	TasksPerCore int      `json:"tasks_per_core"`
	Processes    int      `json:"processes"`
	Transport    string   `json:"transport"`
	NSPerElement float64  `json:"ns_per_element"`
	WaitingShare *float64 `json:"waiting_share"` // null for programs that don't tell
	SameBits     bool     `json:"same_bits"`
	CRatio       float64  `json:"c_ratio"`
	// KernelRatio is against the same kernel without locks, on one core.
	KernelRatio *float64 `json:"kernel_ratio,omitempty"`
	// TaskRatio is against one task per core.
	TaskRatio *float64 `json:"task_ratio,omitempty"`
	// Speedup is against the same on one core.
	Speedup *float64 `json:"speedup,omitempty"`
	// Rounds is how many the medians are of.
	Rounds int `json:"rounds"`
	// OthersShare is the share of the cores that other programs took.
	OthersShare float64 `json:"others_share"`
}

func command(folder string, c config) (*exec.Cmd, error) {
	if c.ordered() || c.Transport == withoutLocks {
		return childCommand(c)
	}
	return peer(folder, c)
}

func (t *table) rows() []row {
	var rows []row
	for _, c := range t.configs {
		rows = append(rows, t.row(c))
	}
	return rows
}

func (t *table) row(c config) row {
	r := row{
		N: c.N, Cores: c.Cores, TasksPerCore: c.TasksPerCore, Processes: c.Processes, Transport: c.Transport,
		SameBits: true, CRatio: t.ratio(c, sequential(c.N, listing8)),
	}
	var ns, waiting, others []float64
	for _, a := range t.runs[c] {
		ns, waiting, others = append(ns, a.ns), append(waiting, a.waitingShare), append(others, a.others)
		r.SameBits = r.SameBits && a.hash == t.runs[sequential(c.N, listing8)][a.round].hash
	}
	r.NSPerElement, r.OthersShare, r.Rounds = measure.Median(ns), measure.Median(others), len(ns)
	if share := measure.Median(waiting); share >= 0 {
		r.WaitingShare = &share
	}
	switch {
	case c.ordered():
		t.compare(&r, c)
	case c.Transport == withoutLocks && c.Cores > 1:
		speedup := t.ratio(sequential(c.N, withoutLocks), c)
		r.Speedup = &speedup
	}
	return r
}

func (t *table) compare(r *row, c config) {
	if c.Cores == 1 {
		kernel := t.ratio(c, sequential(c.N, withoutLocks))
		r.KernelRatio = &kernel
	} else {
		speedup := t.ratio(c.onOneCore(), c)
		r.Speedup = &speedup
	}
	if c.TasksPerCore > 1 {
		tasks := t.ratio(c, c.withOneTask())
		r.TaskRatio = &tasks
	}
}

// ratio returns the median of a's times over b's in the same rounds. b runs in every
// round.
func (t *table) ratio(a, b config) float64 {
	var ratios []float64
	for _, run := range t.runs[a] {
		ratios = append(ratios, run.ns/t.runs[b][run.round].ns)
	}
	return measure.Median(ratios)
}

func (r row) String() string {
	s := fmt.Sprintf("%5d² %d cores %2d tasks/core %d processes %-13s %6.2f ns/element  c_ratio %.2f  same bits %-5v",
		r.N, r.Cores, r.TasksPerCore, r.Processes, r.Transport, r.NSPerElement, r.CRatio, r.SameBits)
	for _, f := range []struct {
		name  string
		value *float64
	}{
		{"waiting", r.WaitingShare}, {"over kernel", r.KernelRatio}, {"over one task", r.TaskRatio}, {"speedup", r.Speedup},
	} {
		if f.value != nil {
			s += fmt.Sprintf("  %s %.2f", f.name, *f.value)
		}
	}
	return s
}
