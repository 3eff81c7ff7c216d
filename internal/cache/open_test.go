package cache

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"fairway/internal/disk"
)

func grouped(c *Config) { c.Shared, c.Group = true, true }

// A cache that cannot be opened leaves nothing locked behind, so that it can be opened later.
func TestOpenFailsAndIsTriedAgain(t *testing.T) {
	for _, name := range []string{"p/" + lockName, "p/" + changesName, "p/" + usesName, lockName, turnsName} {
		dir := t.TempDir()
		there := filepath.Join(dir, name)
		if err := os.MkdirAll(there, 0o700); err != nil {
			t.Fatal(err)
		}
		cfg := Config{Dir: dir, Name: "p", MaxSpace: 100, Shared: true}
		if c, err := Open(cfg); err == nil {
			c.Close()
			t.Fatalf("it was opened, though %s is a folder", name)
		}
		if err := os.Remove(there); err != nil {
			t.Fatal(err)
		}
		c, err := Open(cfg)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		c.Close()
	}
}

// Its own books nobody else of the group may read or write; its folder they may look into.
func TestModesOfACache(t *testing.T) {
	dir := t.TempDir()
	plain, _ := open(t, filepath.Join(dir, "plain"), "p", shared)
	if info, err := os.Stat(plain.Dir()); err != nil || info.Mode().Perm()&0o700 != 0o700 {
		t.Error(info, err)
	}
	c, _ := open(t, filepath.Join(dir, "group"), "p", grouped)
	for path, want := range map[string]os.FileMode{
		"p": groupFolder, "p/" + lockName: 0o600, "p/" + changesName: 0o600, "p/" + usesName: 0o600,
		lockName: 0o600, turnsName: 0o600, ".": groupFolder,
	} {
		info, err := os.Stat(filepath.Join(dir, "group", path))
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%s has the mode %v, not %o: %v", path, info.Mode(), want, err)
		}
	}
	f := put(t, c, "x", 10)
	defer f.Release()
	if info, err := os.Stat(f.Path()); err != nil || info.Mode().Perm() != 0o640 {
		t.Error("a file of the cache:", info.Mode(), err)
	}
	outside := filepath.Join(dir, "outside") // a link to it is brought in, which changes nothing of it
	if err := os.WriteFile(outside, make([]byte, 10), 0o604); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(outside, 0o604); err != nil {
		t.Fatal(err)
	}
	linked, _, err := c.Fetch(t.Context(), item("y", 10), func(path string) (int64, Hash, error) {
		return 10, Hash{}, os.Link(outside, path)
	})
	if err != nil {
		t.Fatal(err)
	}
	linked.Release()
	if info, err := os.Stat(outside); err != nil || info.Mode().Perm() != 0o604 {
		t.Error("a file outside has the mode", info.Mode(), err)
	}
	if err := c.Add(t.Context(), item("z", 10), outside); err != nil { // what a job made
		t.Fatal(err)
	}
	if info, err := os.Stat(outside); err != nil || info.Mode().Perm() != 0o640 {
		t.Error("what was added has the mode", info.Mode(), err)
	}
	if err := c.letGroupRead(filepath.Join(dir, "missing"), false); !errors.Is(err, os.ErrNotExist) {
		t.Error("a file that is not there:", err)
	}
}

// A cache that has a folder already takes the files of the dead into it, removes what they leave, and
// gives up as much as does not fit, the oldest first.
func TestInheritsIntoItsOwnFolder(t *testing.T) {
	dir := t.TempDir()
	own, _ := open(t, dir, "own")
	dead, _ := open(t, dir, "dead")
	put(t, own, "a", 30).Release()
	put(t, dead, "b", 60).Release()
	put(t, dead, "c", 10).Release()
	own.Close()
	dead.Close()
	left := filepath.Join(dir, gonePrefix+"half")
	write(t, filepath.Join(left, fileName(item("d", 4))))
	heir, _ := open(t, dir, "own", func(c *Config) { c.MaxSpace = 99 })
	if has(heir, "a") || !has(heir, "b") || !has(heir, "c") || heir.used != 70 {
		t.Error(heir.Contents())
	}
	for _, folder := range []string{dead.Dir(), left} {
		if _, err := os.Stat(folder); err == nil {
			t.Error(folder, "is there still")
		}
	}
}

// Of two files that claim to be the same one is kept.
func TestOneFileOfAName(t *testing.T) {
	dir := t.TempDir()
	c, _ := open(t, dir, "p")
	put(t, c, "a", 10).Release()
	if err := os.WriteFile(filepath.Join(c.Dir(), fileName(item("a", 5))), make([]byte, 5), 0o600); err != nil {
		t.Fatal(err)
	}
	c.Close()
	again, _ := open(t, dir, "p")
	files, err := filepath.Glob(filepath.Join(again.Dir(), "a@*"))
	if all := again.Contents(); err != nil || len(files) != 1 || len(all) != 1 || again.used != all[0].Size {
		t.Error(files, all, again.used, err)
	}
}

// A lock is that of a folder only while it stands there.
func TestLockOfAFolderThatWasReplaced(t *testing.T) {
	path := filepath.Join(t.TempDir(), lockName)
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := stillAt(f, path); err != nil {
		t.Error(err)
	}
	if err := os.Rename(path, path+".old"); err != nil {
		t.Fatal(err)
	}
	if err := stillAt(f, path); !errors.Is(err, os.ErrNotExist) {
		t.Error("it is gone:", err)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := stillAt(f, path); !errors.Is(err, disk.ErrHeld) {
		t.Error("it is another one:", err)
	}
}
