package diskfull

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"fairway/lib/sched"
	"fairway/test/program"
)

// fairway is the path of the binary under test.
var fairway string

func TestMain(m *testing.M) { program.Main(m, &fairway) }

// text is a workflow that writes parts of 100 kB, and joins them.
const text = `
workflow: full
inputs:
  numbers: {files: "in/{n}.txt", as: "numbers/{n}.txt"}
steps:
  part:
    each: numbers/{n}.txt
    writes: parts/{n}.dat
    retry: {attempts: 2, backoff: 1ms}
    command: head -c 100000 /dev/zero >"$out"
  sum:
    merge: parts/{n}.dat
    writes: sum.txt
    publish: true
    command: cat $in | cksum >"$out"
  big:
    merge: parts/{n}.dat
    writes: big.dat
    command: cat $in >"$out"
`

const (
	parts    = 3
	partSize = 100_000
)

// tooSmall, in bytes, has no room for what the workflow writes; plenty has.
const (
	tooSmall = 128 << 10
	plenty   = 64 << 20
)

// workspace is a folder with the workflow.
type workspace struct {
	*testing.T
	folder string
}

func newWorkspace(t *testing.T) *workspace {
	t.Helper()
	w := &workspace{t, t.TempDir()}
	w.write("workflow.yaml", text)
	for n := range parts {
		w.write(fmt.Sprintf("in/%d.txt", n), "")
	}
	return w
}

func (w *workspace) path(name string) string { return filepath.Join(w.folder, name) }

func (w *workspace) write(name, text string) {
	w.Helper()
	path := w.path(name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		w.Fatal(err)
	}
}

// disk mounts a file system of a size in bytes, as a folder of the workspace.
func (w *workspace) disk(name string, size int64) {
	w.Helper()
	path := w.path(name)
	if err := os.MkdirAll(path, 0o755); err != nil {
		w.Fatal(err)
	}
	err := unix.Mount("tmpfs", path, "tmpfs", 0, fmt.Sprintf("size=%d,mode=0755", size))
	if errors.Is(err, unix.EPERM) {
		w.Skip("mounting a small disk is not allowed here; run this test as root")
	}
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() {
		if err := unix.Unmount(path, unix.MNT_DETACH); err != nil {
			w.Error(err)
		}
	})
}

// makeRoom makes a disk larger.
func (w *workspace) makeRoom(name string) {
	w.Helper()
	if err := unix.Mount("tmpfs", w.path(name), "tmpfs", unix.MS_REMOUNT, fmt.Sprintf("size=%d", plenty)); err != nil {
		w.Fatal(err)
	}
}

// command is a start of the program.
func (w *workspace) command(arguments ...string) *exec.Cmd {
	return exec.Command(fairway, append([]string{"-C", w.folder}, arguments...)...)
}

// run runs the workflow to its end, and returns whether it succeeded and what it
// said.
func (w *workspace) run() (bool, string) {
	w.Helper()
	c := w.command("run", "--pilots", "2")
	out, err := c.CombinedOutput()
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		w.Fatal(err)
	}
	return err == nil, string(out)
}

func (w *workspace) mustSucceed() string {
	w.Helper()
	ok, said := w.run()
	if !ok {
		w.Fatalf("the run failed:\n%s", said)
	}
	w.checkResults()
	return said
}

// mustFail runs the workflow, which has to end with a message that has each of
// some texts.
func (w *workspace) mustFail(texts ...string) {
	w.Helper()
	ok, said := w.run()
	if ok {
		w.Errorf("the run succeeded:\n%s", said)
	}
	for _, text := range texts {
		if !strings.Contains(said, text) {
			w.Errorf("the run did not say %q:\n%s", text, said)
		}
	}
	w.checkComplete()
}

// checkResults: all is there.
func (w *workspace) checkResults() {
	w.Helper()
	w.checkComplete()
	for _, name := range []string{"results/sum.txt", "results/big.dat"} {
		if _, err := os.Stat(w.path(name)); err != nil {
			w.Error(err)
		}
	}
}

// checkComplete: whatever is stored, cached or published has its full size.
func (w *workspace) checkComplete() {
	w.Helper()
	for _, name := range []string{"results", ".fairway/storage", ".fairway/cache"} {
		w.checkFolder(name)
	}
}

func (w *workspace) checkFolder(name string) {
	w.Helper()
	err := filepath.WalkDir(w.path(name)+"/", func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err == nil && !complete(entry.Name(), info.Size()) {
			w.Errorf("%s is there with %d bytes", path, info.Size())
		}
		return err
	})
	if err != nil {
		w.Error(err)
	}
}

// complete reports whether a file that a person or a job may see has the size that
// its job gives it.
func complete(name string, size int64) bool {
	switch {
	case strings.Contains(name, "big.dat"):
		return size == parts*partSize
	case strings.Contains(name, ".dat"):
		return size == partSize
	}
	return true
}

// runUntil starts the workflow, does something as soon as it says a text, and
// then waits for its end.
func (w *workspace) runUntil(text string, do func()) (bool, string) {
	w.Helper()
	c := w.command("run", "--pilots", "2")
	reader, writer, err := os.Pipe()
	if err != nil {
		w.Fatal(err)
	}
	defer reader.Close()
	c.Stdout, c.Stderr = writer, writer
	err = c.Start()
	_ = writer.Close()
	if err != nil {
		w.Fatal(err)
	}
	var said strings.Builder
	for lines := bufio.NewScanner(reader); lines.Scan(); {
		fmt.Fprintln(&said, lines.Text())
		if do != nil && strings.Contains(lines.Text(), text) {
			do()
			do = nil
		}
	}
	err = sched.Default().WaitCmd(context.Background(), c)
	if do != nil {
		w.Errorf("the run never said %q:\n%s", text, said.String())
	}
	return err == nil, said.String()
}
