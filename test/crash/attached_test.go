package crash

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"fairway/lib/sched"
	"fairway/lib/seed"
)

// openUntilEnd opens a run of a temporary folder that ends with another program: one that holds the
// other end of the standard input of the server, and nothing else.
func openUntilEnd(t *testing.T, folder string) (program, server *exec.Cmd) {
	t.Helper()
	held, holds, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	server = exec.Command(fairway, "-C", folder, "open", "--pilots", "1", "--until-stdin-ends", "--temporary")
	server.Stdin, server.SysProcAttr = held, &syscall.SysProcAttr{Setsid: true}
	program = exec.Command("sleep", "1000")
	program.Stdout = holds
	for _, c := range []*exec.Cmd{server, program} {
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	}
	_ = held.Close()
	_ = holds.Close()
	return program, server
}

// waitNone waits until no process is left that was started for a folder.
func waitNone(t *testing.T, folder string) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		left := processesOf(folder)
		if len(left) == 0 {
			return
		}
		for _, pid := range left {
			fd, err := unix.PidfdOpen(pid, 0)
			if err != nil {
				continue // it has ended
			}
			n, _ := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(time.Until(deadline).Milliseconds()))
			_ = unix.Close(fd)
			if n == 0 {
				command, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
				t.Fatalf("process %d goes on: %q", pid, command)
			}
		}
	}
}

// processesOf are the processes in whose words or variables a folder is named. Those that have ended,
// and were not waited for, have neither.
func processesOf(folder string) (pids []int) {
	entries, _ := filepath.Glob("/proc/[0-9]*")
	for _, entry := range entries {
		words, _ := os.ReadFile(entry + "/cmdline")
		variables, _ := os.ReadFile(entry + "/environ")
		var pid int
		if _, err := fmt.Sscanf(entry, "/proc/%d", &pid); err == nil && pid != os.Getpid() &&
			(bytes.Contains(words, []byte(folder)) || bytes.Contains(variables, []byte(folder))) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// What was opened for a program ends with it, however it ends and whenever: server, pilots, jobs and
// what they have begun; and the folder goes.
func TestWhatAProgramHasOpenedEndsWithIt(t *testing.T) {
	random := seed.Source(t)
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL, syscall.SIGHUP, syscall.SIGINT} {
		for _, busy := range []bool{false, true} {
			moment := time.Duration(random.Int64N(int64(longest)))
			t.Run(fmt.Sprintf("%v, busy %v", signal, busy), func(t *testing.T) {
				t.Parallel()
				folder := filepath.Join(t.TempDir(), "run")
				program, server := openUntilEnd(t, folder)
				if busy {
					occupy(t, folder, signal == syscall.SIGKILL)
				} else {
					<-time.After(moment)
				}
				if err := program.Process.Signal(signal); err != nil {
					t.Fatal(err)
				}
				_ = program.Wait()
				_ = server.Wait()
				waitNone(t, folder)
				if _, err := os.Stat(folder); !os.IsNotExist(err) {
					t.Errorf("the folder is left: %v", err)
				}
			})
		}
	}
}

// The pilots of a server that was killed end with the program, too.
func TestPilotsEndWithTheProgramOfAKilledServer(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "run")
	program, server := openUntilEnd(t, folder)
	occupy(t, folder, false)
	_ = server.Process.Kill()
	_ = server.Wait()
	_ = program.Process.Kill()
	_ = program.Wait()
	waitNone(t, folder)
}

// occupy gives a run a job that begins others, and waits until it has begun. A stubborn one has to be
// killed.
func occupy(t *testing.T, folder string, stubborn bool) {
	t.Helper()
	socket := filepath.Join(folder, ".fairway/socket")
	await(t, socket)
	begun := filepath.Join(folder, "begun")
	trap := ""
	if stubborn {
		trap = `trap "" TERM; `
	}
	job := exec.Command(fairway, "-C", folder, "exec", "--", trap+fmt.Sprintf(
		`setsid sleep 1001 & (sleep 1002 &) ; touch %q; wait`, begun))
	if err := job.Start(); err != nil {
		t.Fatal(err)
	}
	await(t, begun)
	_ = job.Process.Kill() // which would hold the run
	_ = job.Wait()
}

func await(t *testing.T, path string) {
	t.Helper()
	if _, err := sched.Default().WaitFile(t.Context(), sched.Appears(path)); err != nil {
		t.Fatal(err)
	}
}

// Nobody's folder is taken for a temporary one.
func TestATemporaryFolderIsEmptyAtFirst(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	mine := filepath.Join(folder, "mine")
	if err := os.WriteFile(mine, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(fairway, "-C", folder, "open", "--temporary").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "there is something in") {
		t.Errorf("it was opened: %v\n%s", err, out)
	}
	if _, err := os.Stat(mine); err != nil {
		t.Error(err)
	}
}
