//go:build linux

package console

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"path/filepath"
	"slices"

	"connectrpc.com/connect"

	"fairway/internal/server/api"
	"fairway/internal/server/folder"
	"fairway/internal/server/listen"
	"fairway/internal/server/term"
	"fairway/internal/wire"
)

func (c *Console) askHere(ctx context.Context, do Asking) error {
	c.TellMeant()
	folder, err := c.FolderWithState()
	if err != nil {
		return err
	}
	return AskIn(ctx, folder, do)
}

func (c *Console) askRunningHere(ctx context.Context, do Asking) error {
	c.TellMeant()
	folder, err := c.FolderWithState()
	if err != nil {
		return err
	}
	return askAgain(ctx, func() (live bool, err error) {
		connection, err := ReachRunning(ctx, folder)
		if err != nil {
			return false, WithInstead(folder, err)
		}
		if connection == nil {
			return false, NothingRuns(folder)
		}
		defer connection.Close()
		if err := RefuseStopped(folder, connection); err != nil {
			return false, err
		}
		return true, WithInstead(folder, do(ctx, connection))
	})
}

// AskIn asks the server that runs the workflow of a folder, or its records: they know
// what a server knew that ended meanwhile, and take what it did not.
func AskIn(ctx context.Context, dir string, do func(context.Context, wire.WorkflowClient) error) error {
	return askAgain(ctx, func() (live bool, err error) {
		connection, err := api.Connect(ctx, dir)
		if errors.Is(err, fs.ErrNotExist) {
			return false, NoState(dir)
		}
		if ended, ok := errors.AsType[*api.EndedError](err); ok {
			return false, serviceEnded(ended)
		}
		if err != nil {
			return false, WithInstead(dir, err)
		}
		defer connection.Close()
		if err := RefuseStopped(dir, connection); err != nil {
			return false, err
		}
		if err = do(ctx, connection); connection.Live {
			err = WithInstead(dir, err)
		}
		return connection.Live, err
	})
}

func (c *Console) isUnderway(ctx context.Context) (underway bool) {
	_ = c.Ask(ctx, func(ctx context.Context, client wire.WorkflowClient) error {
		report, err := Over(ctx, client)
		underway = err == nil && report == nil
		return err
	})
	return underway
}

// Over is how a run ended, as its server or its records know; nil while it goes on, or where it was cut short.
func Over(ctx context.Context, client wire.WorkflowClient) (*wire.ProgressReport, error) {
	stream, err := client.Progress(ctx, &wire.ProgressRequest{})
	if err != nil {
		return nil, err
	}
	defer stream.Close()
	if !stream.Receive() {
		return nil, errors.Join(stream.Err(), errWentAway)
	}
	if report := stream.Msg(); report.GetEnded() && !slices.Contains(report.GetProblems(), api.CutShort) {
		return report, nil
	}
	return nil, nil
}

// RefuseStopped keeps a question from waiting for a server that was stopped: the kernel
// takes the connection for it, and nobody answers.
func RefuseStopped(workflow string, connection *listen.Connection) error {
	if !connection.Live {
		return nil
	}
	return stoppedIn(workflow)
}

func stoppedIn(workflow string) error {
	if pid := folder.Stopped(filepath.Join(workflow, StateFolder)); pid != 0 {
		return Fail(ExitFailed, fmt.Sprintf("let it go on: `fg` in its terminal, or `kill -CONT %d`", pid),
			"process %d, which runs the workflow in %s, was stopped (Ctrl-Z or SIGSTOP) and does not answer", pid,
			FolderText(workflow))
	}
	return nil
}

// RunningIn connects to the server that runs the workflow of a folder; nil
// where none does, or none that can be reached.
func RunningIn(ctx context.Context, folder string) *listen.Connection {
	connection, _ := ReachRunning(ctx, folder)
	return connection
}

// ReachRunning is runningIn, with a *api.UnreachableError where a server may run on another
// machine.
func ReachRunning(ctx context.Context, folder string) (*listen.Connection, error) {
	if !HasState(folder) {
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

// InsteadOfFar is what to do where a server on another machine does not answer.
const InsteadOfFar = "if that machine is gone, `fairway run` takes the run over; it waits until the server has been " +
	"silent for some time"

// WithInstead adds to the error of a server that lives and does not answer what to do about it.
func WithInstead(workflow string, err error) error {
	_, unreachable := errors.AsType[*api.UnreachableError](err)
	if _, unheard := errors.AsType[*net.OpError](err); unheard && !unreachable {
		if opening := yetToAnswer(workflow); opening != nil { // it has its folder, and no socket yet
			return opening
		}
	}
	if !unreachable && connect.CodeOf(err) != connect.CodeDeadlineExceeded {
		return err
	}
	if stopped := stoppedIn(workflow); stopped != nil {
		return stopped
	}
	end := "end its process"
	if running, ok := errors.AsType[*folder.RunningError](folder.CheckFree(workflow)); ok && running.PID != 0 {
		end = fmt.Sprintf("`kill -KILL %d`", running.PID)
	}
	job := serverJobIn(workflow)
	if job != "" {
		end = "cancel " + job
	}
	switch {
	case unreachable && job == "":
		return Fail(ExitFailed, InsteadOfFar, "%w", err)
	case unreachable:
		return Fail(ExitFailed, InsteadOfFar+"; if it hangs, first "+end, "%w", err)
	}
	return Fail(ExitFailed, "it may have much to do, or be stuck: try again; if that goes on, "+end+
		", and start `fairway run` again, which goes on from its records",
		"%w", Explained(err))
}

// serverJobIn names the batch job that is the server of a workflow, empty where it is none.
func serverJobIn(workflow string) string {
	l, err := folder.Of(workflow)
	if err != nil {
		return ""
	}
	last, err := term.Last(l.State, l.ID)
	if err != nil || !last.Lives() || last.Launch == "" {
		return ""
	}
	return fmt.Sprintf("its batch job at the site %s, whose name ends in %s", last.Site, last.Launch)
}

// FolderWithState is the folder of the run that is meant; it has a state.
func (c *Console) FolderWithState() (string, error) {
	if c.Service != "" {
		return c.serviceFolder()
	}
	dir, err := c.WorkflowFolder()
	if err != nil {
		return "", err
	}
	if !HasState(dir) {
		return "", NoState(dir)
	}
	return dir, folder.CheckOwner(dir)
}

// IsFolderOfRun reports whether a path is the folder of a run, and not that of a server that
// takes workflows, or a file.
func IsFolderOfRun(path string) bool { return HasState(path) && !folder.IsLasting(path) }

func isUnderwayIn(dir string) bool {
	if !HasState(dir) {
		return false
	}
	_, running := errors.AsType[*folder.RunningError](folder.CheckFree(dir))
	return running
}

// yetToAnswer is an error where a process has the folder of a workflow, and does not serve it: it looks at inputs and
// at the places of files first, and these may be away for minutes.
func yetToAnswer(dir string) error {
	running, ok := errors.AsType[*folder.RunningError](folder.CheckFree(dir))
	if !ok {
		return nil
	}
	hint := "it says in its terminal for which"
	if running.PID != 0 {
		hint += fmt.Sprintf("; `kill -INT %d` ends it", running.PID)
	}
	return Fail(ExitNoState, hint, "%w", &beginningError{running.PID, dir})
}

func isLasting(path string) bool { return folder.IsLasting(path) }
