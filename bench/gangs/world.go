package main

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"fairway/internal/dispatch"
	"fairway/internal/taskqueue"
)

// world is a TaskQueue with pilots, in virtual time.
type world struct {
	mix    *mix
	random *rand.Rand
	core   *dispatch.Core
	now    time.Time
	events events
	seq    int
	wake   time.Time
	pilots []*pilot
	takes  map[string]time.Duration // by job
	tasks  map[string]int
	left   int // tasks that have not begun
	done   int // jobs

	busy                int
	since               time.Time
	working, possible   time.Duration // slot-seconds while all slots could have work
	gangWait, smallWait mean
}

type mean struct{ sum, n float64 }

func (m *mean) add(x float64) { m.sum, m.n = m.sum+x, m.n+1 }

func (m *mean) mean() float64 { return m.sum / max(m.n, 1) }

type pilot struct {
	id    taskqueue.PilotID
	seq   uint64
	last  uint64
	held  bool
	known bool
	runs  map[taskqueue.AttemptID]*attempt
	begun []taskqueue.AttemptRef
	ended []taskqueue.Result
}

type attempt struct {
	taskqueue.Assignment
	began bool
}

var begin = time.Unix(1_700_000_000, 0)

// delay is that of each message.
const delay = 5 * time.Millisecond

func newWorld(m *mix, seed uint64) *world {
	core, _ := dispatch.New(dispatch.Config{})
	w := &world{
		mix: m, random: rand.New(rand.NewPCG(seed, 0)), core: core, now: begin, since: begin,
		takes: map[string]time.Duration{}, tasks: map[string]int{},
	}
	for i := range m.pilots {
		w.pilots = append(w.pilots, &pilot{
			id: taskqueue.PilotID(fmt.Sprintf("p%03d", i)), runs: map[taskqueue.AttemptID]*attempt{},
		})
	}
	return w
}

// jobs are those of the mix, in random order, with so many small ones.
func (m *mix) jobs(w *world, small int) []taskqueue.Job {
	var jobs []taskqueue.Job
	for i := range m.gangs {
		tasks := m.least + w.random.IntN(m.most-m.least+1)
		jobs = append(jobs, taskqueue.Job{Name: fmt.Sprint("gang", i), Step: "gang", Tasks: tasks})
	}
	for i := range small {
		jobs = append(jobs, taskqueue.Job{Name: fmt.Sprint("small", i), Step: "small"})
	}
	w.random.Shuffle(len(jobs), func(i, k int) { jobs[i], jobs[k] = jobs[k], jobs[i] })
	for i := range jobs {
		j := &jobs[i]
		j.Writes = []taskqueue.Output{{LFN: "out/" + j.Name}}
		seconds := m.one1
		if j.Tasks > 0 {
			seconds = m.gangs1
		}
		factor := 1 + m.spread*(2*w.random.Float64()-1)
		if m.spread >= 1 {
			factor = w.random.ExpFloat64()
		}
		w.takes[j.Name], w.tasks[j.Name] = time.Duration(seconds*factor*float64(time.Second)), max(1, j.Tasks)
		w.left += max(1, j.Tasks)
	}
	return jobs
}

// idle is the part of the slots without a task while there were tasks for all.
func (w *world) idle() float64 { return 1 - float64(w.working)/float64(max(w.possible, 1)) }

