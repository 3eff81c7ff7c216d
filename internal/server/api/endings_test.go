package api

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"fairway/internal/access"
	"fairway/internal/server/state"
	"fairway/internal/wire"
	"fairway/lib/sched"
)

// restless is a run in which something changes every second, and no job ends.
type restless struct {
	running
	tally *state.Tally
}

func (r restless) Changes() <-chan struct{} {
	changed := make(chan struct{})
	time.AfterFunc(time.Second, func() { close(changed) })
	return changed
}

func (r restless) QueryAll(_ context.Context, ask func(*state.Cores)) error {
	ask(&state.Cores{Tally: r.tally})
	return nil
}

// A stream of endings says something before who reads it gives up, also where all the time something
// else changes.
func TestEndingsAreKeptAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := sched.New(sched.Config{})
		defer s.Close()
		a := &view{Service: &Service{sched: s}, run: restless{running{ended: make(chan struct{})}, new(state.Tally)}}
		enough := errors.New("enough")
		var times []time.Time
		err := a.tellEndings(t.Context(), func(*wire.EndedJobs) error {
			if times = append(times, time.Now()); len(times) == 3 {
				return enough
			}
			return nil
		})
		if !errors.Is(err, enough) {
			t.Fatal(err)
		}
		for i, at := range times[1:] {
			if silent := at.Sub(times[i]); silent < access.KeepAlive || silent > access.SilentTime/2 {
				t.Errorf("it says nothing for %v", silent)
			}
		}
	})
}
