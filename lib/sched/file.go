package sched

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"fairway/lib/sched/internal/notices"
)

// DefaultFileInterval is how often files are looked at where the system doesn't
// tell of changes, unless Config says otherwise.
const DefaultFileInterval = 250 * time.Millisecond

// FileRecheck is how often every file that is waited for is looked at, also where
// the system tells of changes: it doesn't tell of all.
const FileRecheck = 30 * time.Second

// FileClockStep is by how much the time of modification of a file may lag behind
// the clock: file systems use one that moves on in steps. Two changes within a
// step may leave the same time.
const FileClockStep = 10 * time.Millisecond

// FileState is what is found at a path: Info is nil while nothing is there.
type FileState struct {
	Info fs.FileInfo
}

// FileQuery asks for a state of a file.
type FileQuery struct {
	// Path of the file. Neither it nor its folder need exist.
	Path string
	// Until reports whether the state is the one waited for. It must not block. It
	// is called from one goroutine at a time and may be called more than once
	// for the same state.
	Until func(FileState) bool
}

// Appears asks for a file to exist. A file appears when it is created, before it
// has its contents; writers that want it seen complete rename it into place.
func Appears(path string) FileQuery {
	return FileQuery{path, func(st FileState) bool { return st.Info != nil }}
}

// Disappears asks for nothing to exist at path.
func Disappears(path string) FileQuery {
	return FileQuery{path, func(st FileState) bool { return st.Info == nil }}
}

// Changes asks for path to be in another state than since: created, removed,
// replaced, or with another size, mode or time of modification. The last is that
// of a folder when an entry comes, goes or is renamed.
func Changes(path string, since FileState) FileQuery {
	return FileQuery{path, func(st FileState) bool { return !since.same(st) }}
}

func (st FileState) same(o FileState) bool {
	a, b := st.Info, o.Info
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return os.SameFile(a, b) && a.Size() == b.Size() && a.Mode() == b.Mode() && a.ModTime().Equal(b.ModTime())
}

// StatFile returns the present state of path.
func StatFile(path string) (FileState, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return FileState{}, nil
	}
	return FileState{info}, err
}

// check finds out whether the present state of the file is the one waited for.
func (q FileQuery) check() (st FileState, accepted bool, err error) {
	if st, err = StatFile(q.Path); err != nil {
		return st, false, err
	}
	err = try("file", "Until", func() { accepted = q.Until(st) })
	return st, accepted, err
}

// WaitFile waits until q.Until accepts the state of q.Path and returns that
// state. The system's notices are used where it gives them (inotify); on file
// systems that tell nothing of changes made elsewhere (NFS, Lustre and their
// like) or by the kernel (/proc, /sys), for links, and while the folder does not
// exist, the file is looked at every Config.FileInterval. No notice tells that a
// folder above the file's was replaced, or that the file was written through a
// hard link in another folder or through a mapping: that is found after
// [FileRecheck] at the latest. States that last shorter than it takes to look
// may go unseen. An error other than the file's absence ends the wait.
func (s *Scheduler) WaitFile(ctx context.Context, q FileQuery) (FileState, error) {
	path, err := filepath.Abs(q.Path)
	if err != nil {
		return FileState{}, err
	}
	q.Path = path
	if st, accepted, err := q.check(); err != nil || accepted {
		return st, err
	}
	h, err := s.files()
	if err != nil {
		return FileState{}, err
	}
	return h.Wait(ctx, q)
}

// TellsOfChanges reports whether the system gives notice of entries that come, go
// or are written in a folder, so that [Scheduler.WaitFile] need not look by the
// clock more often than every [FileRecheck].
func TellsOfChanges(folder string) bool { return notices.TellsOfChanges(folder) }
