//go:build linux

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"fairway/internal/cli/console"
	"fairway/internal/cli/screen"
	"fairway/internal/server/folder"
)

// detachedVariable tells a process that it is to go on in the background.
const detachedVariable = "FAIRWAY_DETACHED"

// runLog is the file in the folder of logs to which a detached run prints.
const runLog = "run.log"

func isDetached() bool { return os.Getenv(detachedVariable) != "" }

type detachedProcess struct {
	Process int    `json:"process"`
	Log     string `json:"log"`
}

// detach has another process run the workflow, in a session of its own. It waits until
// that has begun, and shows what goes wrong before.
func (c *commands) detach(ctx context.Context, o *runOptions) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	said, says, err := os.Pipe()
	if err != nil {
		return err
	}
	defer said.Close()
	run := exec.Command(self, os.Args[1:]...)
	run.Env = append(os.Environ(), detachedVariable+"=1")
	run.Stdout, run.Stderr = says, says
	run.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = run.Start()
	_ = says.Close()
	if err != nil {
		return err
	}
	// It gives the pipe up when it goes on alone, or ends.
	if _, err := io.Copy(c.Err, said); err != nil {
		return err
	}
	connection := console.RunningIn(ctx, o.config.Folder)
	if connection == nil {
		if ended, ok := errors.AsType[*exec.ExitError](run.Wait()); ok {
			return console.Quietly(ended.ExitCode())
		}
	} else {
		connection.Close()
	}
	layout, err := folder.Of(o.config.Folder)
	if err != nil {
		return err
	}
	log := filepath.Join(layout.Logs, runLog)
	switch {
	case c.JSON:
		c.PrintJSON(detachedProcess{run.Process.Pid, log})
	case connection == nil:
		fmt.Fprintf(c.Out, "The run has ended; what it printed is in %s\n", log)
	case o.config.Lasting:
		fmt.Fprintf(c.Out, "The server goes on in the background. End it with `fairway stop --server %s`.\nIt prints to %s\n",
			screen.DisplayPath(o.config.Folder), log)
	default:
		fmt.Fprintf(c.Out, "The run goes on in the background. Watch it with `fairway run --follow`, end it with `fairway "+
			"stop`.\nIt prints to %s\n", log)
	}
	return nil
}

// leaveTerminal has this process print to a file of the state from now on.
func leaveTerminal(dir string) error {
	if err := os.Unsetenv(detachedVariable); err != nil { // it is not for pilots
		return err
	}
	layout, err := folder.Of(dir)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(layout.Logs, 0o700); err != nil {
		return err
	}
	log, err := os.OpenFile(filepath.Join(layout.Logs, runLog), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(unix.Dup3(int(log.Fd()), 1, 0), unix.Dup3(int(log.Fd()), 2, 0), log.Close())
}
