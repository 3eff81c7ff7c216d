package cli_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"fairway/internal/server/folder"
	"fairway/lib/sched"
	"fairway/test/files"
)

// atTerminal has a job that says that it has begun, and goes on until it may end, and one after it.
const atTerminal = `workflow: terminal
parameters: {here: null}
steps:
  first: {writes: first.txt, command: 'echo begun >"$here/begun"; until [ -e "$here/go" ]; do sleep 0.05; done; echo first >"$out"'}
  second: {reads: first.txt, writes: second.txt, command: 'echo begun >"$here/second"; cp "$in" "$out"'}
`

// terminal is a window with a shell in it, and the workflow in a folder.
type terminal struct {
	t      *testing.T
	dir    string
	window *os.File // the end of the terminal that a window has
	shell  *exec.Cmd
}

// openTerminal opens a window of some columns with an interactive shell.
func openTerminal(t *testing.T, columns uint16, shell ...string) *terminal {
	t.Helper()
	dir := files.Folder(t, map[string]string{"workflow.yaml": atTerminal})
	window, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip("there are no terminals:", err)
	}
	var number int
	if err = unix.IoctlSetPointerInt(int(window.Fd()), unix.TIOCSPTLCK, 0); err == nil {
		number, err = unix.IoctlGetInt(int(window.Fd()), unix.TIOCGPTN)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(int(window.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: columns})
	}
	if err != nil {
		t.Fatal(err)
	}
	screen, err := os.OpenFile("/dev/pts/"+strconv.Itoa(number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = screen.Close() }()
	w := &terminal{t: t, dir: dir, window: window, shell: exec.Command(shell[0], shell[1:]...)}
	w.shell.Dir, w.shell.Env = dir, append(os.Environ(), "HOME="+dir, "TERM=xterm", "ZDOTDIR="+dir)
	w.shell.Stdin, w.shell.Stdout, w.shell.Stderr = screen, screen, screen
	w.shell.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := w.shell.Start(); err != nil {
		t.Fatal(err)
	}
	return w
}

// say types a line.
func (w *terminal) say(line string) {
	w.t.Helper()
	if _, err := io.WriteString(w.window, line+"\n"); err != nil {
		w.t.Fatal(err)
	}
}

// read reads what is printed, until the window is closed or the shell has ended.
func (w *terminal) read() (said func() string) {
	var text strings.Builder
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(&text, w.window)
	}()
	return func() string {
		<-read
		return text.String()
	}
}

// await waits until a file is there.
func (w *terminal) await(name string) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	if _, err := sched.Default().WaitFile(ctx, sched.FileQuery{
		Path: filepath.Join(w.dir, name), Until: func(f sched.FileState) bool { return f.Info != nil && f.Info.Size() > 0 },
	}); err != nil {
		w.t.Fatalf("%s: %v", name, err)
	}
}

// awaitEnd waits until no server runs the workflow.
func (w *terminal) awaitEnd() {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	for {
		running, err := folder.IsRunning(filepath.Join(w.dir, folder.StateFolder))
		if err == nil && !running {
			return
		}
		if err := sched.Default().Sleep(ctx, 20*time.Millisecond); err != nil {
			w.t.Fatal("the server goes on:", err)
		}
	}
}

// inOrder is how a run ended of which the first job ran when it was asked to end.
func (w *terminal) inOrder() {
	w.t.Helper()
	cmd := exec.Command(fairway, "-C", w.dir, "jobs")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "first") {
		w.t.Fatalf("%v\n%s", err, out)
	}
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, " first ") && !strings.Contains(line, " done ") {
			w.t.Errorf("the job that ran did not end in order: %s", line)
		}
	}
	if _, err := os.Stat(filepath.Join(w.dir, "second")); err == nil {
		w.t.Error("a further job began")
	}
}

// shells are those whose windows are closed. Nothing of a person's is read.
var shells = map[string][]string{
	"bash": {"bash", "--norc", "--noprofile", "-i"},
	"zsh":  {"zsh", "-f", "-i"},
}

// A window that is closed tells its programs so twice: the shell does, and the kernel when the shell
// ends. That is one wish: jobs that run may end.
func TestTheWindowIsClosed(t *testing.T) {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP) // what is caught here has its default there
	times := 2
	if os.Getenv("FAIRWAY_SOAK") != "" {
		times = 20
	}
	for name, shell := range shells {
		if _, err := exec.LookPath(shell[0]); err != nil {
			t.Logf("%s is not installed", name)
			continue
		}
		for i := range times {
			t.Run(fmt.Sprint(name, " ", i), func(t *testing.T) {
				t.Parallel()
				w := openTerminal(t, 80, shell...)
				w.say(fairway + " run workflow.yaml --pilots 1 --set here=" + w.dir)
				w.read()
				w.await("begun")
				if err := w.window.Close(); err != nil {
					t.Fatal(err)
				}
				_ = w.shell.Wait()
				files.Write(t, filepath.Join(w.dir, "go"), "")
				w.awaitEnd()
				w.inOrder()
			})
		}
	}
}

// Ctrl-\ ends a program at once and says nothing of its goroutines, whether it runs jobs or reads a file.
func TestQuitSaysNothingOfGoroutines(t *testing.T) {
	for name, command := range map[string]string{
		"run": "run workflow.yaml --pilots 1 --set here=.", "check": "check pipe",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := openTerminal(t, 80, shells["bash"]...)
			pipe := filepath.Join(w.dir, "pipe")
			if err := unix.Mkfifo(pipe, 0o600); err != nil {
				t.Fatal(err)
			}
			w.say(fairway + " " + strings.ReplaceAll(command, "=.", "="+w.dir) + "; echo it ended with $? >code")
			said := w.read()
			if name == "run" {
				w.await("begun")
			} else {
				writer, err := os.OpenFile(pipe, os.O_WRONLY, 0) // until somebody reads
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = writer.Close() }()
			}
			if _, err := w.window.Write([]byte{'\\' & 0x1f}); err != nil {
				t.Fatal(err)
			}
			w.await("code")
			if code := files.Read(t, filepath.Join(w.dir, "code")); code != "it ended with 131\n" {
				t.Error(code)
			}
			w.say("exit")
			_ = w.shell.Wait()
			if all := said(); strings.Contains(all, "goroutine") {
				t.Errorf("%d bytes: %.300s", len(all), all)
			}
		})
	}
}

// On a terminal that is too narrow for anything else, lines go on in the next one.
func TestATerminalOfOneColumn(t *testing.T) {
	w := openTerminal(t, 1, shells["bash"]...)
	files.Write(t, filepath.Join(w.dir, "go"), "")
	said := w.read()
	w.say(fairway + " run workflow.yaml --pilots 1 --set here=" + w.dir + "; " + fairway + " jobs; echo ended >code")
	w.await("code")
	w.say("exit")
	_ = w.shell.Wait()
	if all := said(); !strings.Contains(all, " second ") || strings.Contains(all, "…") {
		t.Errorf("what is printed is cut: %s", all)
	}
}
