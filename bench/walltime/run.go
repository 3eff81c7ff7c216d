package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"fairway/internal/pilot"
	"fairway/lib/sched"
	"fairway/test/program"
)

// bench is where everything is.
type bench struct {
	folder  string
	fairway string // the program
	self    string // this program, which is that of the job too
	steps   int64
	work    time.Duration
	life    time.Duration
}

// newBench builds fairway, and finds out how many steps the work has.
func newBench(work, life time.Duration) (b *bench, err error) {
	b = &bench{work: work, life: life}
	if b.self, err = os.Executable(); err != nil {
		return nil, err
	}
	if b.folder, err = os.MkdirTemp("", "walltime"); err != nil {
		return nil, err
	}
	if b.fairway, err = program.Build(b.folder); err != nil {
		b.close()
		return nil, err
	}
	b.steps = max(scale, int64(work/timeOfAStep()))
	return b, nil
}

func (b *bench) close() { _ = os.RemoveAll(b.folder) }

// timeOfAStep is the least of those of a second: other programs may take the processor in between.
func timeOfAStep() time.Duration {
	buffer, began := make([]byte, stepBytes), time.Now()
	least := time.Duration(math.MaxInt64)
	for last := began; last.Sub(began) < time.Second; {
		work(buffer)
		now := time.Now()
		least, last = min(least, now.Sub(last)), now
	}
	return least
}

// submit is how the batch system takes a job: it runs it, kills it when its time is over, and
// writes down how long it was there.
const submit = `#!/bin/sh
setsid sh -c '
	began=$(date +%s.%N)
	timeout -s KILL "$2" sh "$1" >/dev/null 2>&1
	echo "$began $(date +%s.%N)" >>"$3/lives"
' sh "$1" "$3" "$4" >/dev/null 2>&1 &
echo "$2 $!" >>"$4/submitted"
`

const sites = `sites:
  nodes:
    system: command
    poll: 200ms
    max_pilots: 1
    time: %[3]s
    command:
      submit: [%[1]s, "{script}", "{name}", "{seconds}", %[2]s]
      status: [sh, -c, 'while read name id; do kill -0 $id 2>/dev/null && echo "$name $id runs"; done <"%[2]s/submitted"; true']
      job: '(?m)^(?P<name>\S+) (?P<id>\d+) (?P<state>\S+)$'
      states: {running: [runs]}
      cancel: [sh, -c, 'kill "$1"', sh, "{id}"]
`

const workflow = `workflow: long
steps:
  compute:
    writes: result.txt
    checkpoint: state/
    needs: {cpus: 1}
    command: %s -compute %d -save %s -log %s "$out"
`

// measure runs the job once.
func (b *bench) measure(ctx context.Context, name string, every time.Duration) (r row, err error) {
	folder := filepath.Join(b.folder, name)
	log, lives := filepath.Join(folder, "log"), filepath.Join(folder, "lives")
	submitter := filepath.Join(folder, "submit")
	err = errors.Join(os.MkdirAll(log, 0o700), os.WriteFile(submitter, []byte(submit), 0o700),
		os.WriteFile(filepath.Join(folder, "sites.yaml"),
			fmt.Appendf(nil, sites, submitter, folder, b.life), 0o600),
		os.WriteFile(filepath.Join(folder, "workflow.yaml"), fmt.Appendf(nil, workflow, b.self, b.steps, every, log), 0o600),
	)
	if err != nil {
		return r, err
	}
	began := time.Now()
	if err := b.fairwayRun(ctx, folder); err != nil {
		return r, err
	}
	r = row{
		Name: name, Elapsed: time.Since(began).Seconds(), Goal: goal, Life: b.life.Seconds(), Every: every.Seconds(),
		SameBits: true,
	}
	got, err := os.ReadFile(filepath.Join(folder, "results", "result.txt"))
	if err != nil {
		return r, err
	}
	want := state{}
	for range b.steps {
		want = want.next()
	}
	if string(got) != want.result() {
		return r, fmt.Errorf("the result is %q, and should be %q", got, want.result())
	}
	computed, err := stretches(log)
	if err != nil {
		return r, err
	}
	if r.Count, r.Pilots, err = allLives(ctx, lives, filepath.Join(folder, "submitted")); err != nil {
		return r, err
	}
	r.add(computed, b.steps)
	return r, nil
}

// add says what was lost.
func (r *row) add(computed stretch, needed int64) {
	took := computed.took.Seconds()
	r.Work = took * float64(needed) / float64(computed.steps)
	r.TwicePer = float64(computed.steps-needed) / float64(needed)
	r.Twice = r.Work * r.TwicePer
	r.Lost = 1 - r.Work/r.Pilots
	r.Beside = (r.Pilots - took) / float64(r.Count)
	kept := min(long/pilot.SavingShare, pilot.MaxSavingTime)
	r.AtLong = r.TwicePer + (r.Beside+kept.Seconds())/long.Seconds()
}

// endTime is how long the last pilot may take to end after its run.
const endTime = time.Minute

// allLives are how many pilots there were, and how long together, when all that were submitted have
// ended.
func allLives(ctx context.Context, file, submitted string) (n int, sum float64, err error) {
	jobs, err := os.ReadFile(submitted)
	if err != nil {
		return 0, 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, endTime)
	defer cancel()
	var text []byte
	for bytes.Count(text, []byte("\n")) < bytes.Count(jobs, []byte("\n")) {
		if text, err = os.ReadFile(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return 0, 0, err
		}
		if err := sched.Default().Sleep(ctx, 100*time.Millisecond); err != nil {
			return 0, 0, fmt.Errorf("waiting for the end of the pilots: %w", err)
		}
	}
	for line := range strings.Lines(string(text)) {
		var from, to float64
		if _, err := fmt.Sscan(line, &from, &to); err != nil {
			return 0, 0, fmt.Errorf("%s: %q: %w", file, line, err)
		}
		n, sum = n+1, sum+to-from
	}
	return n, sum, nil
}

// patience is how many times as long as its work a run may take, on a busy machine.
const patience = 10

// fairwayRun runs the workflow; pilots end with it.
func (b *bench) fairwayRun(ctx context.Context, folder string) error {
	ctx, cancel := context.WithTimeout(ctx, patience*b.work+time.Minute)
	defer cancel()
	run := exec.CommandContext(ctx, b.fairway, "run", "--site", "nodes")
	run.Dir = folder
	run.Cancel = func() error { return run.Process.Signal(syscall.SIGINT) }
	run.WaitDelay = 20 * time.Second
	var said bytes.Buffer
	run.Stdout, run.Stderr = &said, &said
	if err := run.Run(); err != nil {
		text := said.String()
		return fmt.Errorf("fairway run: %w: %s", err, text[max(0, len(text)-1000):])
	}
	return nil
}
