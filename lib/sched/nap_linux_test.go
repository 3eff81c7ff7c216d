package sched

import (
	"testing"
	"time"
)

// A source that is to be polled soon is not to wait for the end of a nap that was
// meant for another.
func TestNapOfThePollerIsCutShort(t *testing.T) {
	s := newTest(t, Config{})
	short, err := newNapper()
	if err != nil {
		t.Fatal(err)
	}
	defer short.close()
	s.poller.short.Store(short)
	ended := make(chan bool)
	go func() { ended <- s.poller.nap(time.Hour) }()
	for !s.poller.napping.Load() {
		yieldProcessor()
	}
	s.poller.wake()
	if !<-ended {
		t.Error("no nap")
	}
}
