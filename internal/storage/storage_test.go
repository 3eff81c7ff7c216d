package storage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"fairway/internal/disk"
	"fairway/internal/fault"
	"fairway/test/files"
)

// tmpfs is a file system of its own, of the given size.
func tmpfs(t *testing.T, size int) string {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("mounting a tmpfs needs root")
	}
	folder := t.TempDir()
	if err := syscall.Mount("fairway-test", folder, "tmpfs", 0, "size="+strconv.Itoa(size)); err != nil {
		t.Skip("no tmpfs here:", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(folder, 0); err != nil {
			t.Error(err)
		}
	})
	return folder
}

func entries(t *testing.T, folder string) (names []string) {
	t.Helper()
	found, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range found {
		names = append(names, e.Name())
	}
	return names
}

func TestPath(t *testing.T) {
	for pfn, want := range map[string]string{
		"/a/b": "/a/b", "file:/a/b": "/a/b", "file:///a/b": "/a/b", "FILE:/a:b": "/a:b", "/a:b/c": "/a:b/c",
		"file:///a%20b": "/a%20b",
		"http://h/a":    "", "a/b": "", "file:a": "", "file://host/a": "",
	} {
		got, err := Path(pfn)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%s: %q, %v", pfn, got, err)
		}
	}
}

// Both when a link can be made and when the contents must be copied.
func TestPutGet(t *testing.T) {
	for _, place := range []string{"same file system", "another"} {
		t.Run(place, func(t *testing.T) {
			here, there := t.TempDir(), ""
			if place == "another" {
				there = tmpfs(t, 1<<20)
			} else {
				there = t.TempDir()
			}
			ctx, e := context.Background(), Local(Roots{})
			pfn := "file:" + there + "/deep/er/out.v1.a7"
			if err := e.Put(ctx, files.Write(t, here+"/out", "contents"), pfn); err != nil {
				t.Fatal(err)
			}
			size, err := e.Get(ctx, pfn, here+"/back")
			if err != nil || size != 8 || files.Read(t, here+"/back") != "contents" {
				t.Fatal(size, err)
			}
			if info, err := e.Stat(ctx, pfn); err != nil || info.Size != 8 {
				t.Fatal(info, err)
			}
			r, err := e.Open(ctx, pfn)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := io.ReadAll(r); err != nil || string(got) != "contents" || r.Close() != nil {
				t.Fatal(string(got), err)
			}
			for range 2 {
				if err := e.Remove(ctx, pfn); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := e.Stat(ctx, pfn); !errors.Is(err, fs.ErrNotExist) {
				t.Fatal(err)
			}
		})
	}
}

// Copies are read-only, as what links share is, and programs stay programs.
func TestModeOfCopies(t *testing.T) {
	here, there := t.TempDir(), tmpfs(t, 1<<20)
	for mode, want := range map[fs.FileMode]fs.FileMode{0o755: 0o555, 0o640: 0o440, 0o004: 0o404} {
		source, target := files.Write(t, there+"/source", "x"), here+"/target"
		if err := os.Chmod(source, mode); err != nil {
			t.Fatal(err)
		}
		if _, err := Local(Roots{}).Get(context.Background(), source, target); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(target)
		if err != nil || info.Mode() != want {
			t.Errorf("%o became %v, %v", mode, info.Mode(), err)
		}
		if err := errors.Join(os.Remove(source), os.Remove(target)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestPutAgain(t *testing.T) {
	ctx, here, e := context.Background(), t.TempDir(), File{}
	pfn := here + "/se/x"
	for _, name := range []string{"a", "b"} {
		if err := e.Put(ctx, files.Write(t, here+"/"+name, "same"), pfn); err != nil {
			t.Fatal(err)
		}
	}
	for _, other := range []string{"also", "longer"} {
		if err := e.Put(ctx, files.Write(t, here+"/"+other, other), pfn); !errors.Is(err, fs.ErrExist) {
			t.Fatal(err)
		}
	}
	if got := files.Read(t, pfn); got != "same" {
		t.Fatal("overwritten:", got)
	}
	if _, err := e.Get(ctx, pfn, here+"/also"); !errors.Is(err, fs.ErrExist) {
		t.Fatal(err)
	}
}

// Bringing the original to disk costs more than copying a small file, and a copy does not
// need it. Files of /proc cannot be brought to disk.
func TestOriginalOfACopyIsNotSynced(t *testing.T) {
	target := filepath.Join(t.TempDir(), "copy")
	if err := (File{}).Put(t.Context(), "/proc/version", target); err != nil {
		t.Fatal(err)
	}
	if err := (File{}).Put(t.Context(), "/proc/cpuinfo", target); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a copy was replaced, or failed otherwise: %v", err)
	}
}

func TestOnlyRegularFiles(t *testing.T) {
	ctx, here, e := context.Background(), t.TempDir(), File{}
	if err := e.Put(ctx, here, here+"/x"); err == nil {
		t.Error("a folder was put")
	}
	if _, err := e.Get(ctx, here, here+"/x"); err == nil {
		t.Error("a folder was got")
	}
	files.Write(t, here+"/file", "f")
	if err := os.Symlink("file", here+"/link"); err != nil {
		t.Fatal(err)
	}
	if err := e.Put(ctx, here+"/link", here+"/x"); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(here + "/x"); err != nil || !info.Mode().IsRegular() {
		t.Error("the link was put, not what it points to")
	}
}

func TestDiskFull(t *testing.T) {
	ctx, here, full, e := context.Background(), t.TempDir(), tmpfs(t, 64<<10), Local(Roots{})
	big := files.Write(t, here+"/big", strings.Repeat("x", 1<<20))
	if err := e.Put(ctx, big, full+"/se/big"); !errors.Is(err, ErrNoSpace) {
		t.Fatal(err)
	}
	if _, err := e.Get(ctx, big, full+"/big"); !errors.Is(err, ErrNoSpace) {
		t.Fatal(err)
	}
	if left := append(entries(t, full), entries(t, full+"/se")...); len(left) != 1 {
		t.Fatal("left behind:", left)
	}
	if err := e.Put(ctx, files.Write(t, here+"/small", "x"), full+"/se/small"); err != nil {
		t.Fatal("there is room again:", err)
	}
}

func TestCancelledCopy(t *testing.T) {
	there := tmpfs(t, 1<<20)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	source, err := os.Create(t.TempDir() + "/big")
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	if err := source.Truncate(disk.CopyPiece + 1); err != nil {
		t.Fatal(err)
	}
	if err := (File{}).Put(ctx, source.Name(), there+"/x"); err == nil {
		t.Fatal("the copy went on")
	}
	if left := entries(t, there); len(left) != 0 {
		t.Fatal("left behind:", left)
	}
}

// Wherever the process is killed, the file is there complete or not at all,
// and the same Put succeeds afterwards.
func TestKilledPut(t *testing.T) {
	if target := os.Getenv("STORAGE_TEST_PUT"); target != "" {
		source, target, _ := strings.Cut(target, " ")
		if err := (File{}).Put(context.Background(), source, target); err != nil {
			t.Fatal(err)
		}
		return
	}
	there := tmpfs(t, 8<<20)
	contents := strings.Repeat("0123456789abcdef", 1<<14)
	source := files.Write(t, t.TempDir()+"/source", contents)
	for i, point := range []string{"storage.put.written", "storage.put.named"} {
		target := fmt.Sprintf("%s/%d", there, i)
		c := exec.Command(os.Args[0], "-test.run=^TestKilledPut$")
		c.Env = append(os.Environ(), "STORAGE_TEST_PUT="+source+" "+target, "FAIRWAY_FAULT="+point)
		if c.Run(); c.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
			t.Fatal(point, "was not reached")
		}
		if got, err := os.ReadFile(target); err == nil && string(got) != contents {
			t.Fatal(point, "left a part of the file")
		}
		if err := (File{}).Put(context.Background(), source, target); err != nil {
			t.Fatal(point, err)
		}
	}
	if left := entries(t, there); len(left) != 2 {
		t.Fatal("left behind:", left)
	}
}

func TestFailedPutLeavesNothing(t *testing.T) {
	there := tmpfs(t, 1<<20)
	disarm, err := fault.Arm("storage.put.written:error")
	if err != nil {
		t.Fatal(err)
	}
	defer disarm()
	if err := (File{}).Put(context.Background(), files.Write(t, t.TempDir()+"/a", "a"), there+"/a"); !errors.Is(err,
		fault.ErrInjected) {
		t.Fatal(err)
	}
	if left := entries(t, there); len(left) != 0 {
		t.Fatal("left behind:", left)
	}
}

func TestUnknownScheme(t *testing.T) {
	e, ctx := Local(Roots{}), context.Background()
	_, errOpen := e.Open(ctx, "srm://a/b")
	_, errGet := e.Get(ctx, "srm://a/b", "/x")
	_, errStat := e.Stat(ctx, "srm://a/b")
	for _, err := range []error{errOpen, errGet, errStat, e.Put(ctx, "/x", "srm://a/b"), e.Remove(ctx, "srm://a/b")} {
		if !errors.Is(err, ErrScheme) {
			t.Error(err)
		}
	}
}

func FuzzPath(f *testing.F) {
	f.Add("file:///a/../b")
	f.Fuzz(func(t *testing.T, pfn string) {
		if path, err := Path(pfn); err == nil && !filepath.IsAbs(path) {
			t.Fatal(path)
		}
	})
}

func ownElement(t *testing.T) (e Element, root string) {
	t.Helper()
	root = t.TempDir()
	return Local(Roots{State: root, Folder: filepath.Dir(root)}), root
}

// What a job has left in its state's storage is not followed out of it.
func TestOwnElementFollowsNoLinks(t *testing.T) {
	ctx, outside := context.Background(), t.TempDir()
	e, root := ownElement(t)
	foreign := files.Write(t, outside+"/foreign", "foreign")
	if err := errors.Join(
		os.Symlink(outside, root+"/m"), os.Symlink(foreign, root+"/x.v1.a1"), os.Symlink(outside+"/new", root+"/y.v1.a1"),
	); err != nil {
		t.Fatal(err)
	}
	mine := files.Write(t, t.TempDir()+"/out", "mine")
	for _, name := range []string{"m/foreign", "m/new", "m/deep/er", "x.v1.a1", "y.v1.a1", "../foreign"} {
		pfn := StateScheme + ":" + name
		_, open := e.Open(ctx, pfn)
		_, get := e.Get(ctx, pfn, t.TempDir()+"/got")
		_, stat := e.Stat(ctx, pfn)
		if put := e.Put(ctx, mine, pfn); put == nil || open == nil || get == nil || stat == nil {
			t.Errorf("%s: put %v, open %v, get %v, stat %v", name, put, open, get, stat)
		}
		if strings.HasPrefix(name, "m/") {
			if err := e.Remove(ctx, pfn); err == nil {
				t.Errorf("%s: removed", name)
			}
		}
	}
	if left := entries(t, outside); len(left) != 1 || files.Read(t, foreign) != "foreign" {
		t.Errorf("outside there are %v", left)
	}
}

// Relative PFNs lead to the files wherever their folder is by now.
func TestRelativePFNsMoveWithTheirFolder(t *testing.T) {
	ctx, folder := context.Background(), t.TempDir()
	before, after := folder+"/before", folder+"/after"
	places := func(in string) Element { return Local(Roots{State: in + "/state", Folder: in}) }
	if err := os.MkdirAll(before+"/state", 0o755); err != nil {
		t.Fatal(err)
	}
	files.Write(t, before+"/input", "input")
	pfn := Join(StateScheme+":", "deep/er/out.v1.a7")
	for range 2 {
		if err := places(before).Put(ctx, files.Write(t, t.TempDir()+"/out", "contents"), pfn); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Rename(before, after); err != nil {
		t.Fatal(err)
	}
	for pfn, want := range map[string]string{pfn: "contents", "folder:input": "input"} {
		size, err := places(after).Get(ctx, pfn, folder+"/"+want)
		if err != nil || size != int64(len(want)) || files.Read(t, folder+"/"+want) != want {
			t.Errorf("%s: %d bytes, %v", pfn, size, err)
		}
		if _, err := places(before).Stat(ctx, pfn); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: where it was before: %v", pfn, err)
		}
	}
	if err := places(after).Put(ctx, folder+"/input", "folder:new"); !errors.Is(err, ErrReadOnly) {
		t.Errorf("an input was written: %v", err)
	}
	own := "folder:store/" + StorePrefix + "abcdefgh234567ab/out.v1.a7"
	if err := errors.Join(places(after).Put(ctx, folder+"/input", own), places(after).Remove(ctx, own)); err != nil {
		t.Errorf("what a state stores in the folder: %v", err)
	}
	if err := places(after).Remove(ctx, "folder:input"); !errors.Is(err, ErrReadOnly) {
		t.Errorf("an input was removed: %v", err)
	}
	if _, err := Local(Roots{}).Stat(ctx, pfn); err == nil {
		t.Error("found without knowing where")
	}
}

// A catalogue gives names in URLs as URLs have them, whatever its rules add.
func TestNamesByACatalogue(t *testing.T) {
	for place, want := range map[string]string{
		"/data":               "/data/a b#1",
		"davs://host/da%20ta": "davs://host/da%20ta/a%20b%231",
		"root://host//data":   "root://host//data/a b#1",
	} {
		got, err := NameBy(func(lfn string) (string, error) { return place + lfn, nil }, "a b#1")
		if got != want || err != nil {
			t.Errorf("at %s: %s, %v", place, got, err)
		}
	}
	none := errors.New("no rule")
	if _, err := NameBy(func(string) (string, error) { return "", none }, "a"); !errors.Is(err, none) {
		t.Error(err)
	}
}
