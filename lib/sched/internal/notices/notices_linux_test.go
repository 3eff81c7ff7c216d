package notices

import (
	"log/slog"
	"path/filepath"
	"slices"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

func TestFolderThatGoesIsNotWatched(t *testing.T) {
	made, err := New(slog.Default())
	if err != nil {
		t.Fatal(err)
	}
	n, ok := made.(*inotify)
	if !ok {
		t.Skip("no inotify")
	}
	defer n.Close()
	folder, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil || !n.Watch(folder) {
		t.Skip("it tells of no changes here: ", err)
	}
	var told []string
	n.pass(&unix.InotifyEvent{Wd: n.descriptors[folder], Mask: unix.IN_DELETE_SELF}, "", func(folder, name string) {
		told = append(told, folder+" "+name)
	})
	if len(told) != 1 || told[0] != folder+" " || len(n.folders) != 0 || len(n.descriptors) != 0 {
		t.Errorf("told %q, watched %v, %v", told, n.folders, n.descriptors)
	}
}

// A notice without a name is as long as the smallest one, and counts.
func TestNoticesOfNoName(t *testing.T) {
	n := &inotify{folders: map[int32]string{}, descriptors: map[string]int32{}}
	event := unix.InotifyEvent{Wd: -1, Mask: unix.IN_Q_OVERFLOW}
	buf := unsafe.Slice((*byte)(unsafe.Pointer(&event)), unix.SizeofInotifyEvent)
	told := 0
	n.parse(slices.Concat(buf, buf), func(string, string) { told++ })
	if told != 2 {
		t.Errorf("%d notices", told)
	}
}
