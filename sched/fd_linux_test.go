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
