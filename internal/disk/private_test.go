package disk

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// In a place where everybody may write, somebody may have put anything under a name.
func TestOnlyAPrivateFolderIsTaken(t *testing.T) {
	for what, c := range map[string]struct {
		prepare func(path string) error
		private bool
	}{
		"a private folder": {func(path string) error { return os.Mkdir(path, 0o700) }, true},
		"nothing":          {func(string) error { return nil }, false},
		"a file":           {func(path string) error { return os.WriteFile(path, nil, 0o600) }, false},
		"a link":           {func(path string) error { return os.Symlink(t.TempDir(), path) }, false},
		"one others list":  {func(path string) error { return os.Mkdir(path, 0o755) }, false},
		"of another user": {func(path string) error {
			return errors.Join(os.Mkdir(path, 0o700), os.Chown(path, 12345, 12345))
		}, false},
	} {
		t.Run(what, func(t *testing.T) {
			if what == "of another user" && os.Getuid() != 0 {
				t.Skip("only root can give a folder away")
			}
			path := filepath.Join(t.TempDir(), "folder")
			if err := c.prepare(path); err != nil {
				t.Fatal(err)
			}
			err := CheckPrivate(path)
			if (err == nil) != c.private || errors.Is(err, fs.ErrNotExist) != (what == "nothing") {
				t.Error(err)
			}
		})
	}
}
