package dispatch

import (
	"strings"
	"testing"
	"time"

	"fairway/internal/explain"
	"fairway/internal/taskqueue"
	"fairway/lib/seed"
)

// A person is told where the user stands in line, why, and what limits keep a job.
func TestExplanationTellsTheTurn(t *testing.T) {
	shares := taskqueue.Shares{
		Limits: map[string]int64{"licence": 1},
		Of: []taskqueue.Share{{Name: "lab", Weight: 3, Of: []taskqueue.Share{
			{Name: "ann", User: true, Weight: 1}, {Name: "bob", User: true, Weight: 1, Limits: taskqueue.Quota{Running: 1}},
		}}},
	}
	m := marketOf(t, seed.Of(t), shares, taskqueue.Config{})
	ann, err := m.addUser(taskqueue.Account{Group: "lab", User: "ann"}, 0, 0)
	m.must(t, err)
	bob, err := m.addUser(taskqueue.Account{Group: "lab", User: "bob"}, 0, 0)
	m.must(t, err)
	m.must(t, m.submit(ann, 3, 1, taskqueue.Resources{Countable: map[string]int64{"licence": 1}}))
	m.must(t, m.submit(bob, 4, 1, taskqueue.Resources{}))
	m.must(t, m.submit(bob, 1, 1, taskqueue.Resources{MilliCPUs: 64_000}))
	m.must(t, m.addPilot(4))
	m.must(t, m.until(m.now.Add(time.Second), func() bool { return false }))
	for u, wants := range map[*user][]string{
		ann: {"needs 1 licence, and of 1 that all jobs together may have 1 are in use"},
		bob: {
			"user lab/bob may have 1 jobs running, and has 1", "of 2 with ready jobs",
			"user lab/bob has a share of 50.0 % beside 1 more",
			"pilots that have too little of what it needs, of 1: cpus 1",
			"jobs of the same user that are ready and go before it: 3",
		},
	} {
		e, _ := m.core.Explain(taskqueue.NewJobID(u.run, uint32(u.jobs)))
		text := strings.Join(explain.Lines(&e), "\n")
		for _, want := range wants {
			if !strings.Contains(text, want) && e.State == taskqueue.Ready {
				t.Errorf("%v: %q is not in\n%s", u.Account, want, text)
			}
		}
	}
}
