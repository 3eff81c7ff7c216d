package storage

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"fairway/internal/disk"
)

// transfers are those with one host that the processes of a user may make at once on
// this machine. A file of the machine has a record for each. Who makes a transfer
// has a lock on one of the records, which ends with its process, however that ends. Where no
// file can be locked, and for files that the server of a run gives, the limit holds for this
// process alone.
type transfers struct {
	sleep   Sleep
	permits chan struct{} // holds one for each transfer of this process
	file    *os.File      // nil: there are no locks
	first   int64         // where the records of the host begin in it

	mu     sync.Mutex // guards what follows
	mine   []bool     // the records that this process has
	beyond int        // transfers of this process that have none, since who has it is stopped
}

const (
	recordSize = 16 // bytes: the number of the process that has it
	// hostPlaces is how many hosts have records of their own. Hosts that share them, which is
	// rare, share their limit.
	hostPlaces = 1 << 16
	// Pauses of a transfer that waits for other processes.
	minTransferPause = 5 * time.Millisecond
	maxTransferPause = 100 * time.Millisecond
	// stoppedTime is how long a transfer waits until it looks for processes that are stopped.
	stoppedTime = time.Second
)

func newTransfers(host string, most int, sleep Sleep) *transfers {
	s := &transfers{sleep: sleep, permits: make(chan struct{}, most), mine: make([]bool, most)}
	if folder, err := machineFolder(); err == nil && host != "" {
		hash := fnv.New64a()
		_, _ = hash.Write([]byte(host))
		s.first = int64(hash.Sum64()%hostPlaces) * int64(most) * recordSize
		s.file, _ = os.OpenFile(filepath.Join(folder, "transfers"), os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	}
	return s
}

// machineFolder is that of all processes of the user on this machine, whatever TMPDIR they have.
func machineFolder() (string, error) {
	folder := fmt.Sprintf("/tmp/fairway-%d", os.Geteuid())
	if err := os.Mkdir(folder, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	return folder, disk.CheckPrivate(folder)
}

// enter waits until one more transfer may be made. leave is called once.
func (s *transfers) enter(ctx context.Context) (leave func(), err error) {
	select {
	case s.permits <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	waited, pause := time.Duration(0), minTransferPause
	for {
		if free, ok := s.take(waited >= stoppedTime); ok {
			return func() { free(); <-s.permits }, nil
		}
		if err := s.sleep(ctx, pause); err != nil {
			<-s.permits
			return nil, err
		}
		waited, pause = waited+pause, min(2*pause, maxTransferPause)
	}
}

// take has a record for this process, or, past those that are stopped, goes without.
func (s *transfers) take(past bool) (free func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	stopped := 0
	for i := range s.mine {
		if s.mine[i] {
			continue
		}
		switch err := s.set(unix.F_WRLCK, i); {
		case err == nil:
			s.mine[i] = true
			_, _ = s.file.WriteAt(fmt.Appendf(nil, "%-*d", recordSize, os.Getpid()), s.at(i))
			return func() { s.giveBack(i) }, true
		case !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EACCES):
			return func() {}, true // there are no locks
		case past && s.isStopped(i):
			stopped++
		}
	}
	if s.beyond >= stopped {
		return nil, false
	}
	s.beyond++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.beyond--
	}, true
}

// at is where a record stands.
func (s *transfers) at(i int) int64 { return s.first + int64(i)*recordSize }

func (s *transfers) giveBack(i int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mine[i] = false
	_ = s.set(unix.F_UNLCK, i)
}

func (s *transfers) set(kind int16, i int) error {
	if s.file == nil {
		return unix.ENOLCK
	}
	for {
		err := unix.FcntlFlock(s.file.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: kind, Start: s.at(i), Len: recordSize})
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// isStopped reports whether the process that has a record is stopped, as by Ctrl-Z or by a
// batch system that suspends a job.
func (s *transfers) isStopped(i int) bool {
	record := make([]byte, recordSize)
	if _, err := s.file.ReadAt(record, s.at(i)); err != nil {
		return false
	}
	process, err := strconv.Atoi(strings.TrimSpace(string(record)))
	if err != nil {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", process))
	if err != nil {
		return false
	}
	_, state, _ := strings.Cut(string(stat), ") ")
	return strings.HasPrefix(state, "T")
}
