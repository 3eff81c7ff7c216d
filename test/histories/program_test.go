package histories

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"fairway/lib/sched"
	"fairway/test/program"
)

// patience is how long one call of the program may take before it counts as
// hung.
const patience = 60 * time.Second

// fairway is the path of the binary under test.
var fairway string

func TestMain(m *testing.M) { program.Main(m, &fairway) }

// call is one call of the program in a folder.
type call struct {
	t      *testing.T
	folder string
	cmd    *exec.Cmd
	output bytes.Buffer // standard output
	errors bytes.Buffer
	ended  chan struct{}
}

func start(t *testing.T, folder string, arguments ...string) *call {
	t.Helper()
	c := &call{t: t, folder: folder, ended: make(chan struct{})}
	c.cmd = exec.Command(fairway, arguments...)
	c.cmd.Dir = folder
	c.cmd.Stdout, c.cmd.Stderr = &c.output, &c.errors
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = c.cmd.Wait()
		close(c.ended)
	}()
	return c
}

// wait returns whether the call succeeded.
func (c *call) wait() bool {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if _, err := sched.Receive(ctx, sched.Default(), c.ended); !errors.Is(err, sched.ErrChannelClosed) {
		_ = c.cmd.Process.Signal(syscall.SIGQUIT)
		<-c.ended
		c.t.Fatalf("%v hung\n%s", c.cmd.Args[1:], c.said())
	}
	return c.cmd.ProcessState.Success()
}

// at waits for a moment; false if the call ends before.
func (c *call) at(moment time.Duration) bool {
	ctx, cancel := context.WithTimeout(context.Background(), moment)
	defer cancel()
	_, err := sched.Receive(ctx, sched.Default(), c.ended)
	return !errors.Is(err, sched.ErrChannelClosed)
}

func (c *call) said() string { return c.output.String() + c.errors.String() }

// do runs the program to its end.
func do(t *testing.T, folder string, arguments ...string) *call {
	t.Helper()
	c := start(t, folder, arguments...)
	c.wait()
	return c
}
