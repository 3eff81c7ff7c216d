package cli

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"connectrpc.com/connect"

	"fairway/internal/server/listen"
	"fairway/internal/wire"
	"fairway/lib/sched"
)

// ask talks to the server that runs the workflow of this folder or, when none
// does, to its records.
func (c *console) ask(ctx context.Context, do func(context.Context, wire.WorkflowClient) error) error {
	ctx = listen.About(ctx, c.number)
	if c.service != "" {
		return c.askService(ctx, do)
	}
	return c.askHere(ctx, do)
}

// endingTime is for how long a question is asked again that reached a server which
// was ending.
const endingTime = 30 * time.Second

const endingPause = 50 * time.Millisecond

// askAgain asks once more when a server that lives ends before it has answered.
func askAgain(ctx context.Context, ask func() (live bool, err error)) error {
	for ended := (time.Time{}); ; {
		live, err := ask()
		if !live || ctx.Err() != nil || !serverGone(err) {
			return explained(err)
		}
		if ended.IsZero() {
			ended = time.Now()
		}
		if time.Since(ended) > endingTime {
			return explained(err)
		}
		if err := sched.Default().Sleep(ctx, endingPause); err != nil {
			return err
		}
	}
}

// serverGone reports whether an error means that the server ended while it was asked.
func serverGone(err error) bool {
	code := connect.CodeOf(err)
	return err != nil && (code == connect.CodeCanceled || code == connect.CodeUnavailable)
}

// askRunning talks to the server that runs the workflow of this folder.
func (c *console) askRunning(ctx context.Context, do func(context.Context, wire.WorkflowClient) error) error {
	ctx = listen.About(ctx, c.number)
	if c.service != "" {
		return c.askService(ctx, do)
	}
	return c.askRunningHere(ctx, do)
}

// askReturning is askRunning for a question that may be asked again: it waits for a server that is
// started again, up to takeoverTime. It does not wait where none ever was, or the run has ended.
func (c *console) askReturning(ctx context.Context, do asking) error {
	return c.untilReturned(ctx, c.askRunning, do)
}

// untilReturned asks in a way until a server that is started again has answered.
func (c *console) untilReturned(
	ctx context.Context, ask func(context.Context, func(context.Context, wire.WorkflowClient) error) error, do asking,
) error {
	for lost := (time.Time{}); ; {
		err := ask(ctx, do)
		away := errors.Is(err, errNothingRuns) && c.isUnderway(ctx) || errors.Is(err, listen.ErrUnreached) || hasEnded(err)
		if !away || !lost.IsZero() && time.Since(lost) > takeoverTime {
			return err
		}
		if lost.IsZero() {
			lost = time.Now()
			c.announce("fairway: no server answers; waiting until it is started again")
		}
		if err := sched.Default().Sleep(ctx, takeoverPause); err != nil {
			return err
		}
	}
}

// snakemakeFolder is where Fairway's plugin for Snakemake opens a run, in the folder of a workflow.
const snakemakeFolder = ".fairway-snakemake"

func noState(folder string) error {
	hint := "name the folder of the workflow with -C, or start one with `fairway run FILE`"
	if hasState(filepath.Join(folder, snakemakeFolder)) {
		hint = "the jobs of Snakemake are in " + snakemakeFolder + ": name that folder with -C"
	}
	return fail(exitNoState, hint, "no workflow was run in %s", folderText(folder))
}

var errNothingRuns = errors.New("nothing runs")

func nothingRuns(folder string) error {
	return fail(exitNoState, "start it with `fairway run`, or name a server with --server",
		"%w in %s", errNothingRuns, folderText(folder))
}

// explained turns an error of the API into one with an exit code.
func explained(err error) error {
	refused, ok := errors.AsType[*connect.Error](err)
	if !ok {
		return err
	}
	message := refused.Message()
	switch refused.Code() {
	case connect.CodeNotFound:
		return fail(exitNotFound, "", "%s", message)
	case connect.CodeInvalidArgument:
		return fail(exitUsage, "", "%s", message)
	case connect.CodeFailedPrecondition, connect.CodeUnavailable:
		return fail(exitNoState, "", "%s", message)
	case connect.CodeCanceled:
		return context.Canceled
	default:
		return errors.New(message)
	}
}
