package cache

import (
	"os"
	"path/filepath"
	"testing"
)

// write makes a file in a folder that is made, too.
func write(t *testing.T, path string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("mine"), 0o666); err != nil {
		t.Fatal(err)
	}
}

// Whatever folder somebody says is the cache of a pilot of the host: when that has left, nothing of it
// goes that is not a cache's, and nothing of it was taken.
func TestFoldersThatAreNoCachesStay(t *testing.T) {
	for name, at := range map[string]func(dir, elsewhere string) string{
		"elsewhere": func(_, elsewhere string) string { return elsewhere },
		"by a way up": func(dir, elsewhere string) string {
			return dir + "/a/../../" + filepath.Base(filepath.Dir(elsewhere)) + "/" + filepath.Base(elsewhere)
		},
		"by a link": func(dir, elsewhere string) string {
			if err := os.Symlink(elsewhere, filepath.Join(dir, "link")); err != nil {
				t.Fatal(err)
			}
			return filepath.Join(dir, "link")
		},
	} {
		t.Run(name, func(t *testing.T) {
			parent := t.TempDir()
			dir, elsewhere := filepath.Join(parent, "cache"), filepath.Join(parent, "home", "work")
			if err := os.Mkdir(dir, 0o777); err != nil {
				t.Fatal(err)
			}
			entry := fileName(item("x", 4))
			all := []string{lockName, changesName, "thesis.tex", "data/raw", entry}
			for _, file := range all {
				write(t, filepath.Join(elsewhere, file))
			}
			a, _ := open(t, dir, "a", shared)
			folder := at(dir, elsewhere)
			a.SetPeers([]string{a.Dir(), folder})
			if limitOf(a) != 100 {
				t.Error("it was taken for a peer")
			}
			a.SetPeers([]string{a.Dir()})
			if has(a, "x") {
				t.Error("a file of it was taken")
			}
			for _, file := range all {
				if text, err := os.ReadFile(filepath.Join(elsewhere, file)); err != nil || string(text) != "mine" {
					t.Error(file, err)
				}
			}
		})
	}
}

// The folder of all caches, and the one above it, are no caches however they are named.
func TestFoldersOfCachesAreNone(t *testing.T) {
	for _, way := range []string{"/..", "/.", "/", "/a/.."} {
		parent := t.TempDir()
		dir := filepath.Join(parent, "cache")
		all := []string{lockName, changesName, trustName, fileName(item("x", 4))}
		for _, file := range all {
			write(t, filepath.Join(parent, file))
			write(t, filepath.Join(dir, file))
		}
		a, _ := open(t, dir, "a", shared)
		a.SetPeers([]string{a.Dir(), dir + way})
		a.SetPeers([]string{a.Dir()})
		for _, file := range all {
			for _, folder := range []string{parent, dir} {
				if _, err := os.Stat(filepath.Join(folder, file)); err != nil {
					t.Errorf("named by %s: %v", way, err)
				}
			}
		}
	}
}

// What a person keeps beside the caches stays, too, though it looks as if a pilot had left it.
func TestWhatStandsBesideCachesStays(t *testing.T) {
	dir := t.TempDir()
	for _, file := range []string{lockName, changesName, "thesis.tex", "data/raw"} {
		write(t, filepath.Join(dir, "work", file))
	}
	a, _ := open(t, dir, "a", shared)
	a.SetPeers([]string{a.Dir(), filepath.Join(dir, "work")})
	a.SetPeers([]string{a.Dir()})
	for _, file := range []string{lockName, changesName, "thesis.tex", "data/raw"} {
		if _, err := os.Stat(filepath.Join(dir, "work", file)); err != nil {
			t.Error(err)
		}
	}
}
