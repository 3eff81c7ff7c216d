package process

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"fairway/internal/quantity"
	"fairway/internal/wire"
)

// Scratch is the file system that sandboxes share: when it is nearly full, the attempt that has
// most more than its share ends, and the others go on. The zero value watches nothing.
type Scratch struct {
	Folder string // of the sandboxes
	Disk   int64  // what all sandboxes of the pilot may hold, in bytes; 0: what there is

	// For tests; nil: of the file system.
	look func(folder string) (free, all int64) // bytes; all is 0 where it is not known
	held func(folder string) int64

	ended *Watched  // for space; nil when it has gone
	quiet time.Time // until when its sandbox may still be removed
}

const (
	// lowSpace, in bytes, is how little is left when an attempt ends; of a small file system a
	// twentieth.
	lowSpace = 64 << 20
	// fastest, in bytes a second, is what fills a file system faster than any does. By it the
	// watchdog looks often where little is left, and seldom where much is.
	fastest = 4 << 30
	// cleaningTime is how long the sandbox of an attempt that has ended may take to go before
	// another one ends for the same want of space.
	cleaningTime = time.Second
	// maxCounted is how many entries of a sandbox are looked at; what more there is does not count.
	maxCounted = 100_000
)

// check ends at most one of the attempts that run, and returns when it is to look again.
func (s *Scratch) check(running map[*Watched]bool, now time.Time) time.Duration {
	if s.Folder == "" || len(running) == 0 {
		return never
	}
	look, held := s.look, s.held
	if look == nil {
		look, held = SpaceOf, sandboxBytes
	}
	free, all := look(s.Folder)
	if all == 0 {
		return never
	}
	if reserve := min(lowSpace, all/20); free > reserve {
		seconds := float64(free-reserve) / fastest
		return min(time.Minute, max(WatchInterval, time.Duration(seconds*float64(time.Second))))
	}
	if s.ended != nil && !running[s.ended] {
		s.ended, s.quiet = nil, now.Add(cleaningTime)
	}
	if s.ended == nil && now.After(s.quiet) {
		if r, why := overShare(running, held, free, s.Disk); r != nil {
			s.ended = r
			r.Exceeds(wire.Outcome_OUTCOME_OUT_OF_DISK, why)
		}
	}
	return WatchInterval
}

// overShare is the attempt that has most more than its share, nil where none has more. The share
// is the amount of disk that a job needs; of those that name none it is the same part of all.
func overShare(
	running map[*Watched]bool, held func(folder string) int64, free, disk int64,
) (worst *Watched, why string) {
	has, sum := make(map[*Watched]int64, len(running)), int64(0)
	for r := range running {
		has[r] = held(r.Folder)
		sum += has[r]
	}
	whole := sum + free
	if disk > 0 {
		whole = min(whole, disk)
	}
	most := int64(0)
	for r, bytes := range has {
		share, said := r.Disk, "its `needs: disk` of "
		if share == 0 {
			share, said = whole/int64(len(running)), "its share of "
		}
		if bytes-share > most {
			most, worst = bytes-share, r
			why = fmt.Sprintf("the job has %s in its sandbox, more than %s%s, and the node has %s left: it ended so that "+
				"others go on", quantity.Bytes(bytes), said, quantity.Bytes(share), quantity.Bytes(free))
		}
	}
	return worst, why
}

// SpaceOf tells how many bytes of the file system of a folder are free for its owner, and how many
// it has; 0 and 0 where that is not known.
func SpaceOf(folder string) (free, all int64) {
	var s unix.Statfs_t
	if unix.Statfs(folder, &s) != nil {
		return 0, 0
	}
	return int64(s.Bavail) * s.Bsize, int64(s.Blocks) * s.Bsize
}

// sandboxBytes is what would be free without the files of a folder. Those with other links stand
// elsewhere too, as in the cache.
func sandboxBytes(folder string) (bytes int64) {
	left := maxCounted
	_ = filepath.WalkDir(folder, func(_ string, entry fs.DirEntry, err error) error {
		if left--; left < 0 {
			return fs.SkipAll
		}
		if err != nil || !entry.Type().IsRegular() {
			return nil // it went meanwhile
		}
		if info, err := entry.Info(); err == nil {
			if s, ok := info.Sys().(*syscall.Stat_t); ok && s.Nlink == 1 {
				bytes += s.Blocks * 512
			}
		}
		return nil
	})
	return bytes
}
