package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"fairway/bench/measure"
	"fairway/lib/sched"
)

// series are the runs of one kind, in seconds.
type series struct {
	kind
	program        string
	one, few, long []float64
	// Looks while the long ones ran, and when they had ended.
	during, after looks
}

// looks are the milliseconds that commands took which look at a run.
type looks struct {
	jobs, explain, files, file []float64
}

// compare runs one job, few and many in turns.
func (s *series) compare(ctx context.Context, rounds, many int) (few, long row, err error) {
	for range rounds {
		err := errors.Join(
			s.run(ctx, 1, &s.one, false),
			s.run(ctx, s.kind.few, &s.few, false),
			s.run(ctx, many, &s.long, true),
		)
		if err != nil {
			return few, long, err
		}
	}
	base := measure.Median(s.one)
	perJob := func(seconds []float64, jobs int) float64 {
		return (measure.Median(seconds) - base) / float64(jobs-1) * 1e6
	}
	few = row{Name: s.name, Jobs: s.kind.few, USPerJob: perJob(s.few, s.kind.few), Ratio: 1}
	long = row{
		Name: s.name, Jobs: many, USPerJob: perJob(s.long, many), Afterwards: measure.Median(s.after.jobs),
		ExplainedAfter: measure.Median(s.after.explain), FilesAfter: measure.Median(s.after.files),
		FileAfter: measure.Median(s.after.file),
	}
	long.Ratio = long.USPerJob / few.USPerJob
	if asked := s.during.jobs; len(asked) > 0 {
		long.Asked = measure.Median(asked)
		long.AskedMost = asked[len(asked)-1]
		long.Explained = measure.Median(s.during.explain)
		long.Files = measure.Median(s.during.files)
		long.File = measure.Median(s.during.file)
	}
	return few, long, nil
}

// run runs a workflow of so many jobs in a new folder, and notes the time.
func (s *series) run(ctx context.Context, jobs int, times *[]float64, asking bool) error {
	folder, err := os.MkdirTemp("", "long")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	if err := s.make(folder, jobs); err != nil {
		return err
	}
	stop := func() {}
	if asking {
		stop = s.ask(ctx, folder)
	}
	took, err := s.fairway(ctx, folder, "run", filepath.Join(folder, "workflow.yaml"), "--pilots", "2")
	stop()
	if err != nil {
		return err
	}
	*times = append(*times, took.Seconds())
	for range afterLooks {
		if asking && err == nil {
			err = s.look(ctx, folder, &s.after)
		}
	}
	return err
}

// afterLooks is how often each command is called when a run has ended.
const afterLooks = 5

// look calls each of the commands once, and notes how long they took if all succeed.
func (s *series) look(ctx context.Context, folder string, to *looks) error {
	jobs, err := s.fairway(ctx, folder, "jobs")
	if err != nil {
		return err
	}
	explain, err := s.fairway(ctx, folder, "explain", s.job)
	if err != nil {
		return err
	}
	files, err := s.fairway(ctx, folder, "files")
	if err != nil {
		return err
	}
	file, err := s.fairway(ctx, folder, "files", s.file)
	if err == nil {
		to.jobs = append(to.jobs, milliseconds(jobs))
		to.explain = append(to.explain, milliseconds(explain))
		to.files = append(to.files, milliseconds(files))
		to.file = append(to.file, milliseconds(file))
	}
	return err
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// fairway runs a command to its end and returns how long it took.
func (s *series) fairway(ctx context.Context, folder string, arguments ...string) (time.Duration, error) {
	began := time.Now()
	out, err := exec.CommandContext(ctx, s.program, append(arguments, "-C", folder)...).CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("fairway %s: %w\n%s", arguments[0], err, out)
	}
	return time.Since(began), nil
}

// askPause is how long it is between two such looks: few enough
// to cost the run nothing.
const askPause = time.Second

// ask looks now and then until the returned function is called. A look that fails,
// since the run has not begun, does not count.
func (s *series) ask(ctx context.Context, folder string) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for sched.Default().Sleep(ctx, askPause) == nil {
			_ = s.look(ctx, folder, &s.during)
		}
	}()
	return func() {
		cancel()
		<-done
	}
}
