package sched

import (
	"testing"
	"time"
)

// A source that is to be polled soon is not to wait for the end of a nap that was
// meant for another.
func TestNapOfTheServerIsCutShort(t *testing.T) {
	s := newTest(t, Config{})
	short, err := newNapper()
	if err != nil {
		t.Fatal(err)
	}
	defer short.close()
	s.server.short.Store(short)
	ended := make(chan bool)
	go func() { ended <- s.server.nap(time.Hour) }()
	for !s.server.napping.Load() {
		yieldProcessor()
	}
	s.server.wake()
	if !<-ended {
		t.Error("no nap")
	}
}
