package folder

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A state is made only where locks hold, files come to disk, and memory is shared. Who is
// refused is told why, and where else to go. The file systems are mocks, around a real one.
func TestStatesAreMadeWhereLocksHold(t *testing.T) {
	for what, bad := range map[string]struct {
		system fileSystem
		says   string
	}{
		"no locks":            {fileSystem{lock: func(*os.File) error { return unix.ENOLCK }}, "files cannot be locked there: no locks available"},
		"locks that hold not": {fileSystem{lock: func(*os.File) error { return nil }}, "locks do not keep others out there"},
		"no fsync":            {fileSystem{sync: func(*os.File) error { return unix.EIO }}, "files cannot be brought to disk there (fsync): input/output error"},
		"no fsync of folders": {fileSystem{sync: func(f *os.File) error {
			if info, err := f.Stat(); err == nil && info.IsDir() {
				return unix.EINVAL
			}
			return f.Sync()
		}}, "files cannot be brought to disk there (fsync): invalid argument"},
		"no shared memory": {fileSystem{mmap: func(*os.File) error { return unix.ENODEV }}, "processes cannot share memory in files there (mmap): no such device"},
	} {
		t.Run(what, func(t *testing.T) {
			usual := system
			t.Cleanup(func() { system = usual })
			if bad.system.lock != nil {
				system.lock = bad.system.lock
			}
			if bad.system.sync != nil {
				system.sync = bad.system.sync
			}
			if bad.system.mmap != nil {
				system.mmap = bad.system.mmap
			}
			above := t.TempDir()
			workflow := filepath.Join(above, "new", "flow")
			_, _, err := Claim(workflow)
			if err == nil || !strings.Contains(err.Error(), "cannot be in "+workflow+", since "+bad.says) ||
				!strings.HasSuffix(err.Error(), "with --dir") {
				t.Error(err)
			}
			if left, err := os.ReadDir(above); err != nil || len(left) > 0 {
				t.Error("left:", left, err)
			}
			if err := os.MkdirAll(filepath.Join(workflow, StateFolder), 0o700); err != nil {
				t.Fatal(err)
			}
			if _, _, err := Claim(workflow); err == nil {
				t.Error("a folder that was there was taken")
			}
			if _, err := os.Stat(filepath.Join(workflow, StateFolder)); err != nil {
				t.Error("a folder that was there went:", err)
			}
			system = usual
			lock, _, err := Claim(workflow)
			if err != nil {
				t.Fatal(err)
			}
			if err := lock.Release(); err != nil {
				t.Error(err)
			}
			system = bad.system // of which a state that is there needs nothing any more
			if err := checkFileSystem(filepath.Join(workflow, StateFolder), system); err != nil {
				t.Error("a state that was made before:", err)
			}
		})
	}
}
