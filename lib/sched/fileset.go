package sched

import (
	"maps"
	"os"
	"path/filepath"
	"sync"
	"time"

	"fairway/lib/sched/internal/notices"
)

type fileRequest = Request[FileQuery, FileState]

// fileSet is the kind of file events. Everything that touches a file system
// happens in look, with no lock held, so that a file system that hangs delays
// waits for files only, and not even their cancellation.
type fileSet struct {
	notices.Notifier
	interval, recheck time.Duration

	mu      sync.Mutex
	folders map[string]*folder
	fresh   map[*fileRequest]bool // joined, not yet looked at
	linked  map[*fileRequest]bool // for links, whose targets have no notices here
	next    time.Time             // when to look at what is not watched
	all     time.Time             // when to look at everything
}

// folder holds the requests for files in one folder, and those for the folder
// itself, since an entry that comes or goes is told only to who watches inside.
type folder struct {
	path    string
	watched bool // notices tell everything
	tried   bool
	waiting map[*fileRequest]bool // for files in it
	itself  map[*fileRequest]bool // also in waiting of the folder above
}

func (f *folder) deserted() bool { return len(f.waiting) == 0 && len(f.itself) == 0 }

func newFileSet(n notices.Notifier, interval, recheck time.Duration) *fileSet {
	return &fileSet{
		Notifier: n, interval: interval, recheck: recheck, all: time.Now().Add(recheck),
		folders: make(map[string]*folder), fresh: make(map[*fileRequest]bool), linked: make(map[*fileRequest]bool),
	}
}

func (fs *fileSet) kind() Kind[FileQuery, FileState] {
	return Kind[FileQuery, FileState]{
		Name: "file", Group: fs.group, Block: fs.block, Unblock: fs.Nudge, Concurrent: true, slowBlock: true,
	}
}

func (fs *fileSet) group(r *fileRequest, joined bool) {
	fs.mu.Lock()
	f := fs.folder(filepath.Dir(r.Value.Path))
	if joined {
		f.waiting[r], fs.fresh[r] = true, true
	} else {
		delete(f.waiting, r)
		if own := fs.folders[r.Value.Path]; own != nil {
			delete(own.itself, r)
		}
		delete(fs.fresh, r)
		delete(fs.linked, r)
	}
	fs.mu.Unlock()
	if joined {
		fs.Nudge()
	}
}

// folder returns the entry for a folder. The caller holds the mutex.
func (fs *fileSet) folder(path string) *folder {
	f := fs.folders[path]
	if f == nil {
		f = &folder{path: path, waiting: make(map[*fileRequest]bool), itself: make(map[*fileRequest]bool)}
		fs.folders[path] = f
	}
	return f
}

// block waits for notices and looks at the files they name.
func (fs *fileSet) block(limit time.Duration) {
	fs.tend()
	var seen []*fileRequest
	fs.Wait(fs.patience(limit), func(folder, name string) { seen = append(seen, fs.concerned(folder, name)...) })
	fs.renew()
	fs.tend()
	for _, r := range seen {
		fs.check(r)
	}
}

// tend watches new folders, drops those nobody waits for, and looks at the
// files of new requests; in this order, so that no change falls between. A request
// that joins meanwhile is for the next time: its folder may not be among those watched now.
func (fs *fileSet) tend() {
	fresh, untried := fs.news()
	for _, f := range untried {
		watched := fs.Watch(f.path)
		fs.mu.Lock()
		f.watched = watched
		fs.mu.Unlock()
	}
	for _, path := range fs.deserted() {
		fs.Unwatch(path)
	}
	for r := range fresh {
		fs.check(r)
	}
}

// noteLink sees to it that a link is looked at by the clock.
func (fs *fileSet) noteLink(r *fileRequest) {
	info, err := os.Lstat(r.Value.Path)
	if err != nil || info.Mode()&os.ModeSymlink == 0 {
		return
	}
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if f := fs.folders[filepath.Dir(r.Value.Path)]; f != nil && f.waiting[r] {
		fs.linked[r] = true
	}
}

// news takes the new requests, and the folders to watch for them.
func (fs *fileSet) news() (fresh map[*fileRequest]bool, untried []*folder) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fresh, fs.fresh = fs.fresh, make(map[*fileRequest]bool)
	for _, f := range fs.folders {
		if !f.tried && !f.deserted() {
			f.tried = true
			untried = append(untried, f)
		}
	}
	return fresh, untried
}

func (fs *fileSet) deserted() (paths []string) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	for path, f := range fs.folders {
		if f.deserted() {
			delete(fs.folders, path)
			paths = append(paths, path)
		}
	}
	return paths
}

// patience is how long to wait for notices: not at all when there are new
// requests, until the next look when some files are not watched, and else until
// everything is looked at.
func (fs *fileSet) patience(limit time.Duration) time.Duration {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if len(fs.fresh) > 0 {
		return 0
	}
	if limit <= 0 {
		limit = -1
	}
	due := fs.all
	for _, f := range fs.folders {
		if !f.deserted() && (!f.watched || len(fs.linked) > 0) && fs.next.Before(due) {
			due = fs.next
		}
	}
	if until := max(0, time.Until(due)); len(fs.folders) > 0 && (limit < 0 || until < limit) {
		return until
	}
	return limit
}

// concerned returns the requests that a notice is about: those for one file, for
// all of a folder that can't be watched any longer, or all.
func (fs *fileSet) concerned(path, name string) (found []*fileRequest) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	for _, f := range fs.folders {
		if path != "" && path != f.path {
			continue
		}
		if path != "" && name == "" {
			f.watched, f.tried = false, false
		}
		for r := range f.waiting {
			if name == "" || filepath.Base(r.Value.Path) == name {
				found = append(found, r)
			}
		}
		for r := range f.itself {
			found = append(found, r)
		}
	}
	return found
}

// renew has folders watched and their files looked at again by the clock: those
// that can't be watched, which may have become watchable, every interval, and
// all others every recheck, since a folder above them may have been replaced.
func (fs *fileSet) renew() {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	now := time.Now()
	all := !now.Before(fs.all)
	if !all && now.Before(fs.next) {
		return
	}
	fs.next = now.Add(fs.interval)
	if all {
		fs.all = now.Add(fs.recheck)
	}
	maps.Copy(fs.fresh, fs.linked)
	for _, f := range fs.folders {
		if f.watched && !all {
			continue
		}
		f.tried = false
		maps.Copy(fs.fresh, f.waiting)
		maps.Copy(fs.fresh, f.itself)
	}
}

// noteFolder has a folder that is waited for watched from inside too, and looked
// at again once it is.
func (fs *fileSet) noteFolder(r *fileRequest) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	above := fs.folders[filepath.Dir(r.Value.Path)]
	if above == nil || !above.waiting[r] {
		return // it is not waited for any more
	}
	if f := fs.folder(r.Value.Path); !f.itself[r] {
		f.itself[r], fs.fresh[r] = true, true
	}
}

func (fs *fileSet) check(r *fileRequest) {
	fs.noteLink(r)
	st, accepted, err := r.Value.check()
	if err != nil || accepted {
		r.Done(st, err)
	} else if st.Info != nil && st.Info.IsDir() {
		fs.noteFolder(r)
	}
}
