package sched

import (
	"sync"
	"sync/atomic"
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

// When Close of a kind has returned, its trigger does not read the descriptor any more: the number
// may be somebody else's by then.
func TestClosedEventfdIsNotRead(t *testing.T) {
	fd, err := unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	s := newTest(t, Config{})
	var m mailbox
	taking, take := make(chan struct{}), make(chan struct{})
	var late, closed atomic.Bool
	trigger := OnEventfd(fd).(descriptorTrigger)
	var once sync.Once
	read := trigger.take
	trigger.take = func(fd int) {
		once.Do(func() {
			close(taking)
			<-take
		})
		late.Store(late.Load() || closed.Load())
		read(fd)
	}
	h := Register(s, m.kind(trigger))
	waits := make(chan struct{})
	go func() { defer close(waits); _, _ = h.Wait(patient(t), 1) }()
	until(t, s, "waits", func() bool { return members(s, "mail") == 1 })
	if _, err := unix.Write(fd, []byte{1, 0, 0, 0, 0, 0, 0, 0}); err != nil {
		t.Fatal(err)
	}
	<-taking
	returned := make(chan struct{})
	go func() { h.Close(); closed.Store(true); close(returned) }()
	for range 1000 {
		yieldProcessor()
	}
	close(take)
	<-returned
	<-waits
	if late.Load() {
		t.Error("read after Close")
	}
}
