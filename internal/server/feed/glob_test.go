package feed

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fairway/test/files"
)

func TestGlob(t *testing.T) {
	root := files.Folder(t, map[string]string{
		"in [1]/a.txt": "", "in [1]/b.txt": "", "in [1]/.c.txt": "", ".hidden/d.txt": "", "in [1]/sub/e.txt": "", "f.txt": "",
		"fairway-abcdefghijklm237/g.txt": "", "fairway-abcdefghijklm237/in/h.txt": "", "fairway-notes/long.txt": "",
	})
	for glob, want := range map[string][]string{
		`in \[1\]/*.txt`:       {"in [1]/a.txt", "in [1]/b.txt"},
		`*/?.txt`:              {"in [1]/a.txt", "in [1]/b.txt"},
		`*/.*`:                 {"in [1]/.c.txt"},
		`.*/*.txt`:             {".hidden/d.txt"},
		`*/sub/../a.txt`:       {"in [1]/a.txt"},
		`./f.txt`:              {"f.txt"},
		`f.txt/*`:              nil,
		`missing/*/f.txt`:      nil,
		`*/sub/e.txt`:          {"in [1]/sub/e.txt"},
		`fairway-*/g.txt`:      {"fairway-abcdefghijklm237/g.txt"},
		`*/[gl]*.txt`:          {"fairway-notes/long.txt"},
		`*/in/h.txt`:           nil,
		`f*/`:                  {"fairway-notes"},
		root + `/*.txt`:        {"f.txt"},
		`in [1]/none-of-these`: nil,
	} {
		found, err := Glob(root, glob)
		if err != nil {
			t.Errorf("%s: %v", glob, err)
		}
		slices.Sort(found)
		for i := range found {
			found[i], _ = filepath.Rel(root, found[i])
		}
		if !slices.Equal(found, want) {
			t.Errorf("%s matches %q, not %q", glob, found, want)
		}
	}
}

// A folder that cannot be read would hide inputs: a link that leads back to
// itself is one for everybody, one without permissions for all but root.
func TestGlobNamesTheFolderThatItCannotRead(t *testing.T) {
	root := files.Folder(t, map[string]string{"open/a.txt": "", "closed/a.txt": ""})
	if err := os.Symlink("round", filepath.Join(root, "round")); err != nil {
		t.Fatal(err)
	}
	tell(t, root, "round")
	if err := os.Remove(filepath.Join(root, "round")); err != nil {
		t.Fatal(err)
	}
	if os.Getuid() == 0 {
		return
	}
	permit(t, filepath.Join(root, "closed"), 0)
	tell(t, root, "closed")
}

func tell(t *testing.T, root, unread string) {
	t.Helper()
	for _, glob := range []string{"*/*.txt", "*/a.txt", unread + "/a.txt"} {
		found, err := Glob(root, glob)
		if err == nil || !strings.Contains(err.Error(), "the folder "+filepath.Join(root, unread)+" cannot be read: ") {
			t.Errorf("%s matches %q, %v", glob, found, err)
		}
	}
}

func permit(t *testing.T, path string, mode fs.FileMode) {
	t.Helper()
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(path, 0o755) })
}
