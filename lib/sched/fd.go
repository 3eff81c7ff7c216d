package sched

import (
	"context"
	"fmt"
)

// Events is a set of what a descriptor may be ready for.
type Events uint32

const (
	// Readable: a read will not block, or would report an end or an error.
	Readable Events = 1 << iota
	// Writable: a write will not block, or would report an error.
	Writable
	// Hangup: the other side is gone. It is reported without being asked for.
	Hangup
)

// FD is a request for readiness of a descriptor.
type FD struct {
	Num  int
	Want Events

	// once says that the descriptor was never waited for and will not be again,
	// which saves a system call.
	once bool
}

// WaitFD waits until descriptor fd is ready for any of want, and returns what it
// is ready for. All descriptors of a scheduler are waited for together. Any
// number of goroutines may wait for the same one. It must stay open until WaitFD
// returns. Descriptors that are always ready, such as those of regular files,
// are reported at once.
func (s *Scheduler) WaitFD(ctx context.Context, fd int, want Events) (Events, error) {
	return s.waitFD(ctx, FD{Num: fd, Want: want})
}

// WaitReadable waits until a read from fd will not block. See [Scheduler.WaitFD].
func (s *Scheduler) WaitReadable(ctx context.Context, fd int) error {
	_, err := s.WaitFD(ctx, fd, Readable)
	return err
}

// WaitWritable waits until a write to fd will not block. See [Scheduler.WaitFD].
func (s *Scheduler) WaitWritable(ctx context.Context, fd int) error {
	_, err := s.WaitFD(ctx, fd, Writable)
	return err
}

func (s *Scheduler) waitFD(ctx context.Context, q FD) (Events, error) {
	h, err := s.descriptors()
	if err != nil {
		return 0, fmt.Errorf("wait for descriptor %d: %w", q.Num, err)
	}
	return h.Wait(ctx, q)
}

// NewDescriptors registers a kind for the readiness of descriptors apart from
// the one behind [Scheduler.WaitFD], for descriptors that need another polling
// interval, reaction time, priority or strategy. adjust sets these. Close of the handle
// frees what it holds.
func NewDescriptors(s *Scheduler, adjust func(*Kind[FD, Events])) (*Handle[FD, Events], error) {
	set, err := newPollSet()
	if err != nil {
		return nil, err
	}
	k := set.kind()
	adjust(&k)
	return register(s, k, set.close), nil
}
