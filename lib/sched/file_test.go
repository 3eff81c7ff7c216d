package sched

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"fairway/lib/sched/internal/notices"
)

func waitFile(t *testing.T, s *Scheduler, q FileQuery) <-chan FileState {
	found := make(chan FileState, 1)
	go func() {
		st, err := s.WaitFile(patient(t), q)
		if err != nil {
			t.Errorf("wait for %s: %v", q.Path, err)
		}
		found <- st
	}()
	return found
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestWaitFileAppearsInFolderThatComesLater(t *testing.T) {
	s := newTest(t, Config{FileInterval: time.Millisecond})
	dir := filepath.Join(t.TempDir(), "a", "b")
	found := waitFile(t, s, Appears(filepath.Join(dir, "f")))
	until(t, s, "joined", func() bool { return members(s, "file") == 1 })
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "f"), "x")
	if st := <-found; st.Info == nil || st.Info.Name() != "f" {
		t.Fatalf("got %v", st)
	}
}

func TestWaitFileChangesAndDisappears(t *testing.T) {
	s := newTest(t, Config{FileInterval: time.Hour})
	path := filepath.Join(t.TempDir(), "f")
	write(t, path, "x")
	st, err := StatFile(path)
	if err != nil {
		t.Fatal(err)
	}
	found := waitFile(t, s, Changes(path, st))
	write(t, path, "longer")
	<-found
	gone := waitFile(t, s, Disappears(path))
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if st = <-gone; st.Info != nil {
		t.Fatalf("got %v", st)
	}
}

// Nothing about a new entry is told to who watches the folder above.
func TestWaitFileOfAFolderNoticesEntries(t *testing.T) {
	s := newTest(t, Config{FileInterval: time.Hour})
	dir := t.TempDir()
	for _, change := range []func() error{
		func() error { return os.WriteFile(filepath.Join(dir, "new"), nil, 0o600) },
		func() error { return os.Rename(filepath.Join(dir, "new"), filepath.Join(dir, "old")) },
		func() error { return os.Remove(filepath.Join(dir, "old")) },
	} {
		before := time.Now().Add(-time.Hour)
		if err := os.Chtimes(dir, before, before); err != nil {
			t.Fatal(err)
		}
		st, err := StatFile(dir)
		if err != nil {
			t.Fatal(err)
		}
		found := waitFile(t, s, Changes(dir, st))
		until(t, s, "joined", func() bool { return members(s, "file") == 1 })
		if err := change(); err != nil {
			t.Fatal(err)
		}
		<-found
	}
}

func TestWaitFileCancelled(t *testing.T) {
	s := newTest(t, Config{})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		_, err := s.WaitFile(ctx, Appears(filepath.Join(t.TempDir(), "never")))
		ended <- err
	}()
	until(t, s, "joined", func() bool { return members(s, "file") == 1 })
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
}

func TestWaitFileFollowsLinks(t *testing.T) {
	s := newTest(t, Config{FileInterval: time.Millisecond})
	target := filepath.Join(t.TempDir(), "target")
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(target, link); err != nil {
		t.Skip(err)
	}
	found := waitFile(t, s, Appears(link))
	until(t, s, "joined", func() bool { return members(s, "file") == 1 })
	write(t, target, "x")
	if st := <-found; st.Info == nil {
		t.Fatal("nothing found")
	}
}

func TestManyWaitForFilesInOneFolder(t *testing.T) {
	s := newTest(t, Config{FileInterval: time.Hour})
	dir := t.TempDir()
	var founds []<-chan FileState
	for i := range 100 {
		founds = append(founds, waitFile(t, s, Appears(filepath.Join(dir, fmt.Sprint(i%50)))))
	}
	for i := range 50 {
		write(t, filepath.Join(dir, fmt.Sprint(i)), "x")
	}
	for i, found := range founds {
		if st := <-found; st.Info == nil || st.Info.Name() != fmt.Sprint(i%50) {
			t.Errorf("%d: got %v", i, st)
		}
	}
}

func TestHandleCloseForgetsTheKind(t *testing.T) {
	s := newTest(t, Config{})
	h := Register(s, Kind[int, int]{Name: "short"})
	ended := make(chan error)
	go func() { _, err := h.Wait(context.Background(), 1); ended <- err }()
	until(t, s, "waiting", func() bool { return members(s, "short") == 1 })
	h.Close()
	if err := <-ended; !errors.Is(err, ErrClosed) {
		t.Errorf("got %v", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, src := range s.sources {
		if src.name == "short" {
			t.Error("still known")
		}
	}
}

func TestPanicInAConditionEndsItsWaitOnly(t *testing.T) {
	s := newTest(t, Config{FileInterval: time.Millisecond})
	path := filepath.Join(t.TempDir(), "f")
	calls := 0
	var p *PanicError
	_, err := s.WaitFile(patient(t), FileQuery{Path: path, Until: func(FileState) bool {
		if calls++; calls > 1 {
			panic("boom")
		}
		return false
	}})
	if !errors.As(err, &p) || p.Callback != "Until" {
		t.Errorf("got %v", err)
	}
	found := waitFile(t, s, Appears(path))
	until(t, s, "joined", func() bool { return members(s, "file") == 1 })
	write(t, path, "x")
	<-found
}

func TestPanicAtTheFirstLookEndsItsWaitOnly(t *testing.T) {
	s := newTest(t, Config{})
	var p *PanicError
	_, err := s.WaitFile(patient(t), FileQuery{Path: t.TempDir(), Until: func(FileState) bool { panic("boom") }})
	if !errors.As(err, &p) || p.Callback != "Until" {
		t.Errorf("got %v", err)
	}
}

// hookedNotices is a Notifier that tells what it was told, and lets a test do something in the
// middle of it.
type hookedNotices struct {
	notices.Notifier
	watched  map[string]bool
	watching func(folder string)
	waiting  func(changed func(folder, name string))
}

func (n *hookedNotices) Watch(folder string) bool {
	n.watching(folder)
	n.watched[folder] = true
	return true
}

func (n *hookedNotices) Wait(_ time.Duration, changed func(folder, name string)) { n.waiting(changed) }

// A request that joins while folders are watched is looked at only when its own folder is
// watched too. Otherwise a file that appears in between would be seen neither by the look nor by
// a notice.
func TestFileIsNotLookedAtBeforeItsFolderIsWatched(t *testing.T) {
	s := newTest(t, Config{})
	other, first, second := filepath.Join(t.TempDir(), "f"), filepath.Join(t.TempDir(), "f"),
		filepath.Join(t.TempDir(), "f")
	n := &hookedNotices{Notifier: notices.None(), watched: make(map[string]bool)}
	set := newFileSet(n, time.Hour, time.Hour)
	h := Register(s, Kind[FileQuery, FileState]{Name: "by hand"})
	request := func(path string) *fileRequest {
		r := &fileRequest{Value: Appears(path)}
		r.init(h.src, r)
		return r
	}
	late := request(second)
	n.watching = func(folder string) {
		if folder == filepath.Dir(first) {
			set.group(late, true)
		}
	}
	n.waiting = func(changed func(folder, name string)) {
		if n.watched[filepath.Dir(second)] || !n.watched[filepath.Dir(first)] {
			return
		}
		write(t, second, "x") // nobody is told: its folder is not watched
	}
	set.group(request(other), true)
	set.block(0) // the next look by the clock is in an hour
	set.group(request(first), true)
	for range 3 {
		set.block(0)
	}
	if late.state.Load() == entryWaiting {
		t.Fatal("the file is there and was not seen")
	}
}
