// Idle measures what Fairway costs where there is next to nothing to do: a run of one job that
// writes one file, in a new folder, and a run whose one job sleeps.
//
//	go run ./bench/idle -json
//
// Beside the run stands the start of the program alone, as `fairway version`. The processor time is that of
// all processes of a run. Of the idle run, server and pilot are told apart: how often a
// thread of theirs went to sleep, and so was woken, a second, what they wrote by system calls
// and what of it went to disk, a minute.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"fairway/bench/measure"
	"fairway/internal/cli"
)

// result is one JSON object.
type result struct {
	Machine measure.Machine `json:"machine"`
	Runs    []runRow        `json:"runs"`
	Idle    []idleRow       `json:"idle"`
}

// runRow is what a command needed: medians of the rounds, and the least.
type runRow struct {
	Name         string  `json:"name"`
	Seconds      float64 `json:"seconds"`
	LeastSeconds float64 `json:"least_seconds"`
	CPU          float64 `json:"cpu_seconds"`
}

// idleRow is what a process of the idle run did.
type idleRow struct {
	Process string  `json:"process"`
	WakeUps float64 `json:"wake_ups_a_second"`
	Written float64 `json:"bytes_written_a_minute"`
	ToDisk  float64 `json:"bytes_to_disk_a_minute"`
	CPU     float64 `json:"cpu_seconds_a_minute"`
}

func main() {
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-") {
		os.Exit(cli.Main()) // this program is fairway too, and its pilots
	}
	asJSON := flag.Bool("json", false, "print one JSON object")
	rounds := flag.Int("rounds", 15, "rounds of which the median counts")
	watched := flag.Duration("watched", 30*time.Second, "how long the idle run is watched; 0: not at all")
	folder := flag.String("folder", "", "make folders here (default: where the system keeps temporary files)")
	flag.Parse()
	ctx := context.Background()
	r := result{Machine: measure.ThisMachine()}
	var err error
	r.Runs, err = compare(ctx, *folder, *rounds)
	measure.ExitOn(err)
	if *watched > 0 {
		r.Idle, err = idle(ctx, *folder, *watched)
		measure.ExitOn(err)
	}
	if *asJSON {
		measure.ExitOn(measure.PrintJSON(r))
		return
	}
	for _, row := range r.Runs {
		fmt.Printf("%-8s %7.3f s  least %7.3f s  %7.3f s of processors\n", row.Name, row.Seconds, row.LeastSeconds, row.CPU)
	}
	for _, row := range r.Idle {
		fmt.Printf("%-8s %7.1f wake-ups a second  %9.0f B written a minute  %9.0f B to disk a minute  %6.3f s of processors "+
			"a minute\n", row.Process, row.WakeUps, row.Written, row.ToDisk, row.CPU)
	}
}

const oneJob = "workflow: one\nsteps: {one: {writes: one.txt, command: 'echo 1 > \"$out\"'}}\n"

// compare runs one job, and the program alone, in turns.
func compare(ctx context.Context, base string, rounds int) ([]runRow, error) {
	var ofRun, ofStart []used
	for range rounds {
		u, err := inNewFolder(ctx, base, oneJob, "run", "workflow.yaml")
		if err != nil {
			return nil, err
		}
		ofRun = append(ofRun, u)
		if u, err = inNewFolder(ctx, base, oneJob, "version"); err != nil {
			return nil, err
		}
		ofStart = append(ofStart, u)
	}
	return []runRow{rowOf("one job", ofRun), rowOf("start", ofStart)}, nil
}

// used is what a command needed.
type used struct{ seconds, cpu float64 }

func rowOf(name string, of []used) runRow {
	var seconds, cpu []float64
	for _, u := range of {
		seconds, cpu = append(seconds, u.seconds), append(cpu, u.cpu)
	}
	return runRow{name, measure.Median(seconds), slices.Min(seconds), measure.Median(cpu)}
}

