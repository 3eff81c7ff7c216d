package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"fairway/bench/measure"
)

// mergeText is a workflow of one job that reads all files. Their names are too many for the arguments
// of a program.
const mergeText = `workflow: merge
inputs:
  files: {files: "in/{n}", as: "in/{n}"}
steps:
  merge:
    merge: in/{n}
    writes: all
    command: xargs cat < "$FAIRWAY_INPUTS_FILE" > "$out"
`

// merging is fairway with a cache, or without one, which is the yardstick.
type merging struct{ cache string }

func (m merging) command() ([]string, error) {
	command, err := fairway{}.command()
	return append(command, "--cache", m.cache), err
}

// mergeRows measures one job that merges many files: the first run, one after a single file has
// changed, each over the same without a cache, and how long a run goes on that is interrupted
// while its files are staged in.
func mergeRows(ctx context.Context, base string, w workflow, rounds int) ([]row, error) {
	inputs, err := os.MkdirTemp(base, "fairway-merge")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(inputs) }()
	if err := makeInputs(filepath.Join(inputs, "in"), w); err != nil {
		return nil, err
	}
	with, without := merging{"auto"}, merging{"none"}
	all := map[string][]used{}
	for n := range rounds {
		order := []merging{with, without}
		if n%2 == 1 { // what comes first may find another machine
			order = []merging{without, with}
		}
		round := map[merging][2]used{}
		for _, m := range order {
			if round[m], err = mergeTwice(ctx, inputs, w, m); err != nil {
				return nil, err
			}
		}
		for i, name := range []string{"merge", "changed"} {
			for m, u := range round {
				u[i].ratio = u[i].seconds / round[without][i].seconds
				all[name+"\x00"+m.cache] = append(all[name+"\x00"+m.cache], u[i])
			}
		}
		u, err := interrupted(ctx, inputs, w, with)
		if err != nil {
			return nil, err
		}
		all["interrupted"] = append(all["interrupted"], u)
	}
	var rows []row
	for _, name := range []string{"merge", "changed"} {
		for _, m := range []merging{with, without} {
			r := rowOf(name, "fairway", w, all[name+"\x00"+m.cache])
			if m == without {
				r.Program = "no cache"
			}
			rows = append(rows, r)
		}
	}
	return append(rows, rowOf("interrupted", "fairway", w, all["interrupted"])), nil
}

// mergeFolder makes a folder with the workflow and its inputs.
func mergeFolder(inputs string, w workflow) (string, error) {
	folder, err := os.MkdirTemp(inputs, "fairway")
	if err == nil {
		err = linkInputs(inputs, folder, w)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(folder, "workflow.yaml"), []byte(mergeText), 0o600)
	}
	return folder, err
}

// mergeTwice runs the workflow, and once more when one file has changed.
func mergeTwice(ctx context.Context, inputs string, w workflow, m merging) (u [2]used, err error) {
	folder, err := mergeFolder(inputs, w)
	defer func() { _ = os.RemoveAll(folder) }()
	if err != nil {
		return u, err
	}
	command, err := m.command()
	if err != nil {
		return u, err
	}
	for i := range u {
		if u[i], err = run(ctx, folder, command, false); err != nil {
			return u, err
		}
		info, err := os.Stat(filepath.Join(folder, "results", "all"))
		if err != nil {
			return u, err
		}
		if want := int64(w.files)*w.size + int64(i); info.Size() != want {
			return u, fmt.Errorf("the merge of %d files has %d bytes, not %d", w.files, info.Size(), want)
		}
		changed := filepath.Join(folder, "in", "0") // a link to what all rounds have
		if err := errors.Join(os.Remove(changed), os.WriteFile(changed, make([]byte, w.size+1), 0o600)); err != nil {
			return u, err
		}
	}
	return u, nil
}

// interrupted is what a run takes from SIGINT on that comes while the inputs of its job are staged in.
func interrupted(ctx context.Context, inputs string, w workflow, m merging) (u used, err error) {
	folder, err := mergeFolder(inputs, w)
	defer func() { _ = os.RemoveAll(folder) }()
	if err != nil {
		return u, err
	}
	command, err := m.command()
	if err != nil {
		return u, err
	}
	c := exec.CommandContext(ctx, command[0], command[1:]...)
	c.Dir = folder
	if err := c.Start(); err != nil {
		return u, err
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	for !staging(folder) {
		select {
		case err := <-ended:
			return u, fmt.Errorf("the run ended before its job was staged in: %w", err)
		case <-time.After(time.Millisecond):
		}
	}
	began := time.Now()
	if err := c.Process.Signal(unix.SIGINT); err != nil {
		return u, err
	}
	<-ended // with a failure, as it was interrupted
	u.seconds = time.Since(began).Seconds()
	return u, nil
}

// staging reports whether the sandbox of a job has the folder of its inputs.
func staging(folder string) bool {
	found, err := filepath.Glob(filepath.Join(folder, ".fairway", "sandbox", "*", "*", "*", "in"))
	return err == nil && len(found) > 0
}

// rowOf is the row of the medians of all rounds.
func rowOf(name, program string, w workflow, rounds []used) row {
	median := func(of func(used) float64) float64 {
		var values []float64
		for _, u := range rounds {
			values = append(values, of(u))
		}
		return measure.Median(values)
	}
	return row{
		Workflow: name, Program: program, Files: w.files, Size: w.size,
		Seconds:  median(func(u used) float64 { return u.seconds }),
		Ratio:    median(func(u used) float64 { return u.ratio }),
		CPU:      median(func(u used) float64 { return u.cpu }),
		Read:     int64(median(func(u used) float64 { return u.read })),
		Written:  int64(median(func(u used) float64 { return u.written })),
		ToDisk:   int64(median(func(u used) float64 { return u.toDisk })),
		DiskMost: int64(median(func(u used) float64 { return u.diskMost })),
	}
}
