package sched

import (
	"context"
	"errors"
	"os"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

func pipe(t *testing.T) (r, w int) {
	t.Helper()
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(p[0]); unix.Close(p[1]) })
	return p[0], p[1]
}

func TestWaitReadablePingPong(t *testing.T) {
	s := newTest(t, Config{})
	ar, aw := pipe(t)
	br, bw := pipe(t)
	ctx := patient(t)
	var wg sync.WaitGroup
	relay := func(r, w int) {
		b := make([]byte, 1)
		for range 500 {
			if err := s.WaitReadable(ctx, r); err != nil {
				t.Error(err)
				return
			}
			if _, err := unix.Read(r, b); err != nil {
				t.Error(err)
			}
			_, _ = unix.Write(w, b)
		}
	}
	wg.Go(func() { relay(ar, bw) })
	wg.Go(func() { relay(br, aw) })
	_, _ = unix.Write(aw, []byte{1})
	wg.Wait()
}

func TestSeveralWaitForOneDescriptor(t *testing.T) {
	s := newTest(t, Config{})
	var p [2]int
	p, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(p[0])
	defer unix.Close(p[1])
	ctx := patient(t)
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			if err := s.WaitReadable(ctx, p[0]); err != nil {
				t.Error(err)
			}
		})
	}
	if err := s.WaitWritable(ctx, p[0]); err != nil {
		t.Fatal(err)
	}
	_, _ = unix.Write(p[1], []byte("x"))
	wg.Wait()
}

func TestCancelledWaitLeavesOthers(t *testing.T) {
	s := newTest(t, Config{})
	r, w := pipe(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.WaitReadable(ctx, r) }()
	stays := make(chan error, 1)
	go func() { stays <- s.WaitReadable(patient(t), r) }()
	until(t, s, "both wait", func() bool { return members(s, "fd") == 2 })
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	_, _ = unix.Write(w, []byte("x"))
	if err := <-stays; err != nil {
		t.Fatal(err)
	}
}

func TestRegularFileIsReady(t *testing.T) {
	s := newTest(t, Config{})
	f, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := s.WaitReadable(patient(t), int(f.Fd())); err != nil {
		t.Fatal(err)
	}
}

func TestWaitForClosedDescriptorFails(t *testing.T) {
	s := newTest(t, Config{})
	if err := s.WaitReadable(patient(t), 1<<20); !errors.Is(err, unix.EBADF) {
		t.Fatalf("got %v", err)
	}
}

// A descriptor must stay open while it is waited for. If it does not, and a duplicate
// keeps its file, only those who wait for it are told.
func TestDescriptorClosedBesideADuplicateHangsNobodyElse(t *testing.T) {
	s := newTest(t, Config{})
	p, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(p[1])
	duplicate, err := unix.Dup(p[0])
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(duplicate)
	for fill := make([]byte, 1<<16); ; { // so that nothing can be written
		if _, err := unix.Write(p[0], fill); err != nil {
			break
		}
	}
	read, written := make(chan error, 1), make(chan error, 1)
	go func() { read <- s.WaitReadable(patient(t), p[0]) }()
	go func() { written <- s.WaitWritable(patient(t), p[0]) }()
	until(t, s, "both wait", func() bool { return members(s, "fd") == 2 })
	unix.Close(p[0])
	if _, err := unix.Write(p[1], []byte("x")); err != nil {
		t.Fatal(err)
	}
	if err := <-read; err != nil {
		t.Errorf("the reader: %v", err)
	}
	if err := <-written; !errors.Is(err, unix.EBADF) {
		t.Errorf("the writer: %v", err)
	}
	r, w := pipe(t)
	_, _ = unix.Write(w, []byte("x"))
	if err := s.WaitReadable(patient(t), r); err != nil {
		t.Errorf("another descriptor: %v", err)
	}
}

// The registration of a closed file lives on with a duplicate of its descriptor. What it
// tells is not to be taken for news of the next file with that number.
func TestEventOfAClosedFileIsNotTakenForTheNextWithItsNumber(t *testing.T) {
	s := newTest(t, Config{})
	r, w := pipe(t)
	var old [2]int
	if err := unix.Pipe2(old[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		t.Fatal(err)
	}
	defer unix.Close(old[1])
	duplicate, err := unix.Dup(old[0])
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(duplicate)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.WaitReadable(ctx, old[0]) }()
	until(t, s, "waiting", func() bool { return members(s, "fd") == 1 })
	if err := unix.Dup3(r, old[0], unix.O_CLOEXEC); err != nil { // closes the old file
		t.Fatal(err)
	}
	defer unix.Close(old[0])
	cancel()
	<-ended
	go func() { ended <- s.WaitReadable(patient(t), old[0]) }()
	until(t, s, "waiting for the next", func() bool { return members(s, "fd") == 1 })
	_, _ = unix.Write(old[1], []byte("x"))
	other, feed := pipe(t)
	_, _ = unix.Write(feed, []byte("x"))
	if err := s.WaitReadable(patient(t), other); err != nil { // comes after the stale event
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		t.Errorf("told to be readable, %v", err)
	default:
	}
	_, _ = unix.Write(w, []byte("x"))
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// What a handle of descriptors holds is freed by its Close, also while it is waited for.
func TestCloseOfDescriptorsFreesTheirOwn(t *testing.T) {
	s := newTest(t, Config{})
	r, _ := pipe(t)
	_ = s.WaitReadable(canceled(t), r) // opens those of the scheduler
	open := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	before := open()
	for n := range 20 {
		h, err := NewDescriptors(s, func(k *Kind[FD, Events]) { k.Priority = n })
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { _, err := h.Wait(patient(t), FD{Num: r, Want: Readable}); ended <- err }()
		if n%2 == 0 {
			until(t, s, "waits", func() bool { return h.src.members.Load() == 1 })
		}
		h.Close()
		if err := <-ended; !errors.Is(err, ErrClosed) {
			t.Errorf("got %v", err)
		}
	}
	if after := open(); after > before+6 {
		t.Errorf("%d descriptors are open, %d were", after, before)
	}
}

func canceled(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}
