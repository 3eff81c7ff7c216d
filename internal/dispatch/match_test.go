package dispatch

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"fairway/internal/dispatch/room"
	"fairway/internal/taskqueue"
	"fairway/lib/seed"
)

// bestOf are the figures from which the best job is found without the rule under test.
type bestOf struct {
	rule   taskqueue.Placement
	reads  map[string][]string // files by the names of jobs
	size   map[string]int64
	cached map[string]bool // at the pilot
}

// weight is what the pilot has of the job's input: files under by-files, and else bytes, of which an
// empty file has one.
func (b *bestOf) weight(job string) (w int64) {
	for _, f := range b.reads[job] {
		switch {
		case !b.cached[f]:
		case b.rule == taskqueue.ByFiles:
			w++
		default:
			w += max(1, b.size[f])
		}
	}
	return w
}

// best looks at every ready job.
func (c *Core) best(p *pilot, b *bestOf) *job {
	var best *job
	var most int64
	for j := range c.jobs.all {
		if j.group == nil || c.placement.admits(p, j.class, true) == never {
			continue
		}
		w := b.weight(j.name)
		if best == nil || j.effective > best.effective || j.effective == best.effective && w > most {
			best, most = j, w
		}
	}
	return best
}

// A pilot gets the job that a look at all of them would find, as long as at
// most one file has more readers than are looked through.
func TestPilotGetsTheBestJob(t *testing.T) {
	rng := rand.New(rand.NewPCG(seed.Of(t), 0))
	for range 40 {
		rule := func() taskqueue.Placement { return taskqueue.Placement(1 + rng.IntN(3)) }
		b := bestOf{rule(), map[string][]string{}, map[string]int64{}, map[string]bool{}}
		// The workflow's rule goes before the site's, and that before the one of the Config.
		rules := append(make([]taskqueue.Placement, 2), b.rule, rule(), rule())[rng.IntN(3):][:3]
		c := withRun(t, taskqueue.Config{Ahead: -1, Placement: rules[2], MaxPassOver: 1000 * time.Hour})
		step := func(in taskqueue.Input) taskqueue.Effects {
			e, err := c.Step(epoch, in)
			if err != nil {
				t.Fatal(err)
			}
			return e
		}
		step(taskqueue.SetSite{Site: taskqueue.Site{Name: "s", MaxPilots: 1, Placement: rules[1]}})
		step(taskqueue.PilotSubmitted{Site: "s", Launch: "l"})
		const files = 40
		add := taskqueue.AddFiles{Run: 1}
		for i := range files {
			f := taskqueue.ExistingFile{LFN: fmt.Sprint("f", i), PFN: "x", Size: int64(rng.IntN(5))}
			add.Files, b.size[f.LFN] = append(add.Files, f), f.Size
		}
		step(add)
		jobs := 20 + rng.IntN(200)
		sub := taskqueue.Submit{Run: 1}
		for i := range jobs {
			j := taskqueue.Job{Name: fmt.Sprint("j", i), Priority: rng.IntN(2) * rng.IntN(3),
				Writes: []taskqueue.Output{{LFN: fmt.Sprint("o", i)}}, Placement: rules[0]}
			if rng.IntN(8) == 0 {
				j.Tools = []string{"none"}
			}
			if rng.IntN(3) > 0 {
				j.Reads = append(j.Reads, "f0")
			}
			for range rng.IntN(3) {
				f := fmt.Sprint("f", 1+rng.IntN(files-1))
				if len(j.Reads) == 0 || j.Reads[len(j.Reads)-1] != f {
					j.Reads = append(j.Reads, f)
				}
			}
			sub.Jobs, b.reads[j.Name] = append(sub.Jobs, j), j.Reads
		}
		step(sub)
		s := taskqueue.Sync{Pilot: "p", Seq: 1, Full: true, Hold: true, Hello: &taskqueue.PilotInfo{Host: "h",
			Site: "s", Launch: "l", Has: taskqueue.Resources{MilliCPUs: 1000}}}
		for i := range files {
			if rng.IntN(4) == 0 {
				f := fmt.Sprint("f", i)
				s.CacheAdded, b.cached[f] = append(s.CacheAdded, taskqueue.CachedFile{File: taskqueue.FileRef{LFN: f}}), true
			}
		}
		s.Draining = true
		answer := step(s)
		p := c.fleet.pilots["p"]
		p.talk.drains = false
		for {
			want := c.best(p, &b)
			s = taskqueue.Sync{Pilot: "p", Seq: p.talk.seq + 1,
				LastAnswer: c.journal.incarnation<<32 | c.fleet.numbers.lastAnswer,
				Hold:       true}
			if p.talk.base == 0 {
				s.Full, s.Hello, s.CacheAdded = true, &p.info, nil
				for _, v := range p.copies.versions {
					s.CacheAdded = append(s.CacheAdded, taskqueue.CachedFile{File: v.copyNamed(v.tag)})
				}
			}
			if n := len(answer.Replies); n > 0 && len(answer.Replies[n-1].Answer.Run) > 0 {
				a := answer.Replies[n-1].Answer.Run[0]
				s.Ended = []taskqueue.Result{{Job: a.Job, Attempt: a.Attempt, Outputs: []taskqueue.WrittenFile{
					{LFN: a.Outputs[0].LFN, Version: 1, PFN: fmt.Sprint(a.Attempt)},
				}}}
				p.room.Add(&room.Needs{MilliCPUs: 1000}, -1)
				want = c.best(p, &b)
				p.room.Add(&room.Needs{MilliCPUs: 1000}, 1)
			}
			answer = step(s)
			if want == nil {
				break
			}
			if len(p.attempts) != 1 || p.attempts[0].job != want {
				t.Fatalf("the best job is %s, the pilot has %v", want.name, c.Pilots())
			}
		}
	}
}

// What is passed over for too long goes first, whatever else there is.
func TestNoJobIsPassedOverForEver(t *testing.T) {
	c := withRun(t, taskqueue.Config{Ahead: -1, MaxPassOver: time.Minute})
	now := epoch
	step := func(in taskqueue.Input) taskqueue.Effects {
		e, err := c.Step(now, in)
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	step(taskqueue.Submit{Run: 1, Jobs: []taskqueue.Job{{Name: "low", Writes: []taskqueue.Output{{LFN: "low"}}}}})
	info := taskqueue.PilotInfo{Host: "h", Has: taskqueue.Resources{MilliCPUs: 1000}}
	s := taskqueue.Sync{Pilot: "p", Seq: 1, Full: true, Hello: &info}
	for i := range 100 {
		name := fmt.Sprint("high", i)
		step(taskqueue.Submit{Run: 1, Jobs: []taskqueue.Job{{Name: name, Priority: 5,
			Writes: []taskqueue.Output{{LFN: name}}}}})
		answer := step(s).Replies[0].Answer
		if len(answer.Run) == 0 {
			t.Fatal("nothing is run")
		}
		a := answer.Run[0]
		if a.Name == "low" {
			if waited := now.Sub(epoch); waited < time.Minute {
				t.Fatalf("it went before the others after %v", waited)
			}
			return
		}
		s = taskqueue.Sync{Pilot: "p", Seq: s.Seq + 1, LastAnswer: answer.Number, Ended: []taskqueue.Result{{
			Job: a.Job, Attempt: a.Attempt, Outputs: []taskqueue.WrittenFile{{LFN: a.Outputs[0].LFN, Version: 1, PFN: a.Name}},
		}}}
		now = now.Add(time.Second)
	}
	t.Fatal("it was passed over a hundred times")
}
