package stage

import (
	"fairway/internal/cache"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"fairway/internal/beneath"
	"fairway/internal/wire"
	"fairway/lib/sched"
)

// slotArea makes an area that has sandboxes and nothing else.
func slotArea(t *testing.T) *Area {
	folder := t.TempDir()
	dir, err := beneath.Open(folder)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = dir.Close() })
	ar := &Area{Sched: sched.Default(), Log: slog.Default(), Folder: folder, Dir: dir, LogDir: t.TempDir(), LogBytes: 1}
	t.Cleanup(ar.Close)
	return ar
}

// reading is an attempt that reads a file and writes another one.
func reading(input, output string) *Execution {
	return &Execution{Assignment: &wire.Assignment{
		Inputs:  []*wire.InputFile{{File: &wire.FileRef{Lfn: input, Version: 1}}},
		Outputs: []*wire.OutputFile{{Lfn: output, Version: 1}},
	}}
}

// staged puts an attempt's files into its sandbox, and returns what is in there.
func staged(t *testing.T, s *Slot, a *Execution) []string {
	for _, lfn := range []string{a.GetInputs()[0].GetFile().GetLfn(), a.GetOutputs()[0].GetLfn()} {
		if err := MakeParents(s.Folder, lfn); err != nil {
			t.Fatal(err)
		}
		writeText(t, filepath.Join(s.Folder, lfn), lfn)
	}
	return contents(t, s)
}

