package launch

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"fairway/internal/batch"
	"fairway/internal/server/loop"
	"fairway/internal/taskqueue"
	"fairway/lib/sched"
)

// queue is a batch system in memory.
type queue struct {
	mu   sync.Mutex
	jobs map[string]batch.Status
}

func (q *queue) Submit(_ context.Context, launch string) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.jobs[launch] = batch.Status{State: batch.Queued, Jobs: 1}
	return nil
}

func (q *queue) Status(context.Context) (map[string]batch.Status, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return maps.Clone(q.jobs), nil
}

func (q *queue) Withdraw(_ context.Context, launches ...string) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, launch := range launches {
		delete(q.jobs, launch)
	}
	return nil
}

// rarelyAsked gives a test the pilots of a site in virtual time, whose batch system is asked
// once in an hour.
func rarelyAsked(t *testing.T, test func(p *Pilots)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := sched.New(sched.Config{})
		defer s.Close()
		p := New(loop.NewInbox(), s, slog.New(slog.DiscardHandler))
		p.AddSite(taskqueue.Site{Name: "farm", MaxPilots: 3}, &queue{jobs: map[string]batch.Status{}}, time.Hour)
		defer p.Close()
		test(p)
	})
}

// A launch that was withdrawn before any pilot of it came
// holds up the end of a run no more; one whose pilot was heard does, since it may still
// store files.
func TestTheEndWaitsForNoLaunchThatNeverCame(t *testing.T) {
	rarelyAsked(t, func(p *Pilots) {
		heard, never, late := loop.Launch{Site: "farm", Name: "farm.1"}, loop.Launch{Site: "farm", Name: "farm.2"},
			loop.Launch{Site: "farm", Name: "farm.3"}
		p.Start([]loop.Launch{heard, never, late})
		synctest.Wait()
		p.Here(heard, true)
		p.Withdraw([]string{never.Name, late.Name})
		synctest.Wait()
		if p.None() {
			t.Error("the run ends although a pilot is there")
		}
		p.Here(late, true)
		p.Here(heard, false)
		if p.None() {
			t.Error("the run ends although a pilot came that was withdrawn")
		}
		p.Here(late, false)
		if !p.None() {
			t.Error("the run waits until the batch system says that a pilot has ended of which nothing was heard")
		}
	})
}

// Its batch system's last answer is old.
func TestAPilotThatWasHeardIsNotQueued(t *testing.T) {
	rarelyAsked(t, func(p *Pilots) {
		first, second := loop.Launch{Site: "farm", Name: "farm.1"}, loop.Launch{Site: "farm", Name: "farm.2"}
		p.Start([]loop.Launch{first, second})
		synctest.Wait()
		if lines := fmt.Sprint(p.Waiting()); !strings.Contains(lines, "farm: 2 pilots queued") {
			t.Error("none was heard:", lines)
		}
		p.Here(first, true)
		if lines := fmt.Sprint(p.Waiting()); !strings.Contains(lines, "farm: 1 pilot queued") {
			t.Error("one was heard:", lines)
		}
		p.Here(second, true)
		if lines := p.Waiting(); len(lines) != 0 {
			t.Errorf("both were heard: %q", lines)
		}
	})
}

// A pilot that an earlier server had may come back with what it has done.
func TestTheEndWaitsForPilotsOfAnEarlierServer(t *testing.T) {
	rarelyAsked(t, func(p *Pilots) {
		known := []taskqueue.LaunchView{{Launch: "farm.1", Site: "farm", Came: true}, {Launch: "farm.2", Site: "farm"}}
		if _, err := p.Adopt(t.Context(), known); err != nil {
			t.Fatal(err)
		}
		p.Withdraw([]string{"farm.1", "farm.2"})
		synctest.Wait()
		if p.None() || len(p.gone) != 1 || !p.gone["farm.2"] {
			t.Errorf("not waited for: %v", p.gone)
		}
	})
}
