package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"

	"connectrpc.com/connect"

	"fairway/internal/access"
	"fairway/internal/server/convert"
	"fairway/internal/server/state"
	"fairway/internal/taskqueue"
	"fairway/internal/wire"
	"fairway/lib/sched"
)

// logPiece is the most that one message of a log stream carries.
const logPiece = 64 << 10

// Logs streams what an attempt printed: standard output first, or as it comes
// if it is followed. Of one that failed its log comes last, as standard error.
func (s *Service) Logs(ctx context.Context, r *wire.LogsRequest, stream *connect.ServerStream[wire.LogChunk]) error {
	return s.FollowLogs(ctx, r, stream.Send)
}

// FollowLogs is Logs with what sends a piece, which is good only for the call.
func (s *Service) FollowLogs(ctx context.Context, r *wire.LogsRequest, send func(*wire.LogChunk) error) error {
	a, err := s.of(ctx, r)
	if err != nil {
		return err
	}
	l, err := a.openLogs(ctx, r)
	if err != nil {
		return err
	}
	var paths []string
	for _, t := range l.tails {
		paths = append(paths, t.whole, t.live)
	}
	for {
		before, changed := convert.Each(paths, statQuietly), a.run.Changes()
		running := r.GetFollow() && a.runs(ctx, l.job, l.attempt)
		if err := l.send(send); err != nil || !running {
			return err
		}
		waiting, cancel := context.WithTimeout(ctx, access.KeepAlive)
		err := a.awaitLog(waiting, changed, paths, before)
		cancel()
		if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
			err = send(&wire.LogChunk{}) // nothing was printed, and the server is there
		}
		if err != nil {
			return rpcError(err)
		}
	}
}

// ReadLogs sends what an attempt has printed after a place, which is empty at first, and at most the last
// bytes that are asked for of each log. It returns the place up to which it has sent, and whether more may come.
func (s *Service) ReadLogs(
	ctx context.Context, r *wire.LogsRequest, after []int64, send func(*wire.LogChunk) error,
) (place []int64, more bool, err error) {
	a, err := s.of(ctx, r)
	if err != nil {
		return nil, false, err
	}
	l, err := a.openLogs(ctx, r)
	if err != nil {
		return nil, false, err
	}
	for i, t := range l.tails[:min(len(l.tails), len(after))] {
		t.offset = max(t.offset, after[i])
	}
	more = a.runs(ctx, l.job, l.attempt)
	err = l.send(send)
	return convert.Each(l.tails, func(t *tail) int64 { return t.offset }), more, err
}

type openedLogs struct {
	job     taskqueue.JobID
	attempt taskqueue.AttemptID
	tails   []*tail // in the order of state.LogKinds
}

// openLogs finds what is asked for, and leaves out all but the last bytes that are asked for.
func (a *view) openLogs(ctx context.Context, r *wire.LogsRequest) (l openedLogs, err error) {
	if l.job, l.attempt, err = a.attemptFor(ctx, r); err != nil {
		return l, err
	}
	for _, kind := range state.LogKinds {
		t := &tail{whole: a.logs.Path(l.attempt, kind), live: a.logs.Live(l.attempt, kind), standardError: kind != "out"}
		t.skipTo(r.GetTailBytes())
		l.tails = append(l.tails, t)
	}
	return l, nil
}

func (l *openedLogs) send(send func(*wire.LogChunk) error) error {
	for _, t := range l.tails {
		if err := t.send(send); err != nil {
			return err
		}
	}
	return nil
}

func (a *view) attemptFor(
	ctx context.Context, r *wire.LogsRequest,
) (job taskqueue.JobID, attempt taskqueue.AttemptID, err error) {
	var made taskqueue.JobDetail // by an earlier run
	err = a.lookAtJob(ctx, r, func(c *state.Cores, id taskqueue.JobID) error {
		job = id
		detail, _ := c.Dispatch.Detail(job)
		if detail.Reused && c.Tally.Attempts.Count(job)+len(detail.Attempts) == 0 {
			made = detail
			return nil
		}
		attempt, err = chooseAttempt(c, job, r)
		return err
	})
	if err == nil && made.Reused {
		attempt, err = a.attemptBefore(ctx, &made, r)
	}
	return job, attempt, err
}

// attemptBefore is the attempt of an earlier run that made the result of a job.
func (a *view) attemptBefore(
	ctx context.Context, job *taskqueue.JobDetail, r *wire.LogsRequest,
) (taskqueue.AttemptID, error) {
	p, err := a.run.Provenance(ctx, makerOf(job), job.Key)
	if err != nil {
		return 0, rpcError(err)
	}
	made := loggedOf(&job.JobView, p.GetAttempt())
	if made.attempt == 0 {
		return 0, connect.NewError(connect.CodeNotFound, fmt.Errorf("job %s was not run: its outputs are those of an "+
			"earlier run, of which nothing else is recorded", job.Name))
	}
	return chooseLogged(&job.JobView, []logged{made}, r)
}

func noAttempt(job *taskqueue.JobView, wanted taskqueue.AttemptID) error {
	return connect.NewError(connect.CodeNotFound, fmt.Errorf("job %s has no attempt %d; `fairway show %d` lists them",
		job.Name, wanted, job.ID.Number()))
}

