package sched

import (
	"testing"

	"golang.org/x/sys/unix"
)

func TestEventfdHasItsKindPolledOnceForEachEvent(t *testing.T) {
	fd, err := unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	s := New(Config{})
	defer s.Close()
	var m mailbox
	h := Register(s, m.kind(OnEventfd(fd)))
	waits := waitAll(t, s, h, 10)
	for k := range 10 {
		m.deliver(k)
		if _, err := unix.Write(fd, []byte{1, 0, 0, 0, 0, 0, 0, 0}); err != nil {
			t.Fatal(err)
		}
	}
	waits.Wait()
	if polls := m.polls.Load(); polls > 200 {
		t.Errorf("%d polls for 10 events", polls)
	}
}
