package api

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"fairway/internal/access"
	"fairway/lib/sched"
)

// A stream without news says something before who reads it gives up.
func TestStreamsWithoutNewsAreKeptAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := sched.New(sched.Config{})
		a := &view{Service: &Service{sched: s}, run: running{}}
		began := time.Now()
		if err := a.pause(t.Context(), make(chan struct{})); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took < access.KeepAlive || took > access.SilentTime/2 {
			t.Errorf("it says nothing for %v", took)
		}
		ended, end := context.WithCancel(t.Context())
		end()
		if err := a.pause(ended, make(chan struct{})); err == nil {
			t.Error("it goes on for nobody")
		}
		s.Close()
	})
}

// running is a run of which only the end counts.
type running struct {
	Run
	ended chan struct{}
}

func (r running) Ended() <-chan struct{} { return r.ended }

// Who follows a run hears of its end at once, also just after another report.
func TestTheLastReportIsNotHeldBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := sched.New(sched.Config{})
		defer s.Close()
		a := &view{Service: &Service{sched: s}, run: running{ended: make(chan struct{})}}
		began := time.Now()
		time.AfterFunc(ProgressPause/10, func() { close(a.run.(running).ended) })
		if err := a.pause(t.Context(), make(chan struct{})); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took >= ProgressPause {
			t.Errorf("it was told after %v", took)
		}
	})
}
