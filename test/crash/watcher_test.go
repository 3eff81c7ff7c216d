package crash

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// watcher counts, from outside, how often each name appeared in the results
// folder: by a rename, a link, a copy or however else.
type watcher struct {
	t       *testing.T
	file    *os.File
	results string
	folders map[int32]string // of watch descriptors, relative to results
	counts  map[string]int
	done    chan struct{}
}

// watch begins before anything is published, with the folders that will be
// there: a folder that is made later could not be watched from its beginning.
func watch(t *testing.T, folder string, below ...string) *watcher {
	t.Helper()
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	w := &watcher{t: t, file: os.NewFile(uintptr(fd), "inotify"), results: filepath.Join(folder, "results"), folders: map[int32]string{}, counts: map[string]int{}, done: make(chan struct{})}
	for _, name := range append([]string{"."}, below...) {
		path := filepath.Join(folder, "results", name)
		if err := os.MkdirAll(path, 0o755); err != nil {
			t.Fatal(err)
		}
		descriptor, err := unix.InotifyAddWatch(fd, path, unix.IN_MOVED_TO|unix.IN_CREATE|unix.IN_MODIFY|unix.IN_DELETE|unix.IN_MOVED_FROM)
		if err != nil {
			t.Fatal(err)
		}
		w.folders[int32(descriptor)] = name
	}
	go w.read()
	return w
}

func (w *watcher) read() {
	defer close(w.done)
	buffer := make([]byte, 64<<10)
	for {
		n, err := w.file.Read(buffer)
		if err != nil {
			return
		}
		for rest := buffer[:n]; len(rest) > 0; {
			var last bool
			if rest, last = w.event(rest); last {
				return
			}
		}
	}
}

// lastName is the file that stop makes; its event comes after all others.
const lastName = ".seen-all"

// event counts one event and returns the bytes behind it.
func (w *watcher) event(raw []byte) (rest []byte, last bool) {
	descriptor := int32(binary.NativeEndian.Uint32(raw[0:]))
	mask := binary.NativeEndian.Uint32(raw[4:])
	length := binary.NativeEndian.Uint32(raw[12:])
	name := string(bytes.TrimRight(raw[16:16+length], "\x00"))
	switch path := filepath.Join(w.folders[descriptor], name); {
	case mask&unix.IN_Q_OVERFLOW != 0:
		w.t.Error("the watcher lost events")
	case strings.HasPrefix(name, "."): // not yet published
	case mask&unix.IN_MOVED_TO != 0:
		w.counts[path]++
	case mask&(unix.IN_ISDIR|unix.IN_IGNORED) == 0:
		w.t.Errorf("the result %s was not renamed into place: event %#x", path, mask)
	}
	return raw[16+length:], name == lastName
}

// stop ends the watching and returns the counts.
func (w *watcher) stop() map[string]int {
	path := filepath.Join(w.results, lastName)
	write(w.t, path, "")
	<-w.done
	_ = w.file.Close()
	if err := os.Remove(path); err != nil {
		w.t.Error(err)
	}
	return w.counts
}
