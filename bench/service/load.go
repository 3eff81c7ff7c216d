package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"fairway/bench/measure"
	"fairway/bench/measure/lightpilot"
	"fairway/internal/access"
	"fairway/internal/server/folder"
	"fairway/internal/server/listen"
	"fairway/internal/storage"
	"fairway/internal/wire"
	"fairway/lib/subprocess"
)

const (
	// patience bounds the wait for anything but the making of many jobs.
	patience = 3 * time.Minute
	// look is how often is looked how far something is.
	look = time.Millisecond
	// callJobs is how many jobs a call submits.
	callJobs = 100
	// submitters is how many calls are under way at a time.
	submitters = 8
	// pacedCalls is the same of a paced phase: so many that hardly one waits for another, as jobs come at
	// their rate whatever becomes of those before. Each may need a connection, all are of one person, and
	// the server may not have seen yet that others are closed.
	pacedCalls = access.MaxLaunchConnections / 2
	// window is how many jobs wait at the most while as many as possible are done.
	window = 4000
)

// load is a server in a process of its own, with the pilots and programs of this process that use it.
type load struct {
	config serverConfig
	server *subprocess.Child
	page   string               // the link to its page
	store  func() time.Duration // processor time of its database
	roots  storage.Roots
	lines  []*listen.Connection
	runs   []uint32

	dialling chan struct{}
	served   atomic.Int64 // pilots that were answered their whole state
	ended    atomic.Int64 // jobs whose result the server has acknowledged
	failed   atomic.Pointer[error]

	// When jobs of paced phases were submitted and reached a pilot, by their number: nanoseconds
	// since began.
	began     time.Time
	submitted []int64
	assigned  []atomic.Int64

	mu       sync.Mutex // guards next
	next     int        // number of the next job
	progress *sync.Cond // of ended
}

// startLoad starts a server and its pilots. Its state is in the folder of the config.
func startLoad(ctx context.Context, c serverConfig) (l *load, err error) {
	l = &load{
		config: c, dialling: make(chan struct{}, 64), store: func() time.Duration { return 0 }, began: time.Now(),
		progress: sync.NewCond(new(sync.Mutex)),
	}
	defer func() {
		if err != nil {
			l.end()
		}
	}()
	if err = l.serve(); err != nil {
		return nil, err
	}
	if err = l.connect(ctx); err != nil {
		return nil, err
	}
	return l, l.startPilots()
}

// serve starts the server's process. It answers when its page is there.
func (l *load) serve() (err error) {
	l.server, err = subprocess.Start(subprocess.Self("-serve", l.config.folder, "-store", l.config.store,
		"-launches", strconv.Itoa(l.config.pilots)))
	if err != nil {
		return err
	}
	l.page, err = l.server.Hear()
	return err
}

// connect makes a connection for each submitter, over TLS.
func (l *load) connect(ctx context.Context) error {
	l.disconnect()
	for range submitters {
		line, err := listen.DialService(ctx, l.serviceFile())
		if err != nil {
			return err
		}
		l.lines = append(l.lines, line)
	}
	return nil
}

// serviceFile says how programs reach the server.
func (l *load) serviceFile() string {
	return filepath.Join(l.config.folder, folder.StateFolder, folder.ServiceName)
}

func (l *load) disconnect() {
	for _, line := range l.lines {
		line.Close()
	}
	l.lines = nil
}

// startPilots has all pilots served.
func (l *load) startPilots() error {
	if l.config.pilots == 0 {
		return nil
	}
	if _, err := l.server.Hear(); err != nil {
		return err
	}
	places, err := folder.Of(l.config.folder)
	if err != nil {
		return err
	}
	l.roots = places.Roots()
	for _, file := range lightpilot.Connections(places.Pilots) {
		p := &lightpilot.Pilot{
			Has: pilotHas, Dialling: l.dialling, Outputs: l.came,
			Answered: func(full bool) {
				if full {
					l.served.Add(1)
				}
			},
			Ended: l.acknowledged,
		}
		go func() {
			if err := p.Run(file); err != nil {
				l.failed.Store(&err)
			}
		}()
	}
	return l.await(func() bool { return l.served.Load() >= int64(l.config.pilots) })
}

// came notes when a job has come to a pilot, and writes what it makes: empty files.
func (l *load) came(a *wire.Assignment) (outputs []*wire.WrittenFile, err error) {
	if n, err := strconv.Atoi(a.GetName()); err == nil && n < len(l.assigned) {
		l.assigned[n].CompareAndSwap(0, int64(time.Since(l.began)))
	}
	for _, o := range a.GetOutputs() {
		file := &wire.WrittenFile{
			Lfn: o.GetLfn(), Version: o.GetVersion(),
			Pfn: storage.OutputPFN(folder.StoragePrefix, o.GetLfn(), o.GetVersion(), a.GetAttempt()),
		}
		path, err := l.roots.Path(file.GetPfn())
		if err == nil {
			err = os.MkdirAll(filepath.Dir(path), 0o700)
		}
		if err == nil {
			err = os.WriteFile(path, nil, 0o400)
		}
		if err != nil {
			return nil, err
		}
		outputs = append(outputs, file)
	}
	return outputs, nil
}

