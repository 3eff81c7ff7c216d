package server

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"fairway/internal/wire"
	"fairway/test/files"
)

// What others put into a watched folder must not end a run of days, nor be passed over
// in silence.
func TestWhatIsNoFileInAWatchedFolderIsToldAndLeftAlone(t *testing.T) {
	root := files.Folder(t, map[string]string{"in/a.txt": "a", "in/folder.txt/x": "", "in/sub/b.txt": "b"})
	odd := func(names ...string) string { return filepath.Join(append([]string{root, "in"}, names...)...) }
	put := func() error {
		socket, err := net.Listen("unix", odd("socket.txt"))
		if err != nil {
			return err
		}
		t.Cleanup(func() { _ = socket.Close() })
		return errors.Join(
			unix.Mkfifo(odd("pipe.txt"), 0o600),
			os.Symlink("nowhere", odd("to-come.txt")),
			os.Symlink("round", odd("round")),
			os.WriteFile(odd("caf\xe9.txt"), nil, 0o600),
		)
	}
	workflow := strings.Replace(watched, `"in/{name}.txt", as`, `["in/{name}.txt", "in/*/{name}.txt"], as`, 1)
	upper := func(a *wire.Assignment, read func(string) string) (map[string]string, int) {
		if a.GetName() == "upper/a" { // so the rest comes while the run goes on
			if err := put(); err != nil {
				t.Error(err)
			}
			files.Write(t, odd("c.txt"), "c")
		}
		if a.GetName() == "upper/c" { // which was seen with the rest: this comes last
			files.Write(t, odd("sub", "a.txt"), "other")
			files.Write(t, filepath.Join(root, "closed"), "")
		}
		return map[string]string{a.GetOutputs()[0].GetLfn(): strings.ToUpper(read(a.GetInputs()[0].GetFile().GetLfn()))}, 0
	}
	r := newRun(t, root, workflow, upper)
	outcome := r.mustSucceed()
	if got := r.result("upper/a.txt") + r.result("upper/b.txt") + r.result("upper/c.txt"); got != "ABC" {
		t.Errorf("results %q", got)
	}
	for _, want := range []string{
		"pipe.txt is a named pipe", "socket.txt is a socket", "folder.txt is a folder",
		"round cannot be read: too many levels", "which is not UTF-8",
	} {
		told := func(note string) bool {
			return strings.HasPrefix(note, "the input texts leaves this alone: ") && strings.Contains(note, want)
		}
		if !slices.ContainsFunc(outcome.Notes, told) {
			t.Errorf("%q is not told in %q", want, outcome.Notes)
		}
	}
	if more := "the input texts leaves more alone; `fairway check` names all of it"; len(outcome.Notes) != 6 ||
		outcome.Notes[5] != more {
		t.Errorf("told were %q", outcome.Notes)
	}

	// A run of the same finds nothing new in it.
	r = newRun(t, root, workflow, upper)
	r.mustSucceed()
	if r.pilots.total() != 0 {
		t.Errorf("executed %v", r.pilots.executed)
	}
}

// Of two files that would have one name the one that was fed first stays the input, in
// later runs too, whichever stands first in the folder.
func TestFileThatWasFedKeepsItsName(t *testing.T) {
	root := files.Folder(t, map[string]string{"in/b/x.txt": "b"})
	workflow := strings.Replace(watched, `"in/{name}.txt", as`, `"in/*/{name}.txt", as`, 1)
	upper := func(a *wire.Assignment, read func(string) string) (map[string]string, int) {
		files.Write(t, filepath.Join(root, "in/a/x.txt"), "a")
		before := time.Now().Add(-time.Hour)
		if err := os.Chtimes(filepath.Join(root, "in/a/x.txt"), before, before); err != nil {
			t.Error(err)
		}
		files.Write(t, filepath.Join(root, "closed"), "")
		return map[string]string{a.GetOutputs()[0].GetLfn(): strings.ToUpper(read(a.GetInputs()[0].GetFile().GetLfn()))}, 0
	}
	r := newRun(t, root, workflow, upper)
	if notes := r.mustSucceed().Notes; len(notes) != 1 || !strings.Contains(notes[0], "would both be called in/x.txt") {
		t.Errorf("told were %q", notes)
	}
	r = newRun(t, root, workflow, upper)
	r.mustSucceed()
	if got := r.result("upper/x.txt"); got != "B" || r.pilots.total() != 0 {
		t.Errorf("the result is %q; executed %v", got, r.pilots.executed)
	}
}

// A named pipe where data or a list of data is meant would be waited for without an end.
func TestNamedPipesAreNotOpened(t *testing.T) {
	for name, workflow := range map[string]string{
		"a line of a list": listedFiles,
		"a list":           strings.Replace(listedFiles, "url_list: list", "url_list: pipe", 1),
		"a catalogue":      strings.Replace(listedFiles, "url_list: list", "url_list: list, catalog: pipe", 1),
		"an input":         strings.Replace(listedFiles, `url_list: list, match: "{x}", as: "in/{x}", close: file closed`, `files: "pi{x}", as: "in/{x}"`, 1),
	} {
		t.Run(name, func(t *testing.T) {
			root := files.Folder(t, map[string]string{"list": "pipe\n", "closed": ""})
			if err := unix.Mkfifo(filepath.Join(root, "pipe"), 0o600); err != nil {
				t.Fatal(err)
			}
			s, err := Open(t.Context(), newRun(t, root, workflow, copyListed).config)
			told := ""
			if err != nil {
				told = err.Error()
			} else {
				outcome, err := s.Run(t.Context())
				told = strings.Join(outcome.Problems, "\n")
				if err != nil {
					t.Error(err)
				}
			}
			if !strings.Contains(told, "pipe is a named pipe, not a regular file") {
				t.Errorf("told was %q", told)
			}
		})
	}
}
