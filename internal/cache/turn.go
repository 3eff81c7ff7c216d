package cache

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"log/slog"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"fairway/lib/sched"
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

// TurnTime is how long a cache waits for another pilot that brings a file in without getting
// any more of it. That pilot was stopped, or it will try again, which the one that waits can do
// too. A transfer that stands still ends by itself after about as long.
const TurnTime = time.Minute

// turns are the locks of all files of a host that are brought in. A nil one has everybody go on at
// once.
type turns struct {
	file  *os.File
	sched *sched.Scheduler
	log   *slog.Logger
	limit time.Duration // TurnTime
}

// placeOf is the byte that stands for a file.
func placeOf(name string) int64 {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(name))
	return int64(hash.Sum64() & math.MaxInt64 >> 1)
}

// take waits until no other pilot of the host brings the file in, or until arrived, which
// tells how much of it has come, has told the same for limit.
func (t *turns) take(ctx context.Context, name string, arrived func() string) (release func(), err error) {
	if t == nil {
		return func() {}, nil
	}
	place := placeOf(name)
	pause := minTurnPause
	began := time.Now()
	var come string
	for look := began; ; {
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
		if now := time.Now(); now.Sub(look) >= t.limit/looksPerLimit {
			look = now
			if more := arrived(); more != come {
				come, began = more, now
			} else if now.Sub(began) >= t.limit {
				t.log.Info("nothing more comes of a file that another pilot of this host brings in; it is brought in here too",
					"file", name)
				return func() {}, nil
			}
		}
		pause = min(2*pause, maxTurnPause)
	}
}

// looksPerLimit is how often a cache that waits looks how much has come.
const looksPerLimit = 20

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
	return c.turns.take(ctx, name, func() string { return c.comingAtPeers(name) })
}

// comingAtPeers tells how much of a file other pilots of the host have written.
func (c *Cache) comingAtPeers(name string) string {
	c.mu.Lock()
	folders := slices.Sorted(maps.Keys(c.peers))
	c.mu.Unlock()
	var come strings.Builder
	for _, folder := range folders {
		parts, _ := fs.Glob(os.DirFS(folder), c.partPath("*", name)) // the pattern is well formed
		for _, part := range parts {
			if info, err := os.Lstat(filepath.Join(folder, part)); err == nil {
				fmt.Fprintf(&come, "%s/%s %d %d\n", folder, part, info.Size(), info.ModTime().UnixNano())
			}
		}
	}
	return come.String()
}

// partOf names what is written of a file until it is complete.
func partOf(number, name string) string {
	return fmt.Sprintf("%s%s-%x", newPrefix, number, placeOf(name))
}