// inNewFolder runs a command of fairway in a new folder with a workflow.
func inNewFolder(ctx context.Context, base, workflow string, arguments ...string) (used, error) {
	folder, err := newFolder(base, workflow)
	if err != nil {
		return used{}, err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	c, err := command(ctx, folder, arguments...)
	if err != nil {
		return used{}, err
	}
	before := childrenTime()
	began := time.Now()
	said, err := c.CombinedOutput()
	u := used{time.Since(began).Seconds(), (childrenTime() - before).Seconds()}
	if err != nil {
		return u, fmt.Errorf("fairway %s: %w\n%s", strings.Join(arguments, " "), err, said)
	}
	return u, nil
}

func newFolder(base, workflow string) (string, error) {
	folder, err := os.MkdirTemp(base, "fairway-idle")
	if err != nil {
		return "", err
	}
	return folder, os.WriteFile(filepath.Join(folder, "workflow.yaml"), []byte(workflow), 0o600)
}

func command(ctx context.Context, folder string, arguments ...string) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := exec.CommandContext(ctx, self, arguments...)
	c.Dir = folder
	return c, nil
}

// childrenTime is the processor time of all processes that this one, or one that it has waited for,
// has waited for.
func childrenTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// startTime is how long a run may take until its one job runs and all else is at rest.
const startTime = 5 * time.Second

// idle watches a run whose one job sleeps.
func idle(ctx context.Context, base string, watched time.Duration) ([]idleRow, error) {
	sleeps := int((2*startTime + watched).Seconds())
	folder, err := newFolder(base, fmt.Sprintf("workflow: idle\nsteps: {idle: {writes: one.txt, "+
		"command: 'echo 1 > \"$out\"; exec sleep %d'}}\n", sleeps))
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	c, err := command(ctx, folder, "run", "workflow.yaml", "--pilots", "1")
	if err != nil {
		return nil, err
	}
	if err := c.Start(); err != nil {
		return nil, err
	}
	time.Sleep(startTime)
	pilots := childrenOf(c.Process.Pid)
	if len(pilots) != 1 {
		_ = c.Process.Kill()
		return nil, fmt.Errorf("the run has %d pilots, where one was asked for", len(pilots))
	}
	names, pids := []string{"server", "pilot"}, []int{c.Process.Pid, pilots[0]}
	before := []counts{countsOf(pids[0]), countsOf(pids[1])}
	began := time.Now()
	time.Sleep(watched)
	took := time.Since(began).Seconds()
	var rows []idleRow
	for i, name := range names {
		now := countsOf(pids[i])
		rows = append(rows, idleRow{
			Process: name,
			WakeUps: (now.wakeUps - before[i].wakeUps) / took,
			Written: (now.written - before[i].written) / took * 60,
			ToDisk:  (now.toDisk - before[i].toDisk) / took * 60,
			CPU:     (now.cpu - before[i].cpu) / took * 60,
		})
	}
	return rows, c.Wait()
}

// childrenOf are the processes that a process has started.
func childrenOf(pid int) (children []int) {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid)) // the pattern is right
	for _, list := range lists {
		text, _ := os.ReadFile(list)
		for _, word := range strings.Fields(string(text)) {
			if child, err := strconv.Atoi(word); err == nil {
				children = append(children, child)
			}
		}
	}
	return children
}

// counts are those of the kernel for a process, since it began.
type counts struct{ wakeUps, written, toDisk, cpu float64 }

func countsOf(pid int) (c counts) {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid)) // the pattern is right
	for _, status := range threads {
		c.wakeUps += valueIn(status, "voluntary_ctxt_switches:")
	}
	io := fmt.Sprintf("/proc/%d/io", pid)
	c.written, c.toDisk = valueIn(io, "wchar:"), valueIn(io, "write_bytes:")
	c.cpu = measure.ProcessorTime(pid).Seconds()
	return c
}

// valueIn is the number behind a name in a file of /proc; 0 where there is none.
func valueIn(path, name string) float64 {
	text, _ := os.ReadFile(path)
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) == 2 && fields[0] == name {
			value, _ := strconv.ParseFloat(fields[1], 64)
			return value
		}
	}
	return 0
}
