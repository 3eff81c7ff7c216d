package beneath

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"fairway/test/files"
)

// inFolder runs a test on an empty folder, with openat2 and in single steps.
func inFolder(t *testing.T, test func(t *testing.T, folder string, f *Folder)) {
	bothWays(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "folder")
		must(t, os.Mkdir(path, 0o755))
		f, err := Open(path)
		must(t, err)
		t.Cleanup(func() { f.Close() })
		test(t, path, f)
	})
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// mountOn mounts one folder on another until the test ends.
func mountOn(t *testing.T, source, target string) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("mounting needs root")
	}
	if err := unix.Mount(source, target, "", unix.MS_BIND, ""); err != nil {
		t.Skip("mounting is not permitted here:", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(target, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW) })
}

func TestOnlyRegularFilesBeneathAreOpened(t *testing.T) {
	inFolder(t, func(t *testing.T, folder string, f *Folder) {
		outside := t.TempDir()
		files.Write(t, outside+"/secret", "secret")
		must(t, os.Mkdir(folder+"/sub", 0o755))
		files.Write(t, folder+"/sub/file", "text")
		must(t, unix.Mkfifo(folder+"/pipe", 0o644))
		socket, err := net.Listen("unix", folder+"/socket")
		must(t, err)
		defer socket.Close()
		for name, target := range map[string]string{
			"inside":   "sub/file",
			"outside":  outside + "/secret",
			"dangling": "nothing",
			"folder":   "sub",
			"away":     outside,
			"loop":     "loop",
		} {
			must(t, os.Symlink(target, folder+"/"+name))
		}
		for name, want := range map[string]string{
			"sub/file":    "",
			"sub":         KindFolder,
			"pipe":        KindPipe,
			"socket":      KindSocket,
			"inside":      KindLink,
			"outside":     KindLink,
			"dangling":    KindLink,
			"loop":        KindLink,
			"folder/file": KindBehind,
			"away/secret": KindBehind,
			"loop/x":      KindBehind,
			"nothing":     "no such file",
			"sub/file/x":  "not a directory",
			"../x":        "leads out of the folder",
			"/etc/passwd": "leads out of the folder",
		} {
			file, err := f.Open(name)
			switch {
			case want == "" && err == nil:
				text, err := io.ReadAll(file)
				if string(text) != "text" || err != nil {
					t.Errorf("%s: %q, %v", name, text, err)
				}
			case want == "" || err == nil || !strings.Contains(err.Error(), want):
				t.Errorf("%s: %v, want %q", name, err, want)
			}
			if file != nil {
				file.Close()
			}
		}
		if _, err := f.Sub("folder"); err == nil {
			t.Error("a link to a folder was opened as one")
		}
	})
}

func TestDeviceIsNotOpened(t *testing.T) {
	inFolder(t, func(t *testing.T, folder string, f *Folder) {
		if err := unix.Mknod(folder+"/null", unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))); err != nil {
			t.Skip("a device cannot be made here:", err)
		}
		var kind *KindError
		if _, err := f.Open("null"); !errors.As(err, &kind) || kind.Kind != KindDevice {
			t.Error(err)
		}
	})
}

func TestMountsAreNotCrossed(t *testing.T) {
	inFolder(t, func(t *testing.T, folder string, f *Folder) {
		outside := t.TempDir()
		files.Write(t, outside+"/file", "other")
		must(t, os.MkdirAll(folder+"/sub/mounted", 0o755))
		files.Write(t, folder+"/sub/plain", "")
		mountOn(t, outside, folder+"/sub/mounted")
		mountOn(t, outside+"/file", folder+"/sub/plain")
		var kind *KindError
		for _, name := range []string{"sub/mounted/file", "sub/mounted", "sub/plain"} {
			if _, err := f.Open(name); !errors.As(err, &kind) || kind.Kind != KindMounted {
				t.Error(name, err)
			}
		}
	})
}

