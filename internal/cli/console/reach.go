package console

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"connectrpc.com/connect"

	"fairway/internal/server/listen"
	"fairway/internal/wire"
	"fairway/lib/sched"
)

// Ask talks to the server that runs the workflow of this folder or, when none
// does, to its records.
func (c *Console) Ask(ctx context.Context, do func(context.Context, wire.WorkflowClient) error) error {
	ctx = listen.About(ctx, c.Number)
	if c.Service != "" {
		return c.AskService(ctx, do)
	}
	return c.askHere(ctx, do)
}

// EndingTime is for how long a question is asked again that reached a server which
// was ending.
const EndingTime = 30 * time.Second

// EndingPause is how long one who waits for the end of a server waits until the next look.
const EndingPause = 50 * time.Millisecond

// askAgain asks once more when a server that lives ends before it has answered.
func askAgain(ctx context.Context, ask func() (live bool, err error)) error {
	for ended := (time.Time{}); ; {
		live, err := ask()
		if !live || ctx.Err() != nil || !ServerGone(err) {
			return Explained(err)
		}
		if ended.IsZero() {
			ended = time.Now()
		}
		if time.Since(ended) > EndingTime {
			return Explained(err)
		}
		if err := sched.Default().Sleep(ctx, EndingPause); err != nil {
			return err
		}
	}
}

// ServerGone reports whether an error means that the server ended while it was asked.
func ServerGone(err error) bool {
	code := connect.CodeOf(err)
	return err != nil && (code == connect.CodeCanceled || code == connect.CodeUnavailable)
}

// AskRunning talks to the server that runs the workflow of this folder.
func (c *Console) AskRunning(ctx context.Context, do func(context.Context, wire.WorkflowClient) error) error {
	ctx = listen.About(ctx, c.Number)
	if c.Service != "" {
		return c.AskService(ctx, do)
	}
	return c.askRunningHere(ctx, do)
}

// AskReturning is askRunning for a question that may be asked again: it waits for a server that is
// started again, up to takeoverTime. It does not wait where none ever was, or the run has ended.
func (c *Console) AskReturning(ctx context.Context, do Asking) error {
	return c.UntilReturned(ctx, c.AskRunning, do)
}

// UntilReturned asks in a way until a server that is started again has answered.
func (c *Console) UntilReturned(
	ctx context.Context, ask func(context.Context, func(context.Context, wire.WorkflowClient) error) error, do Asking,
) error {
	for lost := (time.Time{}); ; {
		err := ask(ctx, do)
		away := errors.Is(err, ErrNothingRuns) && c.isUnderway(ctx) || errors.Is(err, listen.ErrUnreached) || hasEnded(err)
		if !away || !lost.IsZero() && time.Since(lost) > takeoverTime {
			return err
		}
		if lost.IsZero() {
			lost = time.Now()
			c.Announce("fairway: no server answers; waiting until it is started again")
		}
		if err := sched.Default().Sleep(ctx, takeoverPause); err != nil {
			return err
		}
	}
}

// snakemakeFolder is where Fairway's plugin for Snakemake opens a run, in the folder of a workflow.
const snakemakeFolder = ".fairway-snakemake"

// NoState is the error where a folder has no run, or one that is only beginning.
func NoState(folder string) error {
	if err := yetToAnswer(folder); err != nil {
		return err
	}
	hint := "name the folder of the workflow with -C, or start one with `fairway run FILE`"
	if HasState(filepath.Join(folder, snakemakeFolder)) {
		hint = "the jobs of Snakemake are in " + snakemakeFolder + ": name that folder with -C"
	}
	return Fail(ExitNoState, hint, "no workflow was run in %s", FolderText(folder))
}

// ErrNothingRuns says that a folder has no run that is under way.
var ErrNothingRuns = errors.New("nothing runs")

// beginningError says that a process has a folder, and is not yet to be asked. It is an ErrNothingRuns.
type beginningError struct {
	pid    int // 0: it could not be found out
	folder string
}

func (e *beginningError) Error() string {
	who := "another process"
	if e.pid != 0 {
		who = fmt.Sprintf("process %d", e.pid)
	}
	return fmt.Sprintf("%s has begun in %s and answers no questions yet: "+
		"it reads records, or waits for inputs or a place of files", who, FolderText(e.folder))
}

func (e *beginningError) Is(target error) bool { return target == ErrNothingRuns }

// NothingRuns is ErrNothingRuns for a person.
func NothingRuns(folder string) error {
	if err := yetToAnswer(folder); err != nil {
		return err
	}
	return Fail(ExitNoState, "start it with `fairway run`, or name a server with --server",
		"%w in %s", ErrNothingRuns, FolderText(folder))
}

// Explained turns an error of the API into one with an exit code.
func Explained(err error) error {
	refused, ok := errors.AsType[*connect.Error](err)
	if !ok {
		return err
	}
	message := refused.Message()
	switch refused.Code() {
	case connect.CodeNotFound:
		return Fail(ExitNotFound, "", "%s", message)
	case connect.CodeInvalidArgument:
		return Fail(ExitUsage, "", "%s", message)
	case connect.CodeFailedPrecondition, connect.CodeUnavailable:
		return Fail(ExitNoState, "", "%s", message)
	case connect.CodeCanceled:
		return context.Canceled
	default:
		return errors.New(message)
	}
}
