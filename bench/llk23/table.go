package main

import (
	"errors"
	"fmt"
	"os"
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
}

func run(asJSON, quick bool, sizes ...int) error {
	folder, err := os.MkdirTemp("", "llk23")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	if err := buildPeers(folder); err != nil {
		return err
	}
	var rows []row
	for _, n := range sizes {
		t := table{folder: folder, configs: round(n), runs: make(map[config][]answer)}
		for range rounds(n, quick) {
			if err := t.round(); err != nil {
				return err
			}
		}
		rows = append(rows, t.rows()...)
	}
	return measure.Print(rows, asJSON, row.String)
}

// rounds keeps all of it within a quarter of an hour.
func rounds(n int, quick bool) int {
	switch {
	case n > 1000:
		return 2
	case quick:
		return 3
	case n > 300:
		return 3
	}
	return 7
}

// table is the measurements of one size of matrix.
type table struct {
	folder  string
	configs []config
	runs    map[config][]answer // by rounds
}

// round runs each program once. What cannot run here is left out from then on.
func (t *table) round() error {
	present := t.configs[:0]
	for _, c := range t.configs {
		a, err := t.once(c)
		if errors.Is(err, errAbsent) {
			fmt.Fprintf(os.Stderr, "no row for %v: %v\n", c, err)
			continue
		}
		if err != nil {
			return fmt.Errorf("%v: %w", c, err)
		}
		fmt.Fprintf(os.Stderr, "llk23: round %d, %v: %.2f ns per element\n", len(t.runs[c])+1, c, a.ns)
		t.runs[c] = append(t.runs[c], a)
		present = append(present, c)
	}
	t.configs = present
	return nil
}

// once runs a program on its cores: children inherit those that this thread is
// confined to.
func (t *table) once(c config) (answer, error) {
	cmd, err := command(t.folder, c)
	if err != nil {
		return answer{}, err
	}
	defer confineThread(c.Cores)()
	r, err := measure.Start(cmd)
	if err != nil {
		return answer{}, err
	}
	defer r.Stop()
	return ask(r)
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
	var ns, waiting []float64
	for i, a := range t.runs[c] {
		ns, waiting = append(ns, a.ns), append(waiting, a.waitingShare)
		r.SameBits = r.SameBits && a.hash == t.runs[sequential(c.N, listing8)][i].hash
	}
	r.NSPerElement = measure.Median(ns)
	if share := measure.Median(waiting); share >= 0 {
		r.WaitingShare = &share
	}
	if c.ordered() {
		t.compare(&r, c)
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

// ratio returns the median of a's times over b's in the same rounds.
func (t *table) ratio(a, b config) float64 {
	var ratios []float64
	for i, run := range t.runs[a] {
		ratios = append(ratios, run.ns/t.runs[b][i].ns)
	}
	return measure.Median(ratios)
}

func (r row) String() string {
	s := fmt.Sprintf("%5d² %d cores %2d tasks/core %d processes %-13s %6.2f ns/element  c_ratio %.2f  same bits %-5v",
		r.N, r.Cores, r.TasksPerCore, r.Processes, r.Transport, r.NSPerElement, r.CRatio, r.SameBits)
	for _, f := range []struct {
		name  string
		value *float64
	}{{"waiting", r.WaitingShare}, {"over kernel", r.KernelRatio}, {"over one task", r.TaskRatio}, {"speedup", r.Speedup}} {
		if f.value != nil {
			s += fmt.Sprintf("  %s %.2f", f.name, *f.value)
		}
	}
	return s
}