func TestClearLeavesWhatIsMountedOrLinked(t *testing.T) {
	inFolder(t, func(t *testing.T, folder string, f *Folder) {
		outside := t.TempDir()
		must(t, os.Mkdir(outside+"/deep", 0o755))
		files.Write(t, outside+"/deep/file", "other")
		must(t, os.MkdirAll(folder+"/sub/mounted", 0o755))
		must(t, os.Symlink(outside, folder+"/sub/link"))
		files.Write(t, folder+"/sub/plain", "")
		mountOn(t, outside, folder+"/sub/mounted")
		mountOn(t, outside+"/deep", folder+"/sub/mounted") // two, one on the other
		mountOn(t, outside+"/deep/file", folder+"/sub/plain")
		must(t, f.Clear("sub"))
		if text, err := os.ReadFile(outside + "/deep/file"); string(text) != "other" {
			t.Error(text, err)
		}
		if !f.IsEmpty() {
			t.Error("something is left")
		}
	})
}

func TestClearRemovesWhatIsDeepOrForbidden(t *testing.T) {
	inFolder(t, func(t *testing.T, folder string, f *Folder) {
		asNobody(t, folder, func() {
			must(t, os.MkdirAll(folder+"/top/a/b", 0o755))
			files.Write(t, folder+"/top/a/b/file", "")
			must(t, unix.Mkfifo(folder+"/top/pipe", 0))
			makeDeep(t, f, "top", 5*maxDepth)
			for _, path := range []string{"/top/a/b", "/top/a", "/top"} {
				must(t, os.Chmod(folder+path, 0))
			}
			must(t, os.Chmod(folder, 0o500))
			must(t, f.Clear("top"))
			if !f.IsEmpty() {
				t.Error("something is left")
			}
			if err := f.Clear("top"); err != nil {
				t.Error("what is not there:", err)
			}
		})
	})
}

// makeDeep makes folders in folders, with paths that are longer than the kernel
// takes.
func makeDeep(t *testing.T, in *Folder, name string, depth int) {
	at, err := in.Sub(name)
	must(t, err)
	for range depth {
		name := strings.Repeat("x", 200)
		must(t, at.Mkdir(name, 0o755))
		below, err := at.Sub(name)
		must(t, err)
		at.Close()
		at = below
	}
	at.Close()
}

// asNobody runs f on a thread for which permissions count, as the owner of the
// folder.
func asNobody(t *testing.T, folder string, f func()) {
	t.Helper()
	if os.Getuid() != 0 {
		f()
		return
	}
	const nobody = 65534
	must(t, os.Chown(folder, nobody, nobody))
	must(t, os.Chmod(filepath.Dir(filepath.Dir(folder)), 0o755))
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // the thread ends with the goroutine
		_, _, _ = unix.RawSyscall(unix.SYS_SETFSUID, nobody, 0, 0)
		f()
	}()
	<-done
}

func TestNamesInAnyEncoding(t *testing.T) {
	inFolder(t, func(t *testing.T, folder string, f *Folder) {
		must(t, os.Mkdir(folder+"/d\xe9", 0o755))
		files.Write(t, folder+"/d\xe9/caf\xe9\n", "text")
		file, err := f.Open("d\xe9/caf\xe9\n")
		must(t, err)
		must(t, file.Close())
		must(t, f.Clear("d\xe9"))
		if !f.IsEmpty() {
			t.Error("something is left")
		}
	})
}

func TestMoveAndCreateNeverReplace(t *testing.T) {
	inFolder(t, func(t *testing.T, folder string, f *Folder) {
		files.Write(t, folder+"/a", "a")
		files.Write(t, folder+"/b", "b")
		must(t, os.Symlink("/etc/passwd", folder+"/link"))
		if err := f.Move("a", f, "b"); !errors.Is(err, fs.ErrExist) {
			t.Error(err)
		}
		for _, name := range []string{"a", "link"} {
			if _, err := f.Create(name, 0o644); !errors.Is(err, fs.ErrExist) {
				t.Error(name, err)
			}
		}
		must(t, f.Move("a", f, "c"))
		if names, err := f.List("."); len(names) != 3 || err != nil {
			t.Error(names, err)
		}
	})
}

