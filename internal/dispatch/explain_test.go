package dispatch

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"fairway/internal/explain"
	"fairway/internal/taskqueue"
)

// Of a job that waits for many inputs it is told how many are missing and how their jobs stand,
// not each.
func TestManyMissingInputsAreOneReason(t *testing.T) {
	b := newBinding(t)
	merge := taskqueue.Job{Name: "merge", Step: "merge"}
	var jobs []taskqueue.Job
	for i := range 40 {
		file := fmt.Sprintf("part/%d", i)
		jobs = append(jobs, taskqueue.Job{Name: fmt.Sprintf("a/%d", i), Step: "a", Writes: []taskqueue.Output{{LFN: file}}})
		merge.Reads = append(merge.Reads, file)
	}
	b.step(taskqueue.Submit{Run: 1, Jobs: append(jobs, merge)})
	b.sync("p", nil)
	a := b.begins("p")
	b.has["p"] = nil
	b.sync("p", func(s *taskqueue.Sync) {
		s.Ended = []taskqueue.Result{{Job: a.Job, Attempt: a.Attempt, Outputs: []taskqueue.WrittenFile{{LFN: "part/0",
			PFN: "se:0"}}}}
	})
	b.begins("p")
	var last taskqueue.JobID
	for j := range b.core.Jobs(1, 0) {
		last = j.ID
	}
	e, _ := b.core.Explain(last)
	want := []string{"39 of 40 inputs are missing; of the jobs that make them are ready: 38 jobs, first a/2; running: a/1"}
	if !slices.Equal(explain.Lines(&e), want) || e.WaitsFor.Len() != maxExplained {
		t.Errorf("it says %q and names %d", explain.Lines(&e), e.WaitsFor.Len())
	}
}

// What is told of a pause goes down while nothing happens, and to look changes nothing.
func TestWhatIsToldOfAPauseGoesDown(t *testing.T) {
	b := newBinding(t)
	b.core.config.Backoff = time.Minute
	b.jobs("s", 0, 1)
	b.sync("p", nil)
	a := b.begins("p")
	b.sync("p", func(s *taskqueue.Sync) {
		s.Ended = []taskqueue.Result{{Job: a.Job, Attempt: a.Attempt, Outcome: taskqueue.Exited, ExitCode: 3}}
	})
	text := func(after time.Duration) (said string) {
		b.core.At(b.now.Add(after), func() {
			e, _ := b.core.Explain(a.Job)
			said = strings.Join(explain.Lines(&e), "; ")
		})
		return said
	}
	for after, want := range map[time.Duration]string{
		0: "in 1m0s", 20 * time.Second: "in 40s", time.Hour: "in 0s", -time.Hour: "in 1m0s",
	} {
		if said := text(after); !strings.Contains(said, want) {
			t.Errorf("after %v: %s", after, said)
		}
	}
	if e, _ := b.core.Explain(a.Job); !strings.Contains(strings.Join(explain.Lines(&e), "; "), "in 1m0s") {
		t.Errorf("after a look: %q", explain.Lines(&e))
	}
}