func contents(t *testing.T, s *Slot) (names []string) {
	err := fs.WalkDir(os.DirFS(s.Folder), ".", func(path string, _ fs.DirEntry, err error) error {
		if path != "." {
			names = append(names, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func infoOf(t *testing.T, path string) fs.FileInfo {
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info
}

// The folders of a sandbox stay for an attempt that has files in folders of the same names,
// also where it was not known who would be next, and hold nothing that was there before.
func TestFoldersOfASandboxStayForTheNextAttempt(t *testing.T) {
	for _, known := range []bool{true, false} {
		ar := slotArea(t)
		first, second := reading("in/deep/1", "out/1"), reading("in/2", "out/2")
		s, err := ar.TakeSlot(first)
		if err != nil {
			t.Fatal(err)
		}
		staged(t, s, first)
		in, out := infoOf(t, filepath.Join(s.Folder, "in")), infoOf(t, filepath.Join(s.Folder, "out"))
		if known {
			s = ar.Pass(s, second)
		} else {
			ar.Pass(s, nil)
			s, err = ar.TakeSlot(second)
		}
		if err != nil || s == nil {
			t.Fatal("no sandbox", err)
		}
		if !os.SameFile(in, infoOf(t, filepath.Join(s.Folder, "in"))) ||
			!os.SameFile(out, infoOf(t, filepath.Join(s.Folder, "out"))) {
			t.Errorf("known %v: the folders were made anew", known)
		}
		if got := staged(t, s, second); len(got) != 4 {
			t.Errorf("known %v: the second attempt has %v", known, got)
		}
		ar.Pass(s, nil)
	}
}

// Who has other folders, or none, finds none of an attempt before.
func TestASandboxHasNoFoldersOfAnother(t *testing.T) {
	for name, other := range map[string]*Execution{
		"other folders": reading("a/1", "b/1"),
		"no folders":    reading("in", "out"),
		"one of them":   reading("in/1", "x"),
		"one is an input": {Assignment: &wire.Assignment{
			Inputs: []*wire.InputFile{{File: &wire.FileRef{Lfn: "in/", Version: 1}}},
		}},
	} {
		ar := slotArea(t)
		first := reading("in/1", "out/1")
		s, err := ar.TakeSlot(first)
		if err != nil {
			t.Fatal(err)
		}
		staged(t, s, first)
		ar.Pass(s, nil)
		if s, err = ar.TakeSlot(other); err != nil {
			t.Fatal(err)
		}
		for _, found := range contents(t, s) {
			if name != "one of them" || found != "in" {
				t.Errorf("%s: it finds %s", name, found)
			}
		}
		ar.Pass(s, nil)
	}
}

// An input at the top of a sandbox stays for the next attempt that reads the same file, unless it was
// written to.
func TestInputsStayForTheNextAttempt(t *testing.T) {
	for what, c := range map[string]struct {
		version uint32
		spoil   func(path string) error
		stays   bool
	}{
		"the same file":    {1, func(string) error { return nil }, true},
		"another version":  {2, func(string) error { return nil }, false},
		"one that changed": {1, func(path string) error { return os.WriteFile(path, []byte("longer"), 0o600) }, false},
		"one that is gone": {1, os.Remove, false},
	} {
		ar := slotArea(t)
		next := &Execution{Assignment: &wire.Assignment{
			Inputs: []*wire.InputFile{{File: &wire.FileRef{Lfn: "x", Version: c.version}, Pfn: "p"}},
		}}
		s, err := ar.TakeSlot(next)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(s.Folder, "x")
		writeText(t, path, "text")
		s.staged = []*input{{
			Item: cache.Item{Ref: cache.Ref{LFN: "x", Version: 1}}, pfn: "p", path: "x", before: infoOf(t, path),
		}}
		if err := c.spoil(path); err != nil {
			t.Fatal(err)
		}
		if s = ar.Pass(s, next); s == nil {
			t.Fatal("no sandbox")
		}
		if _, err := os.Stat(path); (err == nil) != c.stays || (s.retained["x"] != nil) != c.stays {
			t.Errorf("%s: it stays %v, and is known %v", what, err == nil, s.retained["x"] != nil)
		}
		ar.Pass(s, nil)
	}
}

// Empty folders below those of an attempt become those of the next one, and none stands where an input that is
// a folder comes.
func TestFoldersBelowBecomeThoseOfTheNextAttempt(t *testing.T) {
	ar := slotArea(t)
	first, second := reading("in/deep/1", "out/1"), reading("in/other/2", "out/1")
	s, err := ar.TakeSlot(first)
	if err != nil {
		t.Fatal(err)
	}
	staged(t, s, first)
	if err := os.Remove(filepath.Join(s.Folder, "in/deep/1")); err != nil { // as a command moves its input
		t.Fatal(err)
	}
	deep, err := os.Open(filepath.Join(s.Folder, "in/deep")) // so that no other folder gets its inode
	if err != nil {
		t.Fatal(err)
	}
	defer deep.Close()
	was, err := deep.Stat()
	if err != nil {
		t.Fatal(err)
	}
	if s = ar.Pass(s, second); s == nil {
		t.Fatal("no sandbox")
	}
	if now, err := os.Stat(filepath.Join(s.Folder, "in/other")); err != nil || !os.SameFile(was, now) {
		t.Error("a folder was made anew:", err, contents(t, s))
	}
	ar.Pass(s, nil)
	folders := foldersFor(&Execution{Assignment: &wire.Assignment{
		Inputs:  []*wire.InputFile{{File: &wire.FileRef{Lfn: "d/"}}, {File: &wire.FileRef{Lfn: "e/x"}}},
		Outputs: []*wire.OutputFile{{Lfn: "d/out"}, {Lfn: "f/g/y"}, {Lfn: "top"}},
	}})
	if len(folders) != 2 || folders["e"] == nil || len(folders["f"]) != 1 || folders["f"][0] != "g" {
		t.Errorf("folders are made for %v", folders)
	}
}

// A sandbox that its command has moved away cannot be kept for a person.
func TestASandboxThatWasMovedAway(t *testing.T) {
	ar := slotArea(t)
	s, err := ar.TakeSlot(reading("x", "y"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(s.Folder, s.Folder+".moved"); err != nil {
		t.Fatal(err)
	}
	if err := s.MoveTo(ar.Dir, "kept"); err == nil {
		t.Error("something else was kept")
	}
	ar.Pass(s, nil)
}

// What a command is told is written once as long as it is the same, whatever was done to it meanwhile.
func TestWhatACommandIsTold(t *testing.T) {
	ar := slotArea(t)
	s, err := ar.TakeSlot(reading("x", "y"))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := (&info{}).readReport(); got != nil || err != nil {
		t.Error("a report where there is none:", got, err)
	}
	path, err := s.KeepScript("one")
	if err != nil {
		t.Fatal(err)
	}
	first, err := os.Open(path) // so that no other file gets its inode
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	was := infoOf(t, path)
	for text, spoil := range map[string]func() error{
		"one": func() error { return nil },
		"two": func() error { return os.Remove(path) },
	} {
		if err := spoil(); err != nil {
			t.Fatal(err)
		}
		if _, err := s.KeepScript("one"); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != "one" {
			t.Errorf("it holds %q, %v", got, err)
		}
		if text == "one" && !os.SameFile(was, infoOf(t, path)) {
			was = infoOf(t, path)
			if fresh, err := s.KeepScript("one"); err != nil || !os.SameFile(was, infoOf(t, fresh)) {
				t.Error("it is written again though it is the same")
			}
		}
	}
	gang, err := s.OpenGang()
	if err != nil {
		t.Fatal(err)
	}
	if err := gang.Write("hosts", []byte("a b")); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(gang.Path("hosts")); err != nil || string(got) != "a b" {
		t.Errorf("of its gang it is told %q, %v", got, err)
	}
	if _, err := (&Execution{Slot: s}).emptyFolder("y"); err != nil {
		t.Error("a folder that is not there:", err)
	}
	writeText(t, filepath.Join(s.Folder, "y"), "no folder")
	if _, err := (&Execution{Slot: s}).emptyFolder("y"); err == nil {
		t.Error("a file is an empty folder")
	}
	ar.Pass(s, nil)
}

// A file that is written to while it is stored is told of.
func TestAFileThatChangesWhileItIsStored(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	writeText(t, path, "text")
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	was := infoOf(t, path)
	if err := unchanged(f, was); err != nil {
		t.Error(err)
	}
	writeText(t, path, "longer text")
	if err := unchanged(f, was); err == nil {
		t.Error("it counts as unchanged")
	}
}
