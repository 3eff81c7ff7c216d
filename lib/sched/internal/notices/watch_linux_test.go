package notices

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// watching returns a Notifier and a folder without links in its path.
func watching(t *testing.T) (n *inotify, folder string) {
	t.Helper()
	made, err := New(slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(made.Close)
	n, ok := made.(*inotify)
	folder, err = filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if !ok || remoteFileSystem(folder) {
		t.Skip("nothing tells of changes here")
	}
	return n, folder
}

func put(t *testing.T, path ...string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(path...), nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

func makeFolder(t *testing.T, path ...string) string {
	t.Helper()
	folder := filepath.Join(path...)
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	return folder
}

// told returns what there are notices of now, each once, after the folder.
func told(n *inotify) (paths []string) {
	n.Wait(0, func(folder, name string) {
		if path := folder + " " + name; !slices.Contains(paths, path) {
			paths = append(paths, path)
		}
	})
	return paths
}

// readable reports whether there is something to read of a descriptor.
func readable(t *testing.T, fd int) bool {
	t.Helper()
	ready, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
	if err != nil {
		t.Fatal(err)
	}
	return ready > 0
}

// Each file that comes is told of, also in a folder that is watched twice, until it is not watched.
func TestFilesThatComeAreTold(t *testing.T) {
	n, folder := watching(t)
	for _, name := range []string{"first", "second"} {
		if !n.Watch(folder) {
			t.Fatal("a folder is not watched")
		}
		put(t, folder, name)
		if got := told(n); !slices.Equal(got, []string{folder + " " + name}) {
			t.Errorf("told of %q", got)
		}
	}
	n.Unwatch(folder)
	put(t, folder, "third")
	if got := told(n); got != nil || len(n.folders)+len(n.descriptors) > 0 {
		t.Errorf("told of %q in a folder that is not watched any more; known are %v", got, n.folders)
	}
	n.Unwatch(folder)
}

func TestNudgeEndsOneWait(t *testing.T) {
	n, _ := watching(t)
	n.Nudge()
	if !readable(t, n.wakefd) {
		t.Fatal("a nudge is not seen")
	}
	n.Wait(-1, func(folder, name string) { t.Errorf("told of %s in %s", name, folder) })
	if readable(t, n.wakefd) {
		t.Error("one nudge ends two waits")
	}
	n.Wait(0, func(folder, name string) { t.Errorf("told of %s in %s", name, folder) })
}

// A folder has one watch: under another path it is watched when what happened to the first was told.
func TestFolderThatWasMoved(t *testing.T) {
	n, folder := watching(t)
	before, after := makeFolder(t, folder, "before"), filepath.Join(folder, "after")
	if !n.Watch(before) {
		t.Fatal("a folder is not watched")
	}
	if err := os.Rename(before, after); err != nil {
		t.Fatal(err)
	}
	if n.Watch(after) {
		t.Error("a folder is watched under two paths")
	}
	if got := told(n); !slices.Equal(got, []string{before + " "}) {
		t.Errorf("told of %q", got)
	}
	told(n) // that it is not watched
	if !n.Watch(after) || len(n.folders) != 1 || len(n.descriptors) != 1 {
		t.Errorf("it is not watched where it is now: %v", n.folders)
	}
}

// Another folder at the path of one that went away is watched in its place.
func TestAnotherFolderAtThePath(t *testing.T) {
	n, folder := watching(t)
	path := makeFolder(t, folder, "path")
	if !n.Watch(path) {
		t.Fatal("a folder is not watched")
	}
	if err := os.Rename(path, path+".away"); err != nil {
		t.Fatal(err)
	}
	makeFolder(t, path)
	if !n.Watch(path) || len(n.folders) != 1 || len(n.descriptors) != 1 {
		t.Errorf("watched are %v, %v", n.folders, n.descriptors)
	}
	put(t, path, "here")
	put(t, path+".away", "there")
	if got := told(n); !slices.Equal(got, []string{path + " here"}) {
		t.Errorf("told of %q", got)
	}
}

// What may change without a notice is not said to be watched.
func TestFoldersThatTellOfNothing(t *testing.T) {
	n, folder := watching(t)
	var log bytes.Buffer
	n.log = slog.New(slog.NewTextHandler(&log, nil))
	link, file := filepath.Join(folder, "link"), filepath.Join(folder, "file")
	put(t, file)
	if err := os.Symlink(makeFolder(t, folder, "real"), link); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{link, file, filepath.Join(folder, "missing"), "/proc"} {
		if n.Watch(path) {
			t.Errorf("%s is said to tell of all changes", path)
		}
	}
	for path, want := range map[string]bool{
		folder: true, link: false, filepath.Join(folder, "missing"): false, "/proc": false,
	} {
		if got := TellsOfChanges(path); got != want {
			t.Errorf("whether %s tells of changes: %v", path, got)
		}
	}
	if !remoteFileSystem(filepath.Join(file, "below")) || remoteFileSystem(filepath.Join(folder, "missing")) {
		t.Error("what cannot be known is not taken for remote, or what is not there is")
	}
	if log.Len() > 0 {
		t.Errorf("logged: %s", &log)
	}
}

// What the machine's own disks and memory have is not taken for what others change unnoticed.
func TestFileSystemsOfThisMachine(t *testing.T) {
	own := []int64{unix.EXT4_SUPER_MAGIC, unix.TMPFS_MAGIC, unix.OVERLAYFS_SUPER_MAGIC, unix.XFS_SUPER_MAGIC,
		unix.BTRFS_SUPER_MAGIC}
	var st unix.Statfs_t
	for _, folder := range []string{t.TempDir(), "/dev", "/"} {
		if err := unix.Statfs(folder, &st); err != nil {
			t.Fatal(err)
		}
		if slices.Contains(own, int64(st.Type)) && remoteFileSystem(folder) {
			t.Errorf("%s, of type %x, is taken for remote", folder, st.Type)
		}
	}
}

func TestClosedDescriptors(t *testing.T) {
	made, err := New(slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	n, ok := made.(*inotify)
	if !ok {
		t.Skip("no inotify")
	}
	n.Close()
	for name, fd := range map[string]int{"notices": n.fd, "nudges": n.wakefd} {
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != unix.EBADF {
			t.Errorf("the descriptor of %s is open: %v", name, err)
		}
	}
}

// Where there is no descriptor for notices files are polled for; where there is one only, it is given back.
func TestNoDescriptors(t *testing.T) {
	lowest := func() int {
		fd, err := unix.Open("/", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		unix.Close(fd)
		return fd
	}
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	free := lowest()
	var log bytes.Buffer
	newWith := func(descriptors int) (Notifier, error) {
		less := unix.Rlimit{Cur: uint64(free + descriptors), Max: limit.Max}
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &less); err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
				t.Fatal(err)
			}
		}()
		return New(slog.New(slog.NewTextHandler(&log, nil)))
	}
	n, err := newWith(0)
	if _, ok := n.(*none); !ok || err != nil || !strings.Contains(log.String(), "files are polled for") {
		t.Errorf("without descriptors: %v, %v, logged %q", n, err, &log)
	}
	if n, err := newWith(1); err == nil || !strings.Contains(err.Error(), "eventfd: ") {
		t.Errorf("with one descriptor: %v, %v", n, err)
	}
	if got := lowest(); got != free {
		t.Errorf("descriptor %d is kept", free)
	}
}

func TestLimitsOfWaiting(t *testing.T) {
	for limit, want := range map[time.Duration]int{
		-1: -1, -time.Hour: -1, 0: 0, 1: 1, time.Millisecond: 1, time.Millisecond + 1: 2, 2 * time.Millisecond: 2,
		time.Second: 1000,
	} {
		if got := milliseconds(limit); got != want {
			t.Errorf("%v are %d ms; want %d", limit, got, want)
		}
	}
}
