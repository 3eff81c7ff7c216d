package beneath

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"fairway/test/files"
)

// bothWays runs a test with openat2 and in single steps.
func bothWays(t *testing.T, test func(t *testing.T)) {
	for _, without := range []bool{false, true} {
		t.Run(map[bool]string{false: "openat2", true: "steps"}[without], func(t *testing.T) {
			noOpenat2 = without
			defer func() { noOpenat2 = false }()
			test(t)
		})
	}
}

// scene is a folder with links that lead within it and out of it, and with a
// mount of another folder where the test may make one.
func scene(t *testing.T) (inside *Folder, path, outside string, mounted bool) {
	t.Helper()
	path, outside = filepath.Join(t.TempDir(), "in"), t.TempDir()
	files.Write(t, filepath.Join(path, "a/b/file"), "mine")
	files.Write(t, filepath.Join(outside, "foreign"), "foreign")
	for link, to := range map[string]string{
		"out":      outside,
		"a/out":    outside,
		"within":   "a",
		"a/b/link": filepath.Join(outside, "foreign"),
	} {
		if err := os.Symlink(to, filepath.Join(path, link)); err != nil {
			t.Fatal(err)
		}
	}
	mount := filepath.Join(path, "mount")
	if err := os.Mkdir(mount, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount(outside, mount, "", unix.MS_BIND, ""); err == nil {
		mounted = true
		t.Cleanup(func() { _ = unix.Unmount(mount, unix.MNT_DETACH) })
	}
	inside, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = inside.Close() })
	return inside, path, outside, mounted
}

func TestNoNameLeadsOut(t *testing.T) {
	bothWays(t, func(t *testing.T) {
		f, _, outside, mounted := scene(t)
		names := []string{"../x", "a/../../x", "/etc/passwd", "", "out/foreign", "a/out/foreign", "within/b/file", "a/b/link"}
		if mounted {
			names = append(names, "mount/foreign")
		}
		for _, name := range names {
			if file, err := f.Open(name); !errors.Is(err, ErrOutside) {
				t.Errorf("open %q: %v, %v", name, file, err)
			}
			if name == "a/b/link" {
				continue // the link itself may be removed
			}
			for doing, err := range map[string]error{"remove": f.Remove(name), "remove all": f.RemoveAll(name)} {
				if !errors.Is(err, ErrOutside) {
					t.Errorf("%s %q: %v", doing, name, err)
				}
			}
		}
		if _, _, err := f.Make("out/new/x", func(*Folder) error { return nil }); !errors.Is(err, ErrOutside) {
			t.Errorf("made a folder through a link: %v", err)
		}
		if entries, err := os.ReadDir(outside); err != nil || len(entries) != 1 {
			t.Errorf("outside there are %v, %v", entries, err)
		}
	})
}

func TestWhatIsBeneathIsReached(t *testing.T) {
	bothWays(t, func(t *testing.T) {
		f, path, _, mounted := scene(t)
		if file, err := f.Open("a/b/file"); err != nil {
			t.Error(err)
		} else if text, err := os.ReadFile(file.Name()); string(text) != "mine" || file.Close() != nil {
			t.Errorf("read %q, %v", text, err)
		}
		made := 0
		parent, element, err := f.Make("c/d/e/new", func(*Folder) error { made++; return nil })
		if err != nil || element != "new" || made != 3 {
			t.Fatalf("%d folders made for %q: %v", made, element, err)
		}
		files.Write(t, parent.Path(element), "new")
		if err := errors.Join(parent.Sync(), parent.Close()); err != nil {
			t.Error(err)
		}
		var seen []string
		if err := f.Walk(func(name string, _ fs.FileInfo) error { seen = append(seen, name); return nil }); err != nil {
			t.Error(err)
		}
		want := []string{"a/b/file", "a/b/link", "a/out", "c/d/e/new", "out", "within"}
		if mounted {
			want = append(want, "mount")
		}
		slices.Sort(seen)
		if slices.Sort(want); !slices.Equal(seen, want) {
			t.Errorf("walked over %q, want %q", seen, want)
		}
		if err := f.RemoveAll("c"); err != nil {
			t.Error(err)
		}
		if _, err := os.Lstat(filepath.Join(path, "c")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("not removed: %v", err)
		}
	})
}

// What a link or a mount leads to stays whole when a folder is removed that it
// is in.
func TestRemovalKeepsWhatIsOutside(t *testing.T) {
	bothWays(t, func(t *testing.T) {
		f, path, outside, mounted := scene(t)
		above, err := Open(filepath.Dir(path))
		if err != nil {
			t.Fatal(err)
		}
		defer above.Close()
		_ = f
		err = above.RemoveAll("in")
		if mounted != errors.Is(err, ErrOutside) {
			t.Errorf("with a mount in it (%v): %v", mounted, err)
		}
		if _, err := os.Stat(filepath.Join(outside, "foreign")); err != nil {
			t.Error(err)
		}
		if _, err := os.Lstat(filepath.Join(path, "a")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("what is beneath was not removed: %v", err)
		}
	})
}

