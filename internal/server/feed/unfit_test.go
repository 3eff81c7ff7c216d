package feed

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// An input is no file of the state of a workflow, by whatever name; what came with a submission is one.
func TestFilesOfAStateAreNoInputs(t *testing.T) {
	folder, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{".fairway/service", ".fairway/authority/key", ".fairway/uploads/1/a", "data/a"} {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"state": ".fairway", "key": ".fairway/authority/key", "more": "data"} {
		if err := os.Symlink(to, filepath.Join(folder, link)); err != nil {
			t.Fatal(err)
		}
	}
	finder := NewFinder(folder, nil)
	for name, may := range map[string]bool{
		"data/a": true, "more/a": true, ".fairway/uploads/1/a": true, ".fairway/uploads/../service": false,
		".fairway/service": false, ".fairway/authority/key": false, "state/service": false, "key": false,
		"data/../.fairway/service": false, "data/": true, ".fairway/": false, ".fairway/authority/": false, "state/": false,
	} {
		path := filepath.Join(folder, name)
		if strings.HasSuffix(name, "/") {
			path += "/"
		}
		_, err := finder.existing(name, "file:"+path)
		for _, err := range []error{Unfit(path), err} {
			if refused := err != nil && strings.Contains(err.Error(), "holds the state"); refused == may || may && err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// A folder that is an input holds no state, and no link into one.
func TestFoldersWithAStateAreNoInputs(t *testing.T) {
	folder := t.TempDir()
	for _, name := range []string{"state/sub/.fairway/service", "link/a", "fine/sub/a"} {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("../state/sub/.fairway/service", filepath.Join(folder, "link", "key")); err != nil {
		t.Fatal(err)
	}
	for name, may := range map[string]bool{"state/": false, "state/sub/": false, "link/": false, "fine/": true} {
		_, err := NewFinder(folder, nil).existing(name, "file:"+filepath.Join(folder, name)+"/")
		if refused := err != nil && strings.Contains(err.Error(), "holds the state"); refused == may || may && err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