func (w *world) run(jobs []taskqueue.Job) error {
	if err := w.step(taskqueue.SetRun{Run: taskqueue.Run{ID: 1, KeepGoing: true}}); err != nil {
		return err
	}
	if err := w.step(taskqueue.Submit{Run: 1, Jobs: jobs}); err != nil {
		return err
	}
	for _, p := range w.pilots {
		if err := w.call(p); err != nil {
			return err
		}
	}
	for w.done < len(jobs) {
		if len(w.events) == 0 && w.wake.IsZero() {
			return fmt.Errorf("nothing happens any more, and %d jobs of %d are done", w.done, len(jobs))
		}
		if len(w.events) == 0 || !w.wake.IsZero() && w.wake.Before(w.events[0].at) {
			if w.wake.After(w.now) {
				w.now = w.wake
			}
			w.wake = time.Time{}
			if err := w.step(taskqueue.Tick{}); err != nil {
				return err
			}
			continue
		}
		e := heap.Pop(&w.events).(event)
		w.now = e.at
		if err := e.do(); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) step(in taskqueue.Input) error {
	e, err := w.core.Step(w.now, in)
	if err != nil {
		return err
	}
	w.wake = e.WakeAt
	for _, event := range e.Events {
		switch event.Kind {
		case taskqueue.JobCommitted:
			w.done++
		case taskqueue.JobFailed, taskqueue.JobRetried, taskqueue.JobBlocked:
			return fmt.Errorf("job %s is %v: %s", event.Name, event.Kind, event.Reason)
		}
	}
	for _, r := range e.Replies {
		p := w.pilots[slices.IndexFunc(w.pilots, func(p *pilot) bool { return p.id == r.Pilot })]
		a := r.Answer
		a.Run, a.Begin = slices.Clone(a.Run), slices.Clone(a.Begin)
		w.after(delay, func() error { return w.answered(p, r.Seq, &a) })
	}
	return nil
}

func (w *world) call(p *pilot) error {
	p.seq++
	s := taskqueue.Sync{Pilot: p.id, Seq: p.seq, LastAnswer: p.last, Started: p.begun, Ended: p.ended, Hold: true}
	if !p.known {
		s.Full, s.Hello = true, &taskqueue.PilotInfo{
			Host: string(p.id), Site: "here", Has: taskqueue.Resources{MilliCPUs: int64(w.mix.slots) * 1000},
		}
	}
	for _, a := range p.runs {
		if a.Tasks > 0 {
			s.Members = append(s.Members, taskqueue.MemberState{
				Attempt: a.Attempt, Host: "10.0.0.1", Ports: []int{1, 2}, Begun: a.began,
			})
		}
	}
	slices.SortFunc(s.Members, func(a, b taskqueue.MemberState) int { return int(int64(a.Attempt) - int64(b.Attempt)) })
	p.held, p.begun = true, nil
	return w.step(s)
}

func (w *world) answered(p *pilot, seq uint64, a *taskqueue.Answer) error {
	if seq != p.seq || a.Superseded {
		return nil
	}
	p.held, p.known, p.last, p.ended = false, true, a.Number, nil
	for _, x := range a.Run {
		if p.runs[x.Attempt] != nil {
			continue
		}
		r := &attempt{Assignment: x}
		p.runs[x.Attempt] = r
		p.begun = append(p.begun, taskqueue.AttemptRef{Job: x.Job, Attempt: x.Attempt, GangPlace: x.GangPlace})
		if x.Tasks == 0 {
			w.begins(p, r)
		}
	}
	for i := range a.Begin {
		if r := p.runs[a.Begin[i].Attempt]; r != nil && !r.began {
			w.begins(p, r)
		}
	}
	w.after(delay, func() error {
		if p.held {
			return nil
		}
		return w.call(p)
	})
	return nil
}

// begins has a task take a slot for its time.
func (w *world) begins(p *pilot, a *attempt) {
	w.account(1)
	w.left--
	a.began = true
	if wait := w.now.Sub(begin).Seconds(); a.Tasks > 0 {
		w.gangWait.add(wait)
	} else {
		w.smallWait.add(wait)
	}
	began, took := w.now, w.takes[a.Name]
	w.after(took, func() error {
		w.account(-1)
		delete(p.runs, a.Attempt)
		r := taskqueue.Result{Job: a.Job, Attempt: a.Attempt, GangPlace: a.GangPlace, Usage: taskqueue.Usage{
			StageInStart: began, Start: began, End: w.now, StageOutEnd: w.now,
		}}
		if a.Task == 0 {
			r.Outputs = []taskqueue.WrittenFile{{LFN: "out/" + a.Name, Version: 1, PFN: fmt.Sprint("se/", a.Attempt)}}
		}
		p.ended = append(p.ended, r)
		return w.call(p)
	})
}

// account counts the time since a task began or ended last, unless too few tasks were left.
func (w *world) account(change int) {
	if slots := w.mix.pilots * w.mix.slots; w.left >= slots {
		passed := w.now.Sub(w.since)
		w.working += passed * time.Duration(w.busy)
		w.possible += passed * time.Duration(slots)
	}
	w.busy, w.since = w.busy+change, w.now
}

// event is something that happens at a time.
type event struct {
	at  time.Time
	seq int
	do  func() error
}

type events []event

func (e events) Len() int { return len(e) }

func (e events) Less(i, k int) bool {
	return e[i].at.Before(e[k].at) || e[i].at.Equal(e[k].at) && e[i].seq < e[k].seq
}

func (e events) Swap(i, k int) { e[i], e[k] = e[k], e[i] }

func (e *events) Push(x any) { *e = append(*e, x.(event)) }

func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

func (w *world) after(d time.Duration, do func() error) {
	w.seq++
	heap.Push(&w.events, event{w.now.Add(d), w.seq, do})
}