func TestTheFolderIsTheOneThatWasOpened(t *testing.T) {
	f, path, outside, _ := scene(t)
	if err := errors.Join(os.Rename(path, path+".moved"), os.Symlink(outside, path)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(path+".moved/mount", unix.MNT_DETACH) })
	if _, err := f.Lstat("a/b/file"); err != nil {
		t.Error(err)
	}
	if _, err := f.Lstat("foreign"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is the folder that its path leads to now: %v", err)
	}
}

// A pilot asks for names without a slash a dozen times for each job: opening the
// folder once more each time was a twelfth of what a short job costs.
func TestNamesOfOneElementOpenNothing(t *testing.T) {
	f, path, _, _ := scene(t)
	var opened error
	is := false
	err := withoutDescriptors(t, func() error {
		_, opened = f.Open("a/b/file")
		_, err := f.Status("a")
		err = errors.Join(err, f.Mkdir("new", 0o755), f.RemoveFolder("new"))
		is = f.Is(path)
		return err
	})
	if !errors.Is(opened, unix.EMFILE) || err != nil || !is {
		t.Errorf("without a free descriptor: open %v, others %v, is the same %v", opened, err, is)
	}
}

// withoutDescriptors calls do while none can be opened.
func withoutDescriptors(t *testing.T, do func() error) error {
	t.Helper()
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	none := unix.Rlimit{Cur: 0, Max: limit.Max}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &none); err != nil {
		t.Fatal(err)
	}
	err := do()
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	return err
}

func TestNamesInMessages(t *testing.T) {
	f, path, _, _ := scene(t)
	a, err := f.Sub("a")
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	b, err := a.Sub("b")
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if got := b.Name("file"); got != filepath.Join(path, "a/b/file") {
		t.Errorf("got %s", got)
	}
	if _, err := b.Status("none"); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), path+"/a/b/none") {
		t.Errorf("got %v", err)
	}
}

// Whoever works on many files of one folder opens it once. What its name leads to meanwhile is not
// followed, and afterwards the name is looked at again.
func TestKeptParentOpensNothing(t *testing.T) {
	bothWays(t, func(t *testing.T) {
		f, path, outside, _ := scene(t)
		end := f.KeepParent()
		if _, err := f.Status("a/b/file"); err != nil {
			t.Fatal(err)
		}
		if err := withoutDescriptors(t, func() error {
			_, err := f.Status("a/b/link")
			return err
		}); err != nil {
			t.Errorf("the parent was opened again: %v", err)
		}
		parent, _, err := f.Parent("a/b/new")
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(os.Rename(filepath.Join(path, "a"), filepath.Join(path, "moved")),
			os.Symlink(outside, filepath.Join(path, "a"))); err != nil {
			t.Fatal(err)
		}
		if _, err := f.Status("a/b/file"); err != nil {
			t.Errorf("it is not the folder that was opened: %v", err)
		}
		if end(); !errors.Is(second(f.Status("a/b/file")), ErrOutside) {
			t.Error("the link was followed, or not looked at")
		}
		if _, err := parent.Status("file"); err != nil {
			t.Errorf("what was handed out was closed: %v", err)
		}
		if parent.Close() != nil || !errors.Is(parent.Close(), fs.ErrClosed) {
			t.Error("it is not closed once")
		}
		if _, err := parent.Status("file"); err == nil {
			t.Error("a closed folder was used")
		}
	})
}

func second[T any](_ T, err error) error { return err }

func TestRemovedParentIsNotKept(t *testing.T) {
	f, path, _, _ := scene(t)
	defer f.KeepParent()()
	if _, err := f.Status("a/b/file"); err != nil {
		t.Fatal(err)
	}
	if err := f.RemoveAll("a"); err != nil {
		t.Fatal(err)
	}
	files.Write(t, filepath.Join(path, "a/b/file"), "new")
	if _, err := f.Status("a/b/file"); err != nil {
		t.Errorf("the removed folder was looked at: %v", err)
	}
}

func TestKeptParentThatIsNoFolder(t *testing.T) {
	bothWays(t, func(t *testing.T) {
		f, _, _, _ := scene(t)
		defer f.KeepParent()()
		if kind := new(*KindError); !errors.As(second(f.Status("a/b/file/x")), kind) {
			t.Errorf("a file is taken for a folder: %v", *kind)
		}
		if err := second(f.Status("a/out/foreign")); !errors.Is(err, ErrOutside) {
			t.Errorf("a link is taken for a folder: %v", err)
		}
	})
}

func TestReplaceTakesThePlaceOfAFile(t *testing.T) {
	f, path, outside, _ := scene(t)
	files.Write(t, filepath.Join(path, "new"), "new")
	if err := f.Replace("new", f, "out"); err != nil { // the link goes, and not what it leads to
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(path, "out")); err != nil || string(text) != "new" {
		t.Errorf("it holds %q: %v", text, err)
	}
	if _, err := os.Stat(filepath.Join(outside, "foreign")); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"a/b", "../x", ".", ""} {
		if err := f.Replace("out", f, name); !errors.Is(err, ErrOutside) {
			t.Errorf("to %q: %v", name, err)
		}
	}
}
