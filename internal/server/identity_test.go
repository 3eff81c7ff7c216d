package server

import (
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

	"fairway/internal/server/folder"
	"fairway/internal/wire"
	"fairway/test/files"
)

func sameFiles(t *testing.T, what string, before, after map[string]string) {
	t.Helper()
	for name, text := range before {
		if now, ok := after[name]; !ok || now != text {
			t.Errorf("%s: %s was %q and is %q (%v)", what, name, text, now, ok)
		}
	}
	if len(after) != len(before) {
		t.Errorf("%s: %d files, before %d", what, len(after), len(before))
	}
}

func foldersIn(t *testing.T, root string) folder.Layout {
	t.Helper()
	folders, err := folder.Of(root)
	if err != nil || folders.ID == "" {
		t.Fatalf("the state of %s is %+v, %v", root, folders, err)
	}
	return folders
}

// mustRun runs two steps in a folder and wants so many executions.
func mustRun(t *testing.T, root string, executions int) {
	t.Helper()
	r := newRun(t, root, twoSteps, twoStepsScript)
	r.mustSucceed()
	if r.pilots.total() != executions {
		t.Errorf("in %s: executed %v, want %d", root, r.pilots.executed, executions)
	}
	if got := r.result("joined.txt"); got != "ONE TWO THREE " {
		t.Errorf("in %s: the result is %q", root, got)
	}
}

