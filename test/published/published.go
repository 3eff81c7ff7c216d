// Package published watches a folder of results from outside: which names appear in it,
// how often, and in what way.
package published

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// Watcher notes each time that a name appeared in the results
// folder, by a rename, and whatever else happened there. It insists that a file
// is renamed from a name with a dot in that folder: the kernel takes two equal
// events in a row for one, but then those of two renames are told apart.
type Watcher struct {
	t       *testing.T
	file    *os.File
	results string
	folders map[int32]string   // of watch descriptors, relative to results
	sizes   map[string][]int64 // of the files that appeared, as seen a moment later
	wrong   []string           // what else happened
	leaving map[uint32]bool    // cookies of renames of names with a dot, which may mix
	done    chan struct{}
}

// Watch begins before anything is published, with the folders below results that will be
// there: a folder that is made later could not be watched from its beginning.
func Watch(t *testing.T, folder string, below ...string) *Watcher {
	t.Helper()
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	w := &Watcher{t: t, file: os.NewFile(uintptr(fd), "inotify"), results: filepath.Join(folder, "results"),
		folders: map[int32]string{}, sizes: map[string][]int64{}, leaving: map[uint32]bool{},
		done: make(chan struct{})}
	for _, name := range append([]string{"."}, below...) {
		path := filepath.Join(folder, "results", name)
		if err := os.MkdirAll(path, 0o755); err != nil {
			t.Fatal(err)
		}
		descriptor, err := unix.InotifyAddWatch(fd, path,
			unix.IN_MOVED_TO|unix.IN_CREATE|unix.IN_MODIFY|unix.IN_DELETE|unix.IN_MOVED_FROM)
		if err != nil {
			t.Fatal(err)
		}
		w.folders[int32(descriptor)] = name
	}
	go w.read()
	return w
}

func (w *Watcher) read() {
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
func (w *Watcher) event(raw []byte) (rest []byte, last bool) {
	descriptor := int32(binary.NativeEndian.Uint32(raw[0:]))
	mask := binary.NativeEndian.Uint32(raw[4:])
	cookie := binary.NativeEndian.Uint32(raw[8:])
	length := binary.NativeEndian.Uint32(raw[12:])
	name := string(bytes.TrimRight(raw[16:16+length], "\x00"))
	switch path := filepath.Join(w.folders[descriptor], name); {
	case mask&unix.IN_Q_OVERFLOW != 0:
		w.wrong = append(w.wrong, "the watcher lost events")
	case strings.HasPrefix(name, "."): // not yet published
		if mask&unix.IN_MOVED_FROM != 0 {
			w.leaving[cookie] = true
		}
	case mask&unix.IN_MOVED_TO != 0 && w.leaving[cookie]:
		delete(w.leaving, cookie)
		w.sizes[path] = append(w.sizes[path], w.sizeOf(path))
	case mask&(unix.IN_ISDIR|unix.IN_IGNORED) == 0:
		w.wrong = append(w.wrong, fmt.Sprintf("the result %s was not renamed into place: event %#x", path, mask))
	}
	return raw[16+length:], name == lastName
}

func (w *Watcher) sizeOf(path string) int64 {
	info, err := os.Stat(filepath.Join(w.results, path))
	if err != nil {
		w.wrong = append(w.wrong, err.Error())
		return 0
	}
	return info.Size()
}

// Stop ends the watching. It returns the sizes that each file appeared with, in their
// order, and what should not have happened.
func (w *Watcher) Stop() (sizes map[string][]int64, wrong []string) {
	path := filepath.Join(w.results, lastName)
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		w.t.Fatal(err)
	}
	<-w.done
	_ = w.file.Close()
	if err := os.Remove(path); err != nil {
		w.t.Error(err)
	}
	return w.sizes, w.wrong
}
