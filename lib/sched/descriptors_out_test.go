//go:build linux

package sched

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// withoutDescriptors runs f while the process can open no further descriptor.
func withoutDescriptors(t *testing.T, f func()) {
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &before); err != nil {
			t.Fatal(err)
		}
	}()
	none := before
	none.Cur = 0
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &none); err != nil {
		t.Fatal(err)
	}
	f()
}

// A process that had no descriptors left at its first wait can wait when it has some again.
func TestWaitsWorkAfterDescriptorsRanOut(t *testing.T) {
	s := newTest(t, Config{})
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	defer unix.Close(p[0])
	defer unix.Close(p[1])
	if _, err := unix.Write(p[1], []byte{1}); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "f")
	write(t, path, "x")
	withoutDescriptors(t, func() {
		if err := s.WaitReadable(context.Background(), p[0]); !errors.Is(err, unix.EMFILE) {
			t.Errorf("without descriptors: %v", err)
		}
		if _, err := s.WaitFile(context.Background(), Appears(path)); err != nil && !errors.Is(err, unix.EMFILE) {
			t.Errorf("without descriptors: %v", err)
		}
	})
	if err := s.WaitReadable(patient(t), p[0]); err != nil {
		t.Error(err)
	}
	if _, err := s.WaitFile(patient(t), Appears(path)); err != nil {
		t.Error(err)
	}
	st, err := StatFile(path)
	if err != nil {
		t.Fatal(err)
	}
	changed := waitFile(t, s, Changes(path, st))
	until(t, s, "joined", func() bool { return members(s, "file") == 1 })
	write(t, path, "longer")
	<-changed
}
