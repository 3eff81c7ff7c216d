package pilot

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"fairway/internal/pilot/report"
	"fairway/internal/wire"
	"fairway/lib/sched"
	"fairway/test/files"
)

// Two pilots of a run work on a node, one after the other. The cache stays between them;
// when the run is over, nothing is left.
func TestNothingIsLeftOnANodeWhenTheRunIsOver(t *testing.T) {
	q := newTaskQueue(t)
	folder := filepath.Join(t.TempDir(), "fairway-state")
	stored := filepath.Join(q.folder, "in")
	files.Write(t, stored, "cached\n")
	of := func(id string) Config {
		c := q.config(id)
		c.InScratch(folder)
		return c
	}
	first := q.start(of("p1"))
	a := shell("cat in > out", writes("out"))
	a.Inputs = []*wire.InputFile{{File: &wire.FileRef{Lfn: "in", Version: 1, Tag: 1}, Size: 7, Pfn: "file:" + stored}}
	expect(t, q.run("p1", a), wire.Outcome_OUTCOME_SUCCEEDED, "")
	first.Process.Signal(os.Interrupt) // as at the end of an allocation
	first.wait()
	if _, err := os.Stat(filepath.Join(folder, scratchCache)); err != nil {
		t.Error("the run goes on, and its next pilot finds no cache:", err)
	}
	second := q.start(of("p2"))
	expect(t, q.run("p2", shell("true")), wire.Outcome_OUTCOME_SUCCEEDED, "")
	q.change(func() { q.pilot("p2").leave, q.pilot("p2").news = true, true })
	second.wait()
	if _, err := os.Lstat(folder); !errors.Is(err, fs.ErrNotExist) {
		t.Error("the run is over, and its folder is on the node:", err)
	}
}

