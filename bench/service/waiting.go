package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"connectrpc.com/connect"
	"golang.org/x/sync/errgroup"

	"fairway/bench/measure"
	"fairway/internal/server/listen"
	"fairway/internal/wire"
)

const (
	waitingRuns    = 200
	waitingClasses = 200 // of requirements
	// waitingCall is how many jobs a call submits.
	waitingCall = 5000
	// matched is how many of those that wait are done in the end.
	matched = 20_000
	// startPatience bounds the start of a server over all of them.
	startPatience = 10 * time.Minute
	// asked is how often each page and command is asked for.
	asked = 5
)

// waitingJob is the job of a number: it executes a command and writes a file, and needs what the
// 200th one after it needs too.
func waitingJob(n int) *wire.SubmittedJob {
	return &wire.SubmittedJob{
		Name: fmt.Sprintf("simulate/%08d", n), Step: "simulate",
		Payload: &wire.Payload{Shell: fmt.Sprintf(`simulate --events 1000 --seed %d >"$out"`, n)},
		Writes:  []*wire.SubmittedOutput{{Lfn: fmt.Sprintf("events/%08d.root", n), Unpublished: true}},
		Needs:   &wire.Resources{MilliCpus: 1000, MemoryBytes: int64(1+n%waitingClasses) << 20},
	}
}

// waitingRow has so many jobs wait, and another server start over them.
func waitingRow(ctx context.Context, host *measure.Host, p plan, jobs int) (row, error) {
	r := row{Name: "waiting", Store: sqlite, Runs: waitingRuns, Jobs: jobs}
	c := (&places{host: host}).config(sqlite, 0)
	l, err := startLoad(ctx, c)
	if err != nil {
		return r, err
	}
	defer func() { l.end() }()
	if err := l.openRuns(ctx, waitingRuns); err != nil {
		return r, err
	}
	before, err := l.heap()
	if err != nil {
		return r, err
	}
	began := time.Now()
	submit := func() error { return l.submitWaiting(ctx, jobs) }
	if r.Meanwhile, r.MeanwhileName, err = l.whileAsked(ctx, submit); err != nil {
		return r, err
	}
	r.Submitted = float64(jobs) / time.Since(began).Seconds()
	after, err := l.heap()
	if err != nil {
		return r, err
	}
	r.Heap = (after - before) / float64(jobs)
	if r.Resident, err = l.resident(); err != nil {
		return r, err
	}
	if p.memory != "" {
		if _, err := l.server.Ask("memory " + p.memory); err != nil {
			return r, err
		}
	}
	if r.Slowest, r.SlowestName, err = l.slowest(ctx, asked); err != nil {
		return r, err
	}
	runs := l.runs
	l.end()
	c.pilots = p.pilots
	if l, err = l.again(ctx, c, runs, p, &r); err != nil {
		return r, err
	}
	return r, l.match(p, jobs, &r)
}

// submitWaiting submits the jobs, to all runs in turns.
func (l *load) submitWaiting(ctx context.Context, jobs int) error {
	var calls errgroup.Group
	calls.SetLimit(submitters)
	for call := range (jobs + waitingCall - 1) / waitingCall {
		calls.Go(func() error {
			first := call * waitingCall
			list := make([]*wire.SubmittedJob, min(waitingCall, jobs-first))
			for i := range list {
				list[i] = waitingJob(first + i)
			}
			_, err := l.lines[call%submitters].Submit(ctx, &wire.SubmitRequest{Run: l.runs[call%len(l.runs)], Jobs: list})
			return err
		})
	}
	return calls.Wait()
}

// heap is the memory of the server that is in use, in bytes.
func (l *load) heap() (float64, error) {
	answer, err := l.server.Ask("heap")
	if err != nil {
		return 0, err
	}
	return strconv.ParseFloat(answer, 64)
}

// resident is the memory of the server's process, in MiB.
func (l *load) resident() (float64, error) {
	bytes, err := measure.ResidentMemory(l.server.Process().Pid)
	return bytes / (1 << 20), err
}

// again starts another server over the state. It has started when it has told how the runs stand.
func (l *load) again(ctx context.Context, c serverConfig, runs []uint32, p plan, r *row) (*load, error) {
	next := &load{config: c, dialling: l.dialling, store: l.store, began: l.began, runs: runs, progress: l.progress}
	began := time.Now()
	if err := next.serve(); err != nil {
		return next, err
	}
	if p.profile != "" {
		if _, err := next.server.Ask("cpu " + p.profile); err != nil {
			return next, err
		}
	}
	if err := next.connect(ctx); err != nil {
		return next, err
	}
	for answered := false; !answered; time.Sleep(look) {
		listed, err := next.lines[0].ListRuns(ctx, &wire.ListRunsRequest{Limit: waitingRuns})
		sum := 0
		for _, run := range listed.GetRuns() {
			sum += int(run.GetJobs())
		}
		answered = err == nil && sum == r.Jobs
		switch {
		case err == nil && !answered:
			return next, fmt.Errorf("%d jobs are there after a restart, and not %d", sum, r.Jobs)
		case time.Since(began) > startPatience:
			return next, err
		}
	}
	r.Start = time.Since(began).Seconds()
	if p.profile != "" {
		if _, err := next.server.Ask("cpu"); err != nil {
			return next, err
		}
	}
	var err error
	r.Peak, err = next.resident()
	return next, err
}

