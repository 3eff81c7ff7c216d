package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"connectrpc.com/connect"
	"golang.org/x/sys/unix"

	"fairway/internal/quantity"
	"fairway/internal/server/folder"
	"fairway/internal/server/loop"
	"fairway/internal/server/state"
	"fairway/internal/taskqueue"
)

// The disk of stored outputs is looked at while a server works. That it will be full is foreseen by how
// fast it fills and by what the known jobs are expected to store. When little is left, a lasting server
// makes room: results go that no run names (Core.Forgettable). If that is not enough, it starts no further
// jobs and takes no further runs until there is room.

const (
	// spacePeriod is how often the disk is looked at.
	spacePeriod = 10 * time.Second
	// spaceMemory is over how long the rate at which it fills is an average.
	spaceMemory = 5 * time.Minute
	// foreseenTime is how far ahead a full disk is told of that is foreseen by the rate alone.
	foreseenTime = 6 * time.Hour
	// maxReserve bounds what is to stay free: a fiftieth of the disk, or this.
	maxReserve = 1 << 30
)

// space is what is known of the disk.
type space struct {
	mu     sync.Mutex // held while it is looked at; guards all but held
	folder string     // of the stored outputs; empty: they are on another machine
	free   int64
	all    int64
	at     time.Time // of the last look; zero: none yet
	rate   float64   // bytes a second by which it fills
	told   bool      // that it will be full
	held   atomic.Pointer[string]

	crowded *loop.Mailbox[string] // what attempts said that had no room
}

func (s *space) reserve() int64 { return min(maxReserve, s.all/50) }

func (s *space) look(now time.Time, free, all int64) {
	if passed := now.Sub(s.at).Seconds(); !s.at.IsZero() && passed > 0 {
		part := min(1, passed/spaceMemory.Seconds())
		s.rate += part * (float64(s.free-free)/passed - s.rate)
	}
	s.free, s.all, s.at = free, all, now
}

// foresee says why the disk will be full, for a person; empty where that is not foreseen. expected is what
// the known jobs will store.
func (s *space) foresee(expected int64) string {
	left := max(0, s.free-s.reserve())
	when := time.Duration(0) // unknown
	if s.rate >= 1 {
		when = time.Duration(min(float64(left)/s.rate, 1e9) * float64(time.Second))
	}
	about := func() string { return when.Round(time.Minute).String() }
	switch {
	case expected > left && when > 0:
		return fmt.Sprintf("the disk of %s will be full in about %s: %s are free, and the jobs that are known are expected "+
			"to store %s more", s.folder, about(), quantity.Bytes(s.free), quantity.Bytes(expected))
	case expected > left:
		return fmt.Sprintf("the disk of %s will be full: %s are free, and the jobs that are known are expected to store %s "+
			"more", s.folder, quantity.Bytes(s.free), quantity.Bytes(expected))
	case when > 0 && when <= foreseenTime && s.free < s.all/10:
		return fmt.Sprintf("the disk of %s will be full in about %s: %s are free, and it fills by %s a minute", s.folder,
			about(), quantity.Bytes(s.free), quantity.Bytes(int64(s.rate*60)))
	}
	return ""
}

// refuse refuses further runs while the disk is full.
func (s *space) refuse() error {
	if why := s.held.Load(); why != nil {
		return connect.NewError(connect.CodeResourceExhausted, fmt.Errorf("no further run is taken: %s", *why))
	}
	return nil
}

func spaceOf(folder string) (free, all int64, err error) {
	var s unix.Statfs_t
	if err := unix.Statfs(folder, &s); err != nil {
		return 0, 0, fmt.Errorf("asking how full the disk of %s is: %w", folder, err)
	}
	return int64(s.Bavail) * s.Bsize, int64(s.Blocks) * s.Bsize, nil
}

func (s *Server) watchSpace(ctx context.Context) {
	if s.space.folder = s.storageFolder(); s.space.folder == "" {
		return
	}
	lookAgain(
		func() error { return s.lookAtSpace(ctx, time.Now()) },
		func() error { return s.sched.Sleep(ctx, spacePeriod) },
		func(err error) {
			if failed(ctx, err) {
				s.log.Warn("how full the disk of stored outputs is is not known", "error", err)
			}
		})
}

// failed reports whether an error says more than that the server, or its loop, comes to its end. The next server
// does what this one could not do any more.
func failed(ctx context.Context, err error) bool {
	return err != nil && ctx.Err() == nil && !errors.Is(err, loop.ErrEnded)
}

// lookAgain looks until a pause ends with an error. Of errors in a row the first one is told; jobs may be
// held until it goes well again.
func lookAgain(look, pause func() error, tell func(error)) {
	for well := true; ; {
		err := look()
		if err != nil && well {
			tell(err)
		}
		if well = err == nil; pause() != nil {
			return
		}
	}
}

func (s *Server) storageFolder() string {
	if stores := s.storage.Stores(); len(stores) == 0 || stores[0] != folder.StoragePrefix {
		return ""
	}
	if _, err := os.Stat(s.folders.Storage); err != nil { // it may be a link to another disk
		return s.folders.State
	}
	return s.folders.Storage
}

