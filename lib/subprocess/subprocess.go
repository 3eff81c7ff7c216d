// Package subprocess starts other processes, for benchmarks and tests, and talks with them in lines.
package subprocess

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// Child is another process that is told what to do in lines and answers in
// lines. It ends when its standard input does.
type Child struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// patience is how long a child may take to end by itself.
const patience = 10 * time.Second

// Self is this program, to be started again with other arguments.
func Self(args ...string) *exec.Cmd {
	self, err := os.Executable()
	if err != nil {
		self = os.Args[0]
	}
	return exec.Command(self, args...)
}

// Start starts a child from the calling thread, whose processors it inherits. What
// it writes to its standard error goes to that of this process.
func Start(cmd *exec.Cmd) (*Child, error) {
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, errors.Join(err, in.Close())
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", cmd.Path, err)
	}
	return &Child{cmd: cmd, in: in, out: bufio.NewReader(out)}, nil
}

// Process is for signals.
func (c *Child) Process() *os.Process { return c.cmd.Process }

// Tell sends a line.
func (c *Child) Tell(line string) error {
	_, err := io.WriteString(c.in, line+"\n")
	return err
}

// Hear waits for the next line, without its end.
func (c *Child) Hear() (string, error) {
	line, err := c.out.ReadString('\n')
	if err != nil {
		return "", fmt.Errorf("%s ended: %w", c.cmd.Path, err)
	}
	return strings.TrimSuffix(line, "\n"), nil
}

// Ask sends a line and waits for the answer.
func (c *Child) Ask(line string) (string, error) {
	if err := c.Tell(line); err != nil {
		return "", err
	}
	return c.Hear()
}

// Stop lets the child end and waits for it. One that does not end is killed.
func (c *Child) Stop() error {
	c.in.Close()
	kill := time.AfterFunc(patience, func() { _ = c.cmd.Process.Kill() })
	defer kill.Stop()
	return c.cmd.Wait()
}

// Kill ends the child at once and waits until it is gone.
func (c *Child) Kill() {
	_ = c.cmd.Process.Kill()
	_ = c.cmd.Wait()
}

// Used is what the child took, once it has ended, and false before.
func (c *Child) Used() (*syscall.Rusage, bool) {
	if c.cmd.ProcessState == nil {
		return nil, false
	}
	used, ok := c.cmd.ProcessState.SysUsage().(*syscall.Rusage)
	return used, ok
}