// The storage of a run is not swept by another path to the same folder.
func TestEveryPathToAFolderIsTheSameFolder(t *testing.T) {
	parent := t.TempDir()
	root, link, bound, moved := filepath.Join(parent, "root"), filepath.Join(parent, "link"),
		filepath.Join(parent, "bound"), filepath.Join(parent, "moved")
	for name, text := range threeTexts {
		files.Write(t, filepath.Join(root, name), text)
	}
	if err := errors.Join(os.Symlink(root, link), os.Mkdir(bound, 0o755)); err != nil {
		t.Fatal(err)
	}
	mustRun(t, link, 4)
	stored := files.Below(t, foldersIn(t, root).Storage)
	if len(stored) != 4 {
		t.Fatalf("stored are %v", stored)
	}
	mustRun(t, root, 0)
	sameFiles(t, "by its own path", stored, files.Below(t, foldersIn(t, root).Storage))
	if unix.Mount(root, bound, "", unix.MS_BIND, "") == nil {
		mustRun(t, bound, 0)
		sameFiles(t, "through a mount", stored, files.Below(t, foldersIn(t, root).Storage))
		if err := unix.Unmount(bound, 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Rename(root, moved); err != nil {
		t.Fatal(err)
	}
	mustRun(t, moved, 0)
	sameFiles(t, "moved", stored, files.Below(t, foldersIn(t, moved).Storage))
}

// A run that was cut short goes on in a folder that was moved, or in a copy of
// it, which does not touch the original.
func TestRunsGoOnInMovedAndCopiedFolders(t *testing.T) {
	t.Parallel()
	for _, shared := range []bool{false, true} {
		parent := t.TempDir()
		original, moved, copied := filepath.Join(parent, "original"), filepath.Join(parent, "moved"),
			filepath.Join(parent, "copied")
		for name, text := range threeTexts {
			files.Write(t, filepath.Join(original, name), text)
		}
		if shared {
			files.Elsewhere(t, filepath.Join(original, folder.StateFolder, folder.StorageName))
		}
		failing := newRun(t, original, twoSteps, func(a *wire.Assignment, read func(string) string) (map[string]string, int) {
			if a.GetStep() == "join" {
				return nil, 1
			}
			return twoStepsScript(a, read)
		})
		if outcome := failing.run(); outcome.Succeeded {
			t.Fatal("it succeeded")
		}
		if err := os.Rename(original, moved); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command("cp", "-a", moved, copied).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		mine := foldersIn(t, moved)
		stored := files.Below(t, mine.Storage)
		mustRun(t, copied, 1)
		sameFiles(t, "the original after the copy was run", stored, files.Below(t, mine.Storage))
		if its := foldersIn(t, copied); its.ID == mine.ID {
			t.Error("the copy has the identity of the original")
		}
		mustRun(t, moved, 1)
		theirs := files.Below(t, foldersIn(t, copied).Storage)
		mustRun(t, moved, 0)
		sameFiles(t, "the copy after the original was run", theirs, files.Below(t, foldersIn(t, copied).Storage))
		mustRun(t, copied, 0)
	}
}

// Two workflows, and people, may keep files in one folder that the storage is a
// link to.
func TestSharedStorageKeepsWhatOthersStored(t *testing.T) {
	roots := []string{files.Folder(t, threeTexts), files.Folder(t, threeTexts)}
	shared := files.Elsewhere(t, filepath.Join(roots[0], folder.StateFolder, folder.StorageName))
	if err := errors.Join(os.Mkdir(filepath.Join(roots[1], folder.StateFolder), 0o755),
		os.Symlink(shared, filepath.Join(roots[1], folder.StateFolder, folder.StorageName))); err != nil {
		t.Fatal(err)
	}
	files.Write(t, filepath.Join(shared, "notes.txt"), "mine")
	files.Write(t, filepath.Join(shared, "joined.txt.v1.a1"), "mine too")
	mustRun(t, roots[0], 4)
	first := files.Below(t, shared)
	mustRun(t, roots[1], 4)
	files.Write(t, filepath.Join(roots[1], "in/b.txt"), "zwei ")
	newRun(t, roots[1], twoSteps, twoStepsScript).mustSucceed()
	now := files.Below(t, shared)
	for name, text := range first {
		if now[name] != text {
			t.Errorf("%s is %q, was %q", name, now[name], text)
		}
	}
	mustRun(t, roots[0], 0)
}

func TestForeignFilesInTheStorageStay(t *testing.T) {
	root := files.Folder(t, threeTexts)
	mustRun(t, root, 4)
	own := foldersIn(t, root).Storage
	files.Write(t, filepath.Join(own, "notes.txt"), "mine")
	left := filepath.Join(own, fmt.Sprintf("joined.txt.v9.a%d", 1<<32|9))
	files.Write(t, left, "left by an attempt")
	files.Write(t, filepath.Join(own, "joined.txt.v9.a9"), "numbered by a person")
	outside := t.TempDir()
	files.Write(t, filepath.Join(outside, "joined.txt.v1.a1"), "foreign")
	if err := os.Symlink(outside, filepath.Join(own, "linked")); err != nil {
		t.Fatal(err)
	}
	files.Write(t, filepath.Join(root, "in/b.txt"), "zwei ")
	newRun(t, root, twoSteps, twoStepsScript).mustSucceed()
	if files.Read(t, filepath.Join(own, "notes.txt"))+files.Read(t, filepath.Join(outside, "joined.txt.v1.a1"))+
		files.Read(t, filepath.Join(own, "joined.txt.v9.a9")) != "mineforeignnumbered by a person" {
		t.Error("foreign files changed")
	}
	if _, err := os.Stat(left); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what an attempt left is still there: %v", err)
	}
}

func TestFoldersThatAreNotOursAreRefused(t *testing.T) {
	for name, want := range map[string]string{
		"precious.txt":   "holds what Fairway has not put there (precious.txt)",
		folder.StoreFile: "earlier version of Fairway",
	} {
		root := files.Folder(t, threeTexts)
		path := filepath.Join(root, folder.StateFolder, name)
		files.Write(t, path, "mine")
		r := newRun(t, root, twoSteps, twoStepsScript)
		if _, err := Open(context.Background(), r.config); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
		if files := files.Below(t, filepath.Join(root, folder.StateFolder)); len(files) != 1 || files[name] != "mine" {
			t.Errorf("%s: there are now %v", name, files)
		}
	}
}

// Other people of the machine can neither look into the state nor hold its locks.
func TestStateIsForItsUserOnly(t *testing.T) {
	before := unix.Umask(0)
	defer unix.Umask(before)
	root := files.Folder(t, threeTexts)
	stored := files.Elsewhere(t, filepath.Join(root, folder.StateFolder, folder.StorageName))
	if err := os.Chmod(filepath.Join(root, folder.StateFolder), 0o777); err != nil {
		t.Fatal(err)
	}
	mustRun(t, root, 4)
	for _, path := range []string{filepath.Join(root, folder.StateFolder), filepath.Join(stored, foldersIn(t, root).ID)} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s has mode %v, %v", path, info.Mode(), err)
		}
	}
}
