package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"connectrpc.com/connect"

	"fairway/internal/server/api"
	"fairway/internal/server/folder"
	"fairway/internal/wire"
	"fairway/sched"
)

// ask talks to the server that runs the workflow of this folder or, when none
// does, to its records.
func (c *console) ask(ctx context.Context, do func(context.Context, wire.WorkflowClient) error) error {
	folder, err := c.folderWithState()
	if err != nil {
		return err
	}
	return askIn(ctx, folder, do)
}

// endingTime is for how long a question is asked again that reached a server which
// was ending.
const endingTime = 30 * time.Second

const endingPause = 50 * time.Millisecond

// askIn asks the server that runs the workflow of a folder, or its records: they know
// what a server knew that ended meanwhile, and take what it did not.
func askIn(ctx context.Context, dir string, do func(context.Context, wire.WorkflowClient) error) error {
	return askAgain(ctx, func() (live bool, err error) {
		connection, err := api.Connect(ctx, dir)
		if errors.Is(err, fs.ErrNotExist) {
			return false, noState(dir)
		}
		if err != nil {
			return false, withInstead(err)
		}
		defer connection.Close()
		if err := refuseStopped(dir, connection); err != nil {
			return false, err
		}
		return connection.Live, do(ctx, connection)
	})
}

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
	folder, err := c.folderWithState()
	if err != nil {
		return err
	}
	return askAgain(ctx, func() (live bool, err error) {
		connection, err := reachRunning(ctx, folder)
		if err != nil {
			return false, withInstead(err)
		}
		if connection == nil {
			return false, nothingRuns(folder)
		}
		defer connection.Close()
		if err := refuseStopped(folder, connection); err != nil {
			return false, err
		}
		return true, do(ctx, connection)
	})
}

// refuseStopped keeps a question from waiting for a server that was stopped: the kernel
// takes the connection for it, and nobody answers.
func refuseStopped(workflow string, connection *api.Connection) error {
	if !connection.Live || connection.Far {
		return nil
	}
	if pid := folder.Stopped(filepath.Join(workflow, stateFolder)); pid != 0 {
		return fail(exitFailed, fmt.Sprintf("let it go on: `fg` in its terminal, or `kill -CONT %d`", pid),
			"process %d, which runs the workflow in %s, was stopped (Ctrl-Z or SIGSTOP) and does not answer", pid, folderText(workflow))
	}
	return nil
}

// runningIn connects to the server that runs the workflow of a folder; nil
// where none does, or none that can be reached.
func runningIn(ctx context.Context, folder string) *api.Connection {
	connection, _ := reachRunning(ctx, folder)
	return connection
}

// reachRunning is runningIn, with a *api.UnreachableError where a server may run on another
// machine.
func reachRunning(ctx context.Context, folder string) (*api.Connection, error) {
	if !hasState(folder) {
		return nil, nil
	}
	connection, err := api.Connect(ctx, folder)
	if _, unreachable := errors.AsType[*api.UnreachableError](err); unreachable {
		return nil, err
	}
	if err != nil {
		return nil, nil
	}
	if !connection.Live {
		connection.Close()
		return nil, nil
	}
	return connection, nil
}

// insteadOfFar is what to do where a server on another machine does not answer.
const insteadOfFar = "if that machine is gone, `fairway run` takes the run over; it waits until the server has been silent for some time"

func withInstead(err error) error {
	if _, unreachable := errors.AsType[*api.UnreachableError](err); unreachable {
		return fail(exitFailed, insteadOfFar, "%w", err)
	}
	return err
}

func (c *console) folderWithState() (string, error) {
	dir, err := c.workflowFolder()
	if err != nil {
		return "", err
	}
	if !hasState(dir) {
		return "", noState(dir)
	}
	return dir, folder.CheckOwner(dir)
}

func noState(folder string) error {
	return fail(exitNoState, "name the folder of the workflow with -C, or start one with `fairway run FILE`",
		"no workflow was run in %s", folderText(folder))
}

var errNothingRuns = errors.New("nothing runs")

func nothingRuns(folder string) error {
	return fail(exitNoState, "start it with `fairway run`", "%w in %s", errNothingRuns, folderText(folder))
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
	case connect.CodeDeadlineExceeded:
		return fail(exitFailed, "it may have much to do, or be stuck: try again; if that goes on, end its process and start `fairway run` again, which goes on from its records", "%s", message)
	case connect.CodeCanceled:
		return context.Canceled
	default:
		return errors.New(message)
	}
}
