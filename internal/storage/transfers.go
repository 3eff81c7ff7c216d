package storage

import (
	"bytes"
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
// file can be locked, and where there is no host, the limit holds for this process alone.
//
// One more record is the turn. Who finds no other record free takes it, and keeps it until there
// is one. While another process has it, nobody takes a record without it, so that a process with
// many transfers cannot take each record again that it gives back. Of a process, one transfer
// at a time waits for that.
type transfers struct {
	sleep   Sleep
	permits chan struct{} // holds one for each transfer of this process
	waits   chan struct{} // holds one while a transfer of this process waits for a record
	file    *os.File      // nil: there are no locks
	first   int64         // where the records of the host begin in it

	mu     sync.Mutex // guards what follows
	mine   []bool     // the records that this process has, without the turn
	beyond int        // transfers of this process that have none, since who has it is stopped
}

const (
	recordSize = 16 // bytes: the number of the process that has it
	// hostPlaces is how many hosts have records of their own. Hosts that share them, which is
	// rare, share their limit.
	hostPlaces = 1 << 16
	// Pauses of a transfer that waits for the turn.
	minTransferPause = 5 * time.Millisecond
	maxTransferPause = 100 * time.Millisecond
	// turnPause is that of the one which has it, and waits for a record.
	turnPause = 10 * time.Millisecond
	// stoppedTime is how long a transfer waits until it looks for processes that are stopped.
	stoppedTime = time.Second
)

func newTransfers(host string, most int, sleep Sleep) *transfers {
	s := &transfers{
		sleep: sleep, permits: make(chan struct{}, most), waits: make(chan struct{}, 1), mine: make([]bool, most),
	}
	if host == "" {
		return s
	}
	if folder, err := machineFolder(); err == nil {
		hash := fnv.New64a()
		_, _ = hash.Write([]byte(host))
		s.first = int64(hash.Sum64()%hostPlaces) * int64(most+1) * recordSize
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
	if err := send(ctx, s.permits); err != nil {
		return nil, err
	}
	free, err := s.await(ctx)
	if err != nil {
		<-s.permits
		return nil, err
	}
	return func() { free(); <-s.permits }, nil
}

func send(ctx context.Context, to chan<- struct{}) error {
	select {
	case to <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// await has a record for this process: one that is free, if nobody else waits for one, and else
// the next when it has the turn.
func (s *transfers) await(ctx context.Context) (free func(), err error) {
	if err := send(ctx, s.waits); err != nil {
		return nil, err
	}
	defer func() { <-s.waits }()
	if !s.others(s.turn()) {
		if free, ok := s.take(false); ok {
			return free, nil
		}
	}
	defer func() { _ = s.set(unix.F_UNLCK, s.turn()) }()
	waited, pause, next := time.Duration(0), time.Duration(0), minTransferPause
	for {
		switch err := s.lock(s.turn()); {
		case err == nil, !isHeld(err), s.isStopped(s.turn()):
			if free, ok := s.take(waited >= stoppedTime); ok {
				return free, nil
			}
			pause = turnPause
		default:
			pause, next = next, min(2*next, maxTransferPause)
		}
		if err := s.sleep(ctx, pause); err != nil {
			return nil, err
		}
		waited += pause
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
		switch err := s.lock(i); {
		case err == nil:
			s.mine[i] = true
			return func() { s.unlock(i) }, true
		case !isHeld(err):
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

func (s *transfers) turn() int { return len(s.mine) }

func (s *transfers) at(i int) int64 { return s.first + int64(i)*recordSize }

func (s *transfers) unlock(i int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mine[i] = false
	_ = s.set(unix.F_UNLCK, i)
}

// thisProcess is what stands in the records that this process has.
var thisProcess = sync.OnceValue(func() []byte { return fmt.Appendf(nil, "%-*d", recordSize, os.Getpid()) })

// lock has a record for this process, and says so in it. To write what stands there already would
// wait for the disk now and then.
func (s *transfers) lock(i int) error {
	err := s.set(unix.F_WRLCK, i)
	if err == nil && !bytes.Equal(s.record(i), thisProcess()) {
		_, _ = s.file.WriteAt(thisProcess(), s.at(i))
	}
	return err
}

func (s *transfers) others(i int) bool {
	if s.file == nil {
		return false
	}
	lock := &unix.Flock_t{Type: unix.F_WRLCK, Start: s.at(i), Len: recordSize}
	return unix.FcntlFlock(s.file.Fd(), unix.F_OFD_GETLK, lock) == nil && lock.Type != unix.F_UNLCK
}

func (s *transfers) record(i int) []byte {
	record := make([]byte, recordSize)
	n, _ := s.file.ReadAt(record, s.at(i))
	return record[:n]
}

// isHeld reports whether a lock failed since another process has it.
func isHeld(err error) bool { return errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) }

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

func (s *transfers) isStopped(i int) bool {
	process, err := strconv.Atoi(strings.TrimSpace(string(s.record(i))))
	return err == nil && disk.IsStopped(process)
}