func chooseAttempt(c *state.Cores, id taskqueue.JobID, r *wire.LogsRequest) (taskqueue.AttemptID, error) {
	job, _ := c.Dispatch.Job(id)
	ended, err := c.Tally.Attempts.Of(id)
	if err != nil {
		return 0, err
	}
	all := convert.Each(ended, func(a *wire.AttemptDetail) logged { return loggedOf(&job, a) })
	for i, live := range job.Attempts {
		if job.Tasks == 0 || i == 0 {
			all = append(all, logged{live.Attempt, live.Leader})
		}
	}
	if len(all) == 0 {
		return 0, connect.NewError(connect.CodeNotFound, fmt.Errorf("job %s has not started", job.Name))
	}
	return chooseLogged(&job, all, r)
}

// logged is an attempt of which there are logs. Of a gang each task has its own.
type logged struct {
	attempt taskqueue.AttemptID // of a gang, the task that is meant if none is named
	leader  taskqueue.AttemptID // of its gang; 0: it is of none
}

func loggedOf(job *taskqueue.JobView, ended *wire.AttemptDetail) logged {
	l := logged{taskqueue.AttemptID(ended.GetAttempt()), taskqueue.AttemptID(ended.GetResult().GetLeader())}
	if l.leader == 0 && job.Tasks > 0 { // it ended as a whole
		l.leader = l.attempt
	}
	return l
}

// chooseLogged finds the attempt that is asked for, by itself the last one, and the task of it.
func chooseLogged(job *taskqueue.JobView, all []logged, r *wire.LogsRequest) (taskqueue.AttemptID, error) {
	chosen, wanted := all[len(all)-1], taskqueue.AttemptID(r.GetAttempt())
	if wanted != 0 {
		at := slices.IndexFunc(all, func(l logged) bool {
			return l.attempt == wanted ||
				l.leader != 0 && wanted >= l.leader && wanted < l.leader+taskqueue.AttemptID(job.Tasks)
		})
		if at < 0 {
			return 0, noAttempt(job, wanted)
		}
		chosen = logged{wanted, all[at].leader}
	}
	switch task := int(r.GetTask()); {
	case r.Task == nil:
		return chosen.attempt, nil
	case job.Tasks == 0:
		return 0, connect.NewError(connect.CodeNotFound, fmt.Errorf("job %s is one task; leave the number of a task out",
			job.Name))
	case task < 0 || task >= job.Tasks:
		return 0, connect.NewError(connect.CodeNotFound, fmt.Errorf("job %s has no task %d; its tasks are 0 to %d", job.Name,
			task, job.Tasks-1))
	default:
		return chosen.leader + taskqueue.AttemptID(task), nil
	}
}

func (a *view) runs(ctx context.Context, job taskqueue.JobID, attempt taskqueue.AttemptID) bool {
	live := false
	_ = a.run.Query(ctx, 0, func(c *state.Cores) {
		view, _ := c.Dispatch.Job(job)
		live = slices.ContainsFunc(view.Attempts, func(v taskqueue.AttemptView) bool { return v.Attempt == attempt })
	})
	return live
}

// awaitLog waits until one of the files or the state of the run has changed.
func (a *view) awaitLog(
	ctx context.Context, runChanged <-chan struct{}, paths []string, before []sched.FileState,
) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	changed := make(chan error, len(paths))
	for i, path := range paths {
		go func() {
			_, err := a.sched.WaitFile(ctx, sched.Changes(path, before[i]))
			changed <- err
		}()
	}
	var err error
	pending := len(paths)
	select {
	case err = <-changed:
		pending--
	case <-runChanged:
	case <-ctx.Done():
		err = ctx.Err()
	}
	cancel()
	for ; pending > 0; pending-- {
		<-changed
	}
	return err
}

func statQuietly(path string) sched.FileState {
	state, err := sched.StatFile(path)
	if err != nil {
		return sched.FileState{}
	}
	return state
}

type tail struct {
	whole, live   string // paths; live is what has come until all is there
	standardError bool
	offset        int64
}

// skipTo leaves out all but the last bytes; zero leaves out nothing.
func (t *tail) skipTo(last int64) {
	file, err := t.open()
	if err != nil {
		return
	}
	defer func() { _ = file.Close() }()
	if info, err := file.Stat(); err == nil && last > 0 {
		t.offset = max(0, info.Size()-last)
	}
}

// open opens the whole log, or what has come of it. While it looks, the one may take the
// place of the other.
func (t *tail) open() (file *os.File, err error) {
	for _, path := range []string{t.whole, t.live, t.whole} {
		if file, err = os.Open(path); !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	return file, err
}

// send sends what has come since the last time.
func (t *tail) send(send func(*wire.LogChunk) error) error {
	file, err := t.open()
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	buffer := make([]byte, logPiece)
	for {
		n, err := file.ReadAt(buffer, t.offset)
		if n > 0 {
			t.offset += int64(n)
			if err := send(&wire.LogChunk{StandardError: t.standardError, Data: buffer[:n]}); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
