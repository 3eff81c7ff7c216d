package cache

import (
	"context"
	"errors"
	"hash/fnv"
	"math"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"fairway/sched"
)

// turnsName is the file in Dir by which the pilots of a host bring each file in
// once: whoever does has a lock on one byte of it, whose place the name of the file
// says. The lock ends with its pilot, however that ends. Files that share a byte
// wait for each other, which is as rare as it is harmless.
const turnsName = ".turns"

// Pauses of a cache that waits for the one that brings a file in.
const (
	minTurnPause = time.Millisecond
	maxTurnPause = 50 * time.Millisecond
)

// turns are the locks of all files of a host. A nil one has everybody go on at once.
type turns struct {
	file  *os.File
	sched *sched.Scheduler
}

// take waits until no other pilot of the host brings the file in.
func (t *turns) take(ctx context.Context, name string) (release func(), err error) {
	if t == nil {
		return func() {}, nil
	}
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(name))
	place := int64(hash.Sum64() & math.MaxInt64 >> 1)
	pause := minTurnPause
	for {
		err := t.set(unix.F_WRLCK, place)
		switch {
		case err == nil:
			return func() { _ = t.set(unix.F_UNLCK, place) }, nil
		case !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EACCES):
			return func() {}, nil // the file system has no such locks: each brings its own
		}
		if err := t.sched.Sleep(ctx, pause); err != nil {
			return nil, err
		}
		pause = min(2*pause, maxTurnPause)
	}
}

func (t *turns) set(kind int16, place int64) error {
	for {
		err := unix.FcntlFlock(t.file.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: kind, Start: place, Len: 1})
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

func (t *turns) close() {
	if t != nil {
		_ = t.file.Close()
	}
}

// turn is take, where there are others to wait for.
func (c *Cache) turn(ctx context.Context, name string) (release func(), err error) {
	c.mu.Lock()
	alone := len(c.peers) == 0
	c.mu.Unlock()
	if alone {
		return func() {}, nil
	}
	return c.turns.take(ctx, name)
}
