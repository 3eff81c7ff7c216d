package stage

import (
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
