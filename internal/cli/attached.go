//go:build linux

package cli

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"fairway/internal/beneath"
	"fairway/internal/cli/console"
	"fairway/internal/provision"
	"fairway/internal/server"
	"fairway/internal/server/folder"
	"fairway/lib/sched"
)

// programEnd returns a channel that is closed when nobody can write to a file any more. What is written
// there is dropped. Several processes may read one file in this way.
func programEnd(ctx context.Context, stdin *os.File) <-chan struct{} {
	ended := make(chan struct{})
	go func() {
		if readToEnd(ctx, stdin) == nil {
			close(ended)
		}
	}()
	return ended
}

// readToEnd reads a file until its end, or an error of reading it. Its own error is that of ctx.
func readToEnd(ctx context.Context, f *os.File) error {
	buffer := make([]byte, 512)
	for {
		// A regular file cannot be waited for, and always has something to read.
		if err := sched.Default().WaitReadable(ctx, int(f.Fd())); ctx.Err() != nil {
			return err
		}
		if n, err := unix.Read(int(f.Fd()), buffer); n == 0 || err != nil && err != unix.EAGAIN && err != unix.EINTR {
			return nil
		}
	}
}

func attachFlags(command *cobra.Command, o *runOptions) {
	flags := command.Flags()
	flags.BoolVar(&o.pilots.Attached, provision.UntilStdinEnds, false, "end at once, with pilots and jobs, when standard "+
		"input ends: a program holds a pipe to it, and has what it started end with it")
	flags.BoolVar(&o.temporary, "temporary", false, "remove the folder of the run, which must be empty now, when the "+
		"run has ended")
}

// runAttached is run for a run that may end with its program, or whose folder goes with it.
func (c *commands) runAttached(ctx context.Context, o *runOptions) (err error) {
	if o.temporary {
		if err := refuseFull(o.config.Folder); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, removeTemporary(o.config.Folder)) }()
	}
	if !o.pilots.Attached {
		return c.run(ctx, o)
	}
	o.program = programEnd(ctx, os.Stdin)
	err = c.run(ctx, o)
	select {
	case <-o.program:
		return console.Quietly(console.ExitHungUp)
	default:
		return err
	}
}

// abandonWith has a server end with the program for which it has opened the run. The returned function
// ends that.
func (o *runOptions) abandonWith(s *server.Server) (stop func()) {
	ctx, stop := context.WithCancel(context.Background())
	if o.program != nil {
		go func() {
			if _, err := sched.Receive(ctx, sched.Default(), o.program); errors.Is(err, sched.ErrChannelClosed) {
				s.Abandon()
			}
		}()
	}
	return stop
}

// refuseFull keeps a folder from being removed in which somebody has something.
func refuseFull(folder string) error {
	entries, err := os.ReadDir(folder)
	if err == nil && len(entries) > 0 {
		return console.Fail(console.ExitUsage, "name a new folder with --dir, or leave --temporary out",
			"--temporary removes the folder of "+
				"the run at its end, and there is something in %s already", console.FolderText(folder))
	}
	return err
}

// removeTemporary removes the folder of a run that has ended, whatever jobs have done to what is in it.
func removeTemporary(path string) error {
	f, err := beneath.Open(path)
	if err == nil {
		var names []string
		names, err = f.List(".")
		for _, name := range names {
			err = errors.Join(err, f.RemoveAll(name))
		}
		err = errors.Join(err, f.Close(), os.Remove(path))
	}
	if err = folder.IgnoreMissing(err); err != nil {
		return fmt.Errorf("removing the temporary folder of the run: %w", err)
	}
	return nil
}
