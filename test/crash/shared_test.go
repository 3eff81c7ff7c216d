package crash

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"fairway/test/files"
)

// call is `fairway exec` of a job that waits for the file go.
type call struct {
	cmd  *exec.Cmd
	said strings.Builder
}

func newCall(t *testing.T, folder string, n int) *call {
	t.Helper()
	c := new(call)
	c.cmd = exec.Command(fairway, "-C", folder, "exec", "--pilots", "4", "--", fmt.Sprintf(
		`touch %[1]s/begun%[2]d; until [ -e %[1]s/go ]; do sleep 0.02; done; echo said %[2]d`, folder, n))
	c.cmd.Stdout, c.cmd.Stderr = &c.said, &c.said
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.cmd.Process.Kill(); _ = c.cmd.Wait() })
	return c
}

func (c *call) succeeds(t *testing.T, n int) {
	t.Helper()
	if err := c.cmd.Wait(); err != nil || !strings.Contains(c.said.String(), fmt.Sprint("said ", n)) {
		t.Errorf("call %d: %v\n%s", n, err, c.said.String())
	}
}

// Calls in one folder share its run, whoever opens it and whatever becomes of that one: it is closed when
// the last has left.
func TestCallsShareTheRunOfAFolder(t *testing.T) {
	for name, end := range map[string]syscall.Signal{
		"in order": 0, "first interrupted": syscall.SIGINT, "first killed": syscall.SIGKILL,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			first := newCall(t, folder, 0)
			await(t, filepath.Join(folder, "begun0"))
			others := []*call{newCall(t, folder, 1), newCall(t, folder, 2), newCall(t, folder, 3)}
			for n := range others {
				await(t, filepath.Join(folder, fmt.Sprint("begun", n+1)))
			}
			if end != 0 {
				_ = first.cmd.Process.Signal(end)
			}
			if end == syscall.SIGKILL {
				_ = first.cmd.Wait()
			}
			files.Write(t, filepath.Join(folder, "go"), "")
			for n, c := range others {
				c.succeeds(t, n+1)
			}
			if end == 0 {
				first.succeeds(t, 0)
			} else if _ = first.cmd.Wait(); end == syscall.SIGINT && first.cmd.ProcessState.ExitCode() != 130 {
				t.Errorf("the first: exit code %d\n%s", first.cmd.ProcessState.ExitCode(), first.said.String())
			}
			waitNone(t, folder)
		})
	}
}

// Calls that come at once open one run, and those that come when it is closed open the next.
func TestCallsThatComeAtOnce(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	files.Write(t, filepath.Join(folder, "go"), "")
	for round := range 3 {
		var calls []*call
		for n := range 4 {
			calls = append(calls, newCall(t, folder, 10*round+n))
		}
		for n, c := range calls[:round] { // and so the next ones come while this round ends
			c.succeeds(t, 10*round+n)
		}
		defer func() {
			for n, c := range calls[round:] {
				c.succeeds(t, 10*round+round+n)
			}
		}()
	}
}

// A run that was opened for a program goes on for others after that has ended, and ends with the last.
func TestARunOfAProgramGoesOnForOthers(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "run")
	program, server := openUntilEnd(t, folder)
	await(t, filepath.Join(folder, ".fairway/socket"))
	c := newCall(t, folder, 1)
	await(t, filepath.Join(folder, "begun1"))
	_ = program.Process.Kill()
	_ = program.Wait()
	files.Write(t, filepath.Join(folder, "go"), "")
	c.succeeds(t, 1)
	_ = server.Wait()
	waitNone(t, folder)
	if _, err := os.Stat(folder); !os.IsNotExist(err) {
		t.Errorf("the folder is left: %v", err)
	}
}
