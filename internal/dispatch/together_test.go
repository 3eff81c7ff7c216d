package dispatch

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"fairway/internal/taskqueue"
)

// pairs are jobs of which two each write what a third one reads, and pilots that share
// their caches by hosts: a0 is on host a.
type pairs struct {
	t    *testing.T
	core *Core
	now  time.Time
	seq  map[string]uint64
	last map[string]uint64               // answer
	ran  map[string]taskqueue.Assignment // by the name of the job: the last one
	at   map[string]string               // the pilot of that
}

func newPairs(t *testing.T) *pairs {
	s := &pairs{
		t: t, core: withRun(t, taskqueue.Config{Ahead: -1, Placement: taskqueue.ByFiles}),
		now: epoch, seq: map[string]uint64{},
		last: map[string]uint64{}, ran: map[string]taskqueue.Assignment{}, at: map[string]string{},
	}
	return s
}

// submit adds the jobs of so many pairs.
func (s *pairs) submit(n int) {
	sub := taskqueue.Submit{Run: 1}
	for i := range 2 * n {
		sub.Jobs = append(sub.Jobs, taskqueue.Job{Name: fmt.Sprint("w", i), Writes: []taskqueue.Output{{LFN: fmt.Sprint("f",
			i)}}})
	}
	for i := range n {
		sub.Jobs = append(sub.Jobs, taskqueue.Job{
			Name: fmt.Sprint("r", i), Reads: []string{fmt.Sprint("f", 2*i), fmt.Sprint("f", 2*i+1)},
		})
	}
	s.step(sub)
}

func (s *pairs) step(in taskqueue.Input) {
	s.t.Helper()
	e, err := s.core.Step(s.now, in)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, r := range e.Replies {
		s.last[string(r.Pilot)] = max(s.last[string(r.Pilot)], r.Answer.Number)
		for _, a := range r.Answer.Run {
			s.ran[a.Name], s.at[a.Name] = a, string(r.Pilot)
		}
	}
}

// ask has each pilot call twice, so that it waits for news if there is nothing for it.
func (s *pairs) ask(pilots string, ended ...taskqueue.Result) {
	for p := range strings.FieldsSeq(pilots) {
		for range 2 {
			s.seq[p]++
			m := &taskqueue.Sync{Pilot: taskqueue.PilotID(p), Seq: s.seq[p], LastAnswer: s.last[p], Hold: true, Ended: ended}
			if s.last[p] == 0 {
				m.Full = true
				m.Hello = &taskqueue.PilotInfo{Host: p[:1], CacheDir: "/c/" + p, CacheSize: 1 << 30,
					Has: taskqueue.Resources{MilliCPUs: 1000}}
			}
			s.step(*m)
			ended = nil
		}
	}
}

func (s *pairs) check(want string) {
	s.t.Helper()
	for pair := range strings.FieldsSeq(want) {
		if job, host, _ := strings.Cut(pair, "@"); !strings.HasPrefix(s.at[job], host) || s.at[job] == "" {
			s.t.Errorf("%s was given to %q, want one of %s", job, s.at[job], host)
		}
	}
}

// What one job will read together is made on one host, whether pilots wait for jobs or jobs
// for pilots, and also when a job that makes it is tried again for the first time.
func TestWhatIsReadTogetherIsMadeTogether(t *testing.T) {
	t.Run("pilots that ask", func(t *testing.T) {
		s := newPairs(t)
		s.submit(2)
		s.ask("a0 b0 b1 a1")
		s.check("w0@a w1@a w2@b w3@b")
	})
	t.Run("pilots that wait", func(t *testing.T) {
		s := newPairs(t)
		s.ask("a0 b0 a1 b1 a0 b0") // who is told of another on its host has to ask again
		s.submit(2)
		s.check("w0@a w1@a w2@b w3@b")
	})
	t.Run("again", func(t *testing.T) {
		s := newPairs(t)
		s.submit(1)
		s.ask("a0 a1")
		s.check("w0@a w1@a")
		w0 := s.ran["w0"]
		s.seq["a0"]++
		s.step(taskqueue.Sync{
			Pilot: "a0", Seq: s.seq["a0"], LastAnswer: s.last["a0"], Hold: true,
			Started: []taskqueue.AttemptRef{{Job: w0.Job, Attempt: w0.Attempt}},
		})
		s.ask("b0 b1 b2 b0 b1")
		for _, host := range []string{"a", "b"} { // the second time on another host, as always
			run := s.ran["w1"]
			s.ask(s.at["w1"], taskqueue.Result{Job: run.Job, Attempt: run.Attempt, Outcome: taskqueue.StageOutFailed})
			s.ask(s.at["w1"])
			s.now = s.now.Add(5 * time.Second)
			s.step(taskqueue.Tick{})
			if s.ran["w1"].Attempt == run.Attempt {
				t.Fatal("w1 was not tried again")
			}
			s.check("w1@" + host)
		}
	})
}

// Jobs that nothing draws anywhere are spread over the hosts, so that those which read what they
// make find room there.
func TestJobsAreSpreadOverHosts(t *testing.T) {
	s := newPairs(t)
	s.ask("a0 a1 a2 b0 b1 b2 a0 a1 b0 b1")
	s.submit(2)
	s.check("w0@a w1@a w2@b w3@b")
	var pilots []string
	for n := range 4 {
		pilots = append(pilots, s.at[fmt.Sprint("w", n)])
	}
	slices.Sort(pilots)
	if len(slices.Compact(pilots)) != 4 {
		t.Error("two jobs are at one pilot:", s.at)
	}
}

// No pilot is left without a job because that belongs elsewhere.
func TestPilotTakesWhatBelongsElsewhere(t *testing.T) {
	s := newPairs(t)
	s.submit(2)
	s.ask("a0 b0 c0 c1")
	s.check("w0@a w2@b w1@c w3@c")
}