func claimed(t *testing.T, folder string) *scratch {
	t.Helper()
	s, err := claimScratch(t.Context(), folder, false, sched.Default(), slog.New(slog.NewTextHandler(t.Output(), nil)))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestTheLastPilotOnANodeRemovesTheScratchFolder(t *testing.T) {
	folder, log := filepath.Join(t.TempDir(), "fairway-a"), slog.New(slog.DiscardHandler)
	first, second := claimed(t, folder), claimed(t, folder)
	files.Write(t, filepath.Join(folder, scratchCache, "p", "file"), "x")
	first.release(true, log)
	if _, err := os.Stat(filepath.Join(folder, scratchCache, "p", "file")); err != nil {
		t.Error("another pilot is there:", err)
	}
	second.release(true, log)
	if _, err := os.Lstat(folder); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// The batch system ends pilots that have only begun, in any order.
func TestPilotsThatNobodyAnsweredLeaveNoScratchFolder(t *testing.T) {
	folder, log := filepath.Join(t.TempDir(), "fairway-a"), slog.New(slog.DiscardHandler)
	made, found := claimed(t, folder), claimed(t, folder)
	made.release(false, log)
	found.release(false, log)
	if _, err := os.Lstat(folder); !errors.Is(err, fs.ErrNotExist) {
		t.Error("nobody was answered, and the folder is there:", err)
	}
	made, heard := claimed(t, folder), claimed(t, folder)
	heard.answered()
	made.release(false, log)
	heard.release(false, log)
	if _, err := os.Lstat(folder); err != nil {
		t.Error("the run goes on, and its folder is gone:", err)
	}
}

// A pilot that the batch system ends does not hear that the run is over. It may be the last on
// the node, or one of the next run.
func TestAPilotThatIsNotToldOfTheEndRemovesTheScratchFolder(t *testing.T) {
	folder, log := filepath.Join(t.TempDir(), "fairway-a"), slog.New(slog.DiscardHandler)
	gone := func() bool {
		_, err := os.Lstat(folder)
		return errors.Is(err, fs.ErrNotExist)
	}
	told, ended := claimed(t, folder), claimed(t, folder)
	ended.answered()
	told.release(true, log)
	if ended.release(false, log); !gone() {
		t.Error("the last pilot did not hear that the run is over, and leaves its folder")
	}
	if claimed(t, folder).release(false, log); !gone() {
		t.Error("a pilot that nobody has answered leaves its folder")
	}
	told, next := claimed(t, folder), claimed(t, folder)
	told.release(true, log)
	next.answered()
	claimed(t, folder).release(false, log)
	if next.release(false, log); gone() {
		t.Error("the next run goes on, and its pilots find no cache")
	}
}

// What a person or another pilot still wants stays.
func TestKeptSandboxesAndUntoldResultsStay(t *testing.T) {
	for _, wanted := range []string{KeptFolder + "/7/out", report.SpoolFolder + "/0000000000000001.result"} {
		folder := filepath.Join(t.TempDir(), "fairway-a")
		s := claimed(t, folder)
		files.Write(t, filepath.Join(folder, scratchSandbox, wanted), "x")
		files.Write(t, filepath.Join(folder, scratchCache, "p", "file"), "x")
		s.release(true, slog.New(slog.DiscardHandler))
		if _, err := os.Stat(filepath.Join(folder, scratchSandbox, wanted)); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(filepath.Join(folder, scratchCache)); !errors.Is(err, fs.ErrNotExist) {
			t.Error("the cache is there:", err)
		}
	}
}

// Folders of other states go when nobody has used them for long. What is in use, young,
// or not a scratch folder of this user stays.
func TestOldScratchFoldersOfThisUserGo(t *testing.T) {
	all, log := t.TempDir(), slog.New(slog.DiscardHandler)
	old := time.Now().Add(-ScratchLife - time.Hour)
	for _, name := range []string{"fairway-old", "fairway-used", "fairway-young"} {
		s := claimed(t, filepath.Join(all, name))
		s.answered()
		files.Write(t, filepath.Join(all, name, scratchCache, "p", "file"), "x")
		if name != "fairway-used" {
			s.release(false, log)
		} else {
			defer s.release(false, log)
		}
		if name != "fairway-young" {
			if err := os.Chtimes(filepath.Join(all, name, scratchLock), old, old); err != nil {
				t.Fatal(err)
			}
		}
	}
	files.Write(t, filepath.Join(all, "fairway-notes", "mine.txt"), "x")
	files.Write(t, filepath.Join(all, "other", scratchLock), "x")
	if err := os.Chtimes(filepath.Join(all, "other", scratchLock), old, old); err != nil {
		t.Fatal(err)
	}
	target := filepath.Join(t.TempDir(), "target")
	files.Write(t, filepath.Join(target, scratchLock), "x")
	if err := errors.Join(
		os.Chtimes(filepath.Join(target, scratchLock), old, old), os.Symlink(target, filepath.Join(all, "fairway-link")),
	); err != nil {
		t.Fatal(err)
	}
	claimed(t, filepath.Join(all, "fairway-new")).release(false, log)
	for name, stays := range map[string]bool{
		"fairway-old": false, "fairway-used/cache/p/file": true, "fairway-young/cache/p/file": true,
		"fairway-notes/mine.txt": true, "other/" + scratchLock: true, "fairway-link/" + scratchLock: true,
	} {
		if _, err := os.Stat(filepath.Join(all, name)); (err == nil) != stays {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// In a place where everybody may write, somebody may have made the folder before.
func TestAScratchFolderThatIsNotOursIsRefused(t *testing.T) {
	for what, prepare := range map[string]func(folder string) error{
		"a link":        func(folder string) error { return os.Symlink(t.TempDir(), folder) },
		"a file":        func(folder string) error { return os.WriteFile(folder, nil, 0o600) },
		"open to all":   func(folder string) error { return errors.Join(os.Mkdir(folder, 0o700), os.Chmod(folder, 0o777)) },
		"of other user": func(folder string) error { return errors.Join(os.Mkdir(folder, 0o700), os.Chown(folder, 12345, 12345)) },
	} {
		t.Run(what, func(t *testing.T) {
			if what == "of other user" && os.Getuid() != 0 {
				t.Skip("only root can give a folder away")
			}
			folder := filepath.Join(t.TempDir(), "fairway-a")
			if err := prepare(folder); err != nil {
				t.Fatal(err)
			}
			s, err := claimScratch(t.Context(), folder, false, sched.Default(), slog.New(slog.DiscardHandler))
			if err == nil {
				s.release(false, slog.New(slog.DiscardHandler))
				t.Fatal("it was taken")
			}
			t.Log(err)
		})
	}
}

// A pilot that comes while the last one removes the folder gets a new one, and it stays.
func TestPilotsComeWhileTheScratchFolderIsRemoved(t *testing.T) {
	folder, log := filepath.Join(t.TempDir(), "fairway-a"), slog.New(slog.DiscardHandler)
	var pilots sync.WaitGroup
	for range 4 {
		pilots.Go(func() {
			for range 25 {
				s, err := claimScratch(context.Background(), folder, false, sched.Default(), log)
				if err != nil {
					t.Error(err)
					return
				}
				if !standsAt(s.lock, filepath.Join(folder, scratchLock)) {
					t.Error("the folder went while a pilot had it")
				}
				s.release(true, log)
			}
		})
	}
	pilots.Wait()
}

// Where users share their caches, the group reads the cache in a scratch folder and nothing else
// there, and each user has a folder of their own, which goes as any other.
func TestTheGroupReadsTheCacheAlone(t *testing.T) {
	q := newTaskQueue(t)
	parent := t.TempDir()
	cfg := q.config("p1")
	cfg.Cache = CacheConfig{Mode: CacheHost, Dir: "set below", Group: true, MaxSpace: 1 << 20}
	cfg.InScratch(filepath.Join(parent, "fairway-state"))
	folder := filepath.Join(parent, fmt.Sprintf("fairway-state-%d", os.Geteuid()))
	for _, mode := range []fs.FileMode{0o700, 0o750} { // it may be there
		if err := errors.Join(os.MkdirAll(folder, 0o700), os.Chmod(folder, mode)); err != nil {
			t.Fatal(err)
		}
	}
	p := q.start(cfg)
	expect(t, q.run("p1", shell("echo > out", writes("out"))), wire.Outcome_OUTCOME_SUCCEEDED, "")
	for name, want := range map[string]fs.FileMode{".": 0o750, "cache": 0o750, "cache/p1*": 0o750, "sandbox": 0o700} {
		found, _ := filepath.Glob(filepath.Join(folder, name))
		if len(found) != 1 {
			t.Errorf("%s: %v", name, found)
			continue
		}
		if info, err := os.Stat(found[0]); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s has the mode %v, and should have %v; %v", name, info.Mode(), want, err)
		}
	}
	q.change(func() { q.pilot("p1").leave, q.pilot("p1").news = true, true })
	p.wait()
	if left, _ := os.ReadDir(parent); len(left) > 0 {
		t.Error("left:", left)
	}
}

// A scratch folder in which the group may write is refused, and one without a shared cache.
func TestAFolderThatTheGroupWritesIsRefused(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "fairway-a")
	if err := errors.Join(os.Mkdir(folder, 0o700), os.Chmod(folder, 0o770)); err != nil {
		t.Fatal(err)
	}
	if _, err := claimScratch(t.Context(), folder, true, sched.Default(), slog.New(slog.DiscardHandler)); err == nil {
		t.Error("it was taken")
	}
	for _, mode := range []CacheMode{CachePilot, CacheNone, ""} {
		c := CacheConfig{Mode: mode, Dir: "/c", Group: true}
		if err := c.check(false); err == nil {
			t.Errorf("%q: a group shares nothing", mode)
		}
	}
}
