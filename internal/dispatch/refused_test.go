package dispatch

import (
	"slices"
	"testing"
	"time"

	"fairway/internal/taskqueue"
)

// Others get the jobs of a pilot that was refused at once. It gets no more, whatever it says, and its launch is stopped
// if it has not left.
func TestTheJobsOfARefusedPilotGoToOthers(t *testing.T) {
	for how, leaves := range map[string]func(*binding){
		"its launch ends":        func(b *binding) { b.step(taskqueue.PilotEnded{Launch: "l"}) },
		"it says that it leaves": func(b *binding) { b.sync("p", func(s *taskqueue.Sync) { s.Leaving = true }) },
		"it stays":               nil,
	} {
		b := newBinding(t)
		b.step(taskqueue.SetSite{Site: taskqueue.Site{Name: "far", MaxPilots: 2}})
		b.step(taskqueue.PilotSubmitted{Site: "far", Launch: "l"})
		b.jobs("s", 0, 1)
		b.sync("p", func(s *taskqueue.Sync) { s.Hello.Launch = "l" })
		a := b.begins("p")
		b.sync("q", nil)
		b.sync("q", nil) // and waits
		b.step(taskqueue.Refused{Pilot: "unknown"})
		b.step(taskqueue.Refused{Pilot: "p"})
		if got := b.names("q"); !slices.Equal(got, []string{"s0"}) {
			t.Fatalf("q was given %v", got)
		}
		b.jobs("t", 0, 10)
		b.step(taskqueue.Refused{Pilot: "p"})
		b.sync("p", func(s *taskqueue.Sync) { s.Ended = []taskqueue.Result{{Job: a.Job, Attempt: a.Attempt}} })
		if _, waits := b.held["p"]; waits {
			t.Error("it is not answered, and so does not hear that it is to leave")
		}
		if len(b.has["p"]) > 1 || b.core.jobs.find(a.Job).committed != 0 {
			t.Errorf("it was given %v, or is believed", b.names("p"))
		}
		if leaves != nil {
			leaves(b)
		}
		b.now = b.now.Add(b.core.config.Silence + time.Second)
		stops := b.step(taskqueue.Tick{}).Stop
		if want := leaves == nil; slices.Contains(stops, "l") != want {
			t.Errorf("%s: stopped are %v, want its launch: %v", how, stops, want)
		}
		if b.core.fleet.pilots["p"] != nil {
			t.Errorf("%s, and it is still known", how)
		}
	}
}
