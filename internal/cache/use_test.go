package cache

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
)

// However many files are in use, the kernel keeps a bounded number of locks: each change of one
// has it walk through all of the same file.
func TestManyFilesInUseNeedFewLocks(t *testing.T) {
	const files, bound = 500, 5
	dir := t.TempDir()
	space := func(c *Config) { c.MaxSpace = files }
	a, _ := open(t, dir, "a", shared, space)
	b, _ := open(t, dir, "b", shared, space)
	meet(a, b)
	for n := range files {
		defer put(t, a, fmt.Sprint("x", n), 1).Release()
	}
	if n := locksBelow(t, dir); n > bound {
		t.Errorf("there are %d locks, and may be %d", n, bound)
	}
}

// locksBelow counts the locks of all files of a folder and of the folders in it.
func locksBelow(t *testing.T, dir string) (n int) {
	t.Helper()
	locks, err := os.ReadFile("/proc/locks")
	if err != nil {
		t.Skip(err)
	}
	for _, folder := range []string{dir, dir + "/a", dir + "/b"} {
		entries, err := os.ReadDir(folder)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if info, err := e.Info(); err == nil {
				n += strings.Count(string(locks), fmt.Sprintf(":%d ", info.Sys().(*syscall.Stat_t).Ino))
			}
		}
	}
	return n
}

// A pilot that was killed uses nothing any more, though what it has told stands in its folder.
func TestADeadPilotUsesNothing(t *testing.T) {
	dir := t.TempDir()
	a, seen := open(t, dir, "a", shared)
	b, _ := open(t, dir, "b", shared)
	meet(a, b)
	defer put(t, b, "x", 90).Release()
	seen.until(t, func() bool { return has(a, "x") })
	x := fileName(item("x", 90))
	if !a.usedByPeers()[placeOf(x)] {
		t.Fatal("the use of x is not seen")
	}
	_ = b.uses.file.Close() // as the kernel does for a process that ends
	if a.usedByPeers()[placeOf(x)] {
		t.Error("a file is in use by a pilot that is dead")
	}
}

// A pilot tells its peers also of what it used before it knew that it has any, and no longer of
// what it has released since.
func TestPeersAreToldOfEarlierUse(t *testing.T) {
	dir := t.TempDir()
	a, _ := open(t, dir, "a", shared)
	b, _ := open(t, dir, "b", shared)
	released, kept := put(t, b, "x", 10), put(t, b, "y", 10)
	defer kept.Release()
	meet(a, b)
	released.Release()
	b.SetPeers(nil)
	put(t, b, "z", 10).Release()
	meet(a, b)
	used := a.usedByPeers()
	for lfn, want := range map[string]bool{"x": false, "y": true, "z": false} {
		if used[placeOf(fileName(item(lfn, 10)))] != want {
			t.Errorf("%s in use: %v, want %v", lfn, !want, want)
		}
	}
}