// match has pilots do some of the jobs.
func (l *load) match(p plan, jobs int, r *row) error {
	if err := l.startPilots(); err != nil {
		return err
	}
	enough := int64(min(jobs/2, matched))
	if err := l.await(func() bool { return l.ended.Load() > 0 }); err != nil {
		return err
	}
	began, before := time.Now(), l.ended.Load()
	if err := l.await(func() bool { return l.ended.Load()-before >= enough }); err != nil {
		return err
	}
	r.Rate = float64(l.ended.Load()-before) / time.Since(began).Seconds()
	return nil
}

// whileAsked does something, and asks meanwhile for pages and commands in turns.
func (l *load) whileAsked(ctx context.Context, do func() error) (slowest float64, name string, err error) {
	done := make(chan error, 1)
	go func() { done <- do() }()
	for {
		ms, what, err := l.slowest(ctx, 1)
		if ms > slowest {
			slowest, name = ms, what
		}
		select {
		case failed := <-done:
			return slowest, name, errors.Join(err, failed)
		default:
		}
		if err != nil {
			return slowest, name, errors.Join(err, <-done)
		}
	}
}

// slowest asks for each page and command so many times, and tells which took longest.
func (l *load) slowest(ctx context.Context, times int) (slowest float64, name string, err error) {
	line, err := listen.DialService(ctx, l.serviceFile())
	if err != nil {
		return 0, "", err
	}
	defer line.Close()
	browser, err := enter(l.page)
	if err != nil {
		return 0, "", err
	}
	questions := l.commands(ctx, line)
	for _, path := range []string{"/", "/pilots", "/metrics"} {
		questions = append(questions, browser.asks(ctx, path))
	}
	for _, path := range []string{"", "/jobs", "/jobs/1", "/failures", "/slots", "/data", "/why"} {
		questions = append(questions, browser.asks(ctx, fmt.Sprintf("/runs/%d%s", l.runs[0], path)))
	}
	for range times {
		for _, q := range questions {
			began := time.Now()
			if err := q.ask(); err != nil {
				return 0, "", fmt.Errorf("%s: %w", q.name, err)
			}
			if ms := float64(time.Since(began).Microseconds()) / 1000; ms > slowest {
				slowest, name = ms, q.name
			}
		}
	}
	return slowest, name, nil
}

// question is one that a person asks.
type question struct {
	name string
	ask  func() error
}

// commands are what commands of fairway ask, over TLS.
func (l *load) commands(ctx context.Context, line *listen.Connection) []question {
	run := l.runs[len(l.runs)/2]
	return []question{
		{"fairway runs", func() error {
			_, err := line.ListRuns(ctx, &wire.ListRunsRequest{})
			return err
		}},
		{"fairway watch", func() error {
			reports, err := line.Progress(ctx, &wire.ProgressRequest{Run: run})
			if err != nil {
				return err
			}
			defer func() { _ = reports.Close() }()
			for reports.Receive() {
				return nil
			}
			return errors.Join(errors.New("it says nothing"), reports.Err())
		}},
		{"fairway jobs", func() error {
			_, err := line.ListJobs(ctx, &wire.ListJobsRequest{Run: run})
			return err
		}},
		{"fairway jobs --state failed", func() error {
			_, err := line.ListJobs(ctx, &wire.ListJobsRequest{Run: run, States: []string{"failed"}})
			return err
		}},
		{"fairway explain", func() error {
			_, err := line.Explain(ctx, &wire.ExplainRequest{Run: l.runs[0], Job: "1"})
			return absentIsFine(err)
		}},
		{"fairway show", func() error {
			_, err := line.ShowJob(ctx, &wire.ShowJobRequest{Run: l.runs[0], Job: "1"})
			return absentIsFine(err)
		}},
		{"fairway files", func() error {
			_, err := line.ListFiles(ctx, &wire.ListFilesRequest{Run: run})
			return err
		}},
		{"fairway pilots", func() error {
			_, err := line.ListPilots(ctx, &wire.ListPilotsRequest{})
			return err
		}},
		{"fairway shares", func() error {
			_, err := line.ListShares(ctx, &wire.ListSharesRequest{})
			return err
		}},
	}
}

// absentIsFine passes over that a job is not there yet.
func absentIsFine(err error) error {
	if connect.CodeOf(err) == connect.CodeNotFound {
		return nil
	}
	return err
}

// asks is a question for a page.
func (b *browser) asks(ctx context.Context, path string) question {
	return question{"page " + path, func() error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, b.base+path, nil)
		if err != nil {
			return err
		}
		answer, err := b.client.Do(request)
		if err != nil {
			return err
		}
		defer func() { _ = answer.Body.Close() }()
		if answer.StatusCode != http.StatusOK && answer.StatusCode != http.StatusNotFound {
			return errors.New(answer.Status)
		}
		_, err = io.Copy(io.Discard, answer.Body)
		return err
	}}
}