func (l *load) acknowledged(jobs int) {
	l.ended.Add(int64(jobs))
	l.progress.L.Lock()
	defer l.progress.L.Unlock()
	l.progress.Broadcast()
}

func (l *load) end() {
	l.disconnect()
	if l.server != nil {
		l.server.Kill()
	}
}

// await waits until something is so.
func (l *load) await(so func() bool) error {
	for until := time.Now().Add(patience); !so(); time.Sleep(look) {
		if err := l.failed.Load(); err != nil {
			return *err
		}
		if time.Now().After(until) {
			return fmt.Errorf("after %v %d pilots are served and %d jobs have ended", patience, l.served.Load(), l.ended.Load())
		}
	}
	return nil
}

// openRuns opens runs that take jobs.
func (l *load) openRuns(ctx context.Context, n int) error {
	for i := range n {
		run, err := l.lines[0].SubmitWorkflow(ctx, &wire.SubmitWorkflowRequest{
			Workflow: []byte("workflow: load\nopen: true\n"), File: "load.yaml", User: "bench", KeepGoing: true,
			WaitAnyway: true,
		})
		if err != nil {
			return fmt.Errorf("opening run %d: %w", i+1, err)
		}
		l.runs = append(l.runs, run.GetRun())
	}
	return nil
}

// take reserves the numbers of jobs, from the one returned on.
func (l *load) take(n int) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	first := l.next
	l.next += n
	return first
}

// submit submits jobs that execute a command without files, to a run.
func (l *load) submit(ctx context.Context, line int, run uint32, first, n int) error {
	jobs := make([]*wire.SubmittedJob, n)
	for i := range jobs {
		jobs[i] = &wire.SubmittedJob{
			Name: strconv.Itoa(first + i), Payload: &wire.Payload{Argv: []string{"true"}},
			Needs: &wire.Resources{MilliCpus: 1000},
		}
	}
	_, err := l.lines[line].Submit(ctx, &wire.SubmitRequest{Run: run, Jobs: jobs})
	return err
}

// flood has so many jobs done, as fast as possible.
func (l *load) flood(ctx context.Context, jobs int) error {
	before := l.ended.Load()
	last := l.take(jobs) + jobs
	from := last - jobs
	calls := make(chan int)
	failures := make(chan error, submitters)
	for i := range submitters {
		go func() {
			var err error
			for first := range calls {
				if err == nil {
					err = l.submit(ctx, i, l.runs[first/callJobs%len(l.runs)], first, min(callJobs, last-first))
				}
			}
			failures <- err
		}()
	}
	for first := from; first < last; first += callJobs {
		l.progress.L.Lock()
		for l.failed.Load() == nil && int64(first-from)-(l.ended.Load()-before) > window {
			l.progress.Wait()
		}
		l.progress.L.Unlock()
		calls <- first
	}
	close(calls)
	var err error
	for range submitters {
		err = errors.Join(err, <-failures)
	}
	if err != nil {
		return err
	}
	return l.await(func() bool { return l.ended.Load()-before >= int64(jobs) })
}

// pacing is the time between two calls of a paced phase.
const pacing = 5 * time.Millisecond

// pace submits jobs at a rate for a time, and returns the time from the call that submitted a job
// until a pilot had it, of each, in order.
func (l *load) pace(ctx context.Context, rate float64, lasts time.Duration) ([]time.Duration, error) {
	jobs := int(rate * lasts.Seconds())
	first := l.take(jobs)
	before := l.ended.Load()
	l.submitted, l.assigned = make([]int64, first+jobs), make([]atomic.Int64, first+jobs)
	type call struct{ number, first, jobs int }
	due := make(chan call, jobs)
	var calls errgroup.Group
	for i := range pacedCalls {
		calls.Go(func() error {
			for c := range due {
				if err := l.submit(ctx, i%submitters, l.runs[c.number%len(l.runs)], c.first, c.jobs); err != nil {
					return err
				}
			}
			return nil
		})
	}
	for began, done, number := time.Now(), 0, 0; done < jobs; number++ {
		time.Sleep(time.Until(began.Add(time.Duration(number) * pacing)))
		n := min(max(int(rate*time.Since(began).Seconds())-done, 1), jobs-done)
		for i := range n { // also if all calls are under way
			l.submitted[first+done+i] = int64(time.Since(l.began))
		}
		due <- call{number, first + done, n}
		done += n
	}
	close(due)
	if err := calls.Wait(); err != nil {
		return nil, err
	}
	if err := l.await(func() bool { return l.ended.Load()-before >= int64(jobs) }); err != nil {
		return nil, err
	}
	times := make([]time.Duration, jobs)
	for i := range times {
		times[i] = time.Duration(l.assigned[first+i].Load() - l.submitted[first+i])
	}
	slices.Sort(times)
	return times, nil
}

// spent is processor time of the server, of its database, and of this process.
type spent struct{ server, store, load time.Duration }

func (l *load) spent() spent {
	return spent{measure.ProcessorTime(l.server.Process().Pid), l.store(), measure.ProcessorTime(os.Getpid())}
}

func (s spent) since(before spent) spent {
	return spent{s.server - before.server, s.store - before.store, s.load - before.load}
}

func micros(d time.Duration, jobs int) float64 { return float64(d.Microseconds()) / float64(jobs) }