// One file that cannot be removed must not keep all others: neither in its folder nor
// beside it.
func TestClearNamesWhatItCannotRemoveAndGoesOn(t *testing.T) {
	for name, clear := range map[string]func(*Folder, string) error{
		"Clear":     (*Folder).Clear,
		"RemoveAll": (*Folder).RemoveAll,
	} {
		t.Run(name, func(t *testing.T) {
			inFolder(t, func(t *testing.T, folder string, f *Folder) {
				must(t, os.MkdirAll(folder+"/top/sub", 0o755))
				for i := range elementsAtOnce + 10 {
					files.Write(t, fmt.Sprintf("%s/top/sub/%d", folder, i), "")
				}
				for _, other := range []string{"a", "z"} {
					must(t, os.MkdirAll(folder+"/top/"+other+"/b", 0o755))
					files.Write(t, folder+"/top/"+other+"/b/file", "")
				}
				protect(t, folder+"/top/sub/500")
				protect(t, folder+"/top/a/b")
				err := clear(f, "top")
				if err == nil || !errors.Is(err, unix.EPERM) {
					t.Fatal("the error is", err)
				}
				for _, want := range []string{"top/sub/500: operation not permitted", "top/a/b: operation not permitted"} {
					if !strings.Contains(err.Error(), want) {
						t.Errorf("%q is not in: %v", want, err)
					}
				}
				var left []string
				must(t, f.Walk(func(name string, _ fs.FileInfo) error {
					left = append(left, name)
					return nil
				}))
				slices.Sort(left)
				if want := []string{"top/a/b/file", "top/sub/500"}; !slices.Equal(left, want) {
					t.Errorf("left are %q", left)
				}
			})
		})
	}
}

// protect makes a file or folder immutable, as chattr +i does.
func protect(t *testing.T, path string) {
	t.Helper()
	set := func(flags int) error {
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		defer func() { _ = file.Close() }()
		return unix.IoctlSetPointerInt(int(file.Fd()), unix.FS_IOC_SETFLAGS, flags)
	}
	if err := set(0x10); err != nil { // FS_IMMUTABLE_FL
		t.Skip("files cannot be made immutable here:", err)
	}
	t.Cleanup(func() { _ = set(0) })
}

// A command may forbid everybody to read what it writes.
func TestOwnerPermitsItselfToRead(t *testing.T) {
	inFolder(t, func(t *testing.T, folder string, f *Folder) {
		asNobody(t, folder, func() {
			files.Write(t, folder+"/file", "text")
			must(t, os.Chmod(folder+"/file", 0))
			must(t, os.Symlink("file", folder+"/link"))
			must(t, os.Mkdir(folder+"/sub", 0o755))
			if _, err := f.Open("file"); !errors.Is(err, fs.ErrPermission) {
				t.Error("before it is", err)
			}
			for _, name := range []string{"link", "sub"} {
				if f.ChmodFile(name, 0o400) == nil {
					t.Error(name, "is taken for a regular file")
				}
			}
			must(t, f.ChmodFile("file", 0o400))
			file, err := f.Open("file")
			must(t, err)
			must(t, file.Close())
		})
	})
}

// A network file system keeps what was removed and is open under another name. It is not removed for ever.
func TestClearOfWhatIsOpen(t *testing.T) {
	if _, err := exec.LookPath("bindfs"); err != nil || os.Geteuid() != 0 {
		t.Skip("it mounts with bindfs, as root")
	}
	at := t.TempDir()
	if out, err := exec.Command("bindfs", t.TempDir(), at).CombinedOutput(); err != nil {
		t.Skipf("nothing can be mounted: %v: %s", err, out)
	}
	defer func() { _ = unix.Unmount(at, unix.MNT_DETACH) }()
	if err := errors.Join(os.MkdirAll(filepath.Join(at, "all/of/it"), 0o755),
		os.WriteFile(filepath.Join(at, "all/of/.nfs0001"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	file, err := os.Create(filepath.Join(at, "all/of/it/open"))
	if err != nil {
		t.Fatal(err)
	}
	folder, err := Open(at)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = folder.Close() }()
	if err := folder.Clear("all"); !errors.Is(err, ErrOpen) {
		t.Errorf("while it is open: %v", err)
	}
	if err := errors.Join(file.Close(), folder.Clear("all")); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(at, "all")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is there: %v", err)
	}
}