func (s *Server) lookAtSpace(ctx context.Context, now time.Time) error {
	free, all, err := s.config.Space(s.space.folder)
	if err != nil {
		return err
	}
	s.space.mu.Lock()
	defer s.space.mu.Unlock()
	s.space.look(now, free, all)
	expected, err := s.tellSpace(ctx)
	if err != nil || !s.config.Lasting {
		return err
	}
	s.keepSpare()
	return s.makeRoom(ctx, s.keeping.now(), expected)
}

// tellSpace tells the runs that are under way, once, that the disk will be full. expected is what the known
// jobs will store.
func (s *Server) tellSpace(ctx context.Context) (expected int64, err error) {
	err = s.inbox.Query(ctx, func(c *state.Cores) {
		for _, r := range s.runs.all() {
			expected += c.Dispatch.Expected(r.room.Run)
		}
	})
	why := s.space.foresee(expected)
	if err != nil || why == "" || s.space.told {
		s.space.told = s.space.told && why != ""
		return expected, err
	}
	s.space.told = true
	s.log.Warn(why)
	for _, r := range s.runs.all() {
		if r.concluded.Load() == nil {
			r.tellPerson(why + "; " + roomAdvice(s.config.Lasting))
		}
	}
	return expected, nil
}

func roomAdvice(lasting bool) string {
	if lasting {
		return "`fairway rm RUN` removes a run, and --dry-run tells what that gives back; a shorter retention has results " +
			"go sooner"
	}
	return "remove what you do not need there"
}

// makeRoom has results go while too little is free for what the known jobs are expected to store, as far as
// that is a tenth of the disk, and holds jobs if less than the reserve is.
func (s *Server) makeRoom(ctx context.Context, now time.Time, expected int64) error {
	short := s.space.reserve() - s.space.free
	freed, err := s.forgetFor(ctx, now, short+min(expected, s.space.all/10))
	if err != nil {
		return err
	}
	short -= freed
	held := s.space.held.Load() != nil
	switch {
	case short > 0 && !held:
		why := fmt.Sprintf("of the disk of %s only %s are free; %s", s.space.folder, quantity.Bytes(s.space.free),
			roomAdvice(true))
		if err := s.hold(ctx, why); err != nil {
			return err
		}
		s.space.held.Store(&why)
		s.log.Error("no further jobs are started: " + why)
		for _, r := range s.runs.all() {
			if r.concluded.Load() == nil {
				r.tellPerson("no further jobs are started: " + why)
			}
		}
	case held && s.space.free > s.space.reserve()*5/4:
		if err := s.hold(ctx, ""); err != nil {
			return err
		}
		s.space.held.Store(nil)
		s.log.Info("there is room on the disk again: jobs are started")
	}
	return nil
}

// forgetFor has results go that no run names, until so many bytes are given back or none is left.
func (s *Server) forgetFor(ctx context.Context, now time.Time, bytes int64) (freed int64, err error) {
	if bytes <= 0 {
		return 0, nil
	}
	var gone []taskqueue.UnusedResult
	err = s.inbox.Query(ctx, func(c *state.Cores) { gone = c.Dispatch.Forgettable(now, c.Dispatch.Results(), bytes) })
	if err == nil && len(gone) > 0 {
		err = s.forgetResults(ctx, gone)
	}
	if err != nil || len(gone) == 0 {
		return 0, err
	}
	for i := range gone {
		freed += gone[i].Bytes
	}
	s.log.Warn("results that no run names were removed, since the disk has too little room", "results", len(gone))
	return freed, nil
}

// crowded takes note in the loop that an attempt had no room.
func (s *Server) crowded(said string) {
	if s.config.Lasting {
		s.space.crowded.Put(said)
	}
}

// crowdedPause is how long results that were removed have to give their room back before others go.
const crowdedPause = time.Second

// makeRoomForOutputs has results go when an attempt had no room for its outputs, until as much again is free:
// nobody knows how large they are. The attempt is made again.
func (s *Server) makeRoomForOutputs(ctx context.Context) {
	for {
		said, err := s.space.crowded.Take(ctx, s.sched)
		if err != nil {
			return
		}
		if err := s.makeRoomAfter(ctx, said); err != nil && !errors.Is(err, loop.ErrEnded) {
			s.log.Warn("no room could be made for outputs", "error", err)
		}
		if s.sched.Sleep(ctx, crowdedPause) != nil {
			return
		}
	}
}

func (s *Server) makeRoomAfter(ctx context.Context, said []string) error {
	place := s.storageFolder()
	if place == "" {
		return nil
	}
	free, all, err := s.config.Space(place)
	if err != nil {
		return err
	}
	stored := func(text string) bool { return !strings.Contains(text, "left in the sandbox") }
	if slices.ContainsFunc(said, stored) || free < all/10 { // a sandbox may be on another disk
		_, err = s.forgetFor(ctx, s.keeping.now(), free+min(maxReserve, all/50))
	}
	return err
}

func (s *Server) hold(ctx context.Context, why string) error {
	return s.inbox.Deliver(ctx, func() *loop.Request {
		return &loop.Request{Dispatch: []taskqueue.Input{taskqueue.HoldJobs{Why: why}}}
	})
}
