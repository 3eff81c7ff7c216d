package forecast

import (
	"fmt"
	"slices"
	"time"

	"fairway/internal/history"
	"fairway/internal/sim"
)

// Planned is a job that has not run.
type Planned struct {
	Name, Step string
	Reads      []sim.RecordedFile
	Writes     []string // LFNs
	MilliCPUs  int64    // 0: it does not say
	Priority   int
}

// Estimate is what planned jobs are expected to take.
type Estimate struct {
	Time, Low, High time.Duration // nine of ten draws lie between
	Slots           int
	Computing       time.Duration // of all commands together, times their processors
	Read, Written   int64         // bytes
	Known           int           // jobs whose steps were run before; the estimate is of these
	New             []string      // steps that never were, by name
}

// Earlier is a model of a run and, where that did not execute all, of attempts of runs before: jobs
// whose results it has, each with the attempt that made its result. pilots is how many there will be
// where the run had none, each with one processor. The error is ErrNothing where no attempt is known.
func Earlier(run *history.Run, reused []history.Job, pilots int) (*Model, error) {
	m, err := Of(run)
	if err != nil {
		m = &Model{steps: map[string]*stepTimes{}, sites: []*site{{
			name: "here", pilots: max(1, pilots), hosts: 1, milliCPUs: wholeCPU, waits: []time.Duration{0},
		}}}
	}
	m.outputs = map[string]*sizes{}
	for _, list := range [][]history.Job{run.Jobs, reused} {
		for i := range list {
			m.learn(&list[i])
		}
	}
	if len(m.steps) == 0 {
		return nil, ErrNothing
	}
	return m, nil
}

// sizes are what a step writes: bytes, and into how many files.
type sizes struct {
	bytes int64
	files int
}

// learn takes in what a job wrote and, where its run is not that of the model, how long it took.
func (m *Model) learn(j *history.Job) {
	if m.steps[j.Step] == nil || m.steps[j.Step].reused {
		for i := range j.Attempts {
			a := &j.Attempts[i]
			if !isTimed(a) || a.Start.IsZero() || a.Failed {
				continue
			}
			if m.steps[j.Step] == nil {
				m.steps[j.Step] = &stepTimes{reused: true}
			}
			m.steps[j.Step].good = append(m.steps[j.Step].good, sim.RecordedTry{
				Setup: a.Start.Sub(a.Begin()), Compute: a.End.Sub(a.Start), StageOut: a.Ended().Sub(a.End),
			})
		}
	}
	for _, f := range j.Writes {
		s := m.outputs[j.Step]
		if s == nil {
			s = new(sizes)
			m.outputs[j.Step] = s
		}
		s.bytes, s.files = s.bytes+f.Size, s.files+1
	}
}

// mean is the time of a job of the step.
func (s *stepTimes) mean() (t sim.RecordedTry) {
	n := time.Duration(len(s.good))
	for _, g := range s.good {
		t.Setup, t.Compute, t.StageOut = t.Setup+g.Setup, t.Compute+g.Compute, t.StageOut+g.StageOut
	}
	return sim.RecordedTry{Setup: t.Setup / n, Compute: t.Compute / n, StageOut: t.StageOut / n}
}

// Estimate foretells what planned jobs take, in their order: each with the mean time of its step,
// and so many times with times drawn from those of its step. Jobs of steps that were never run take
// no time.
func (m *Model) Estimate(jobs []Planned, c Change, draws int) (*Estimate, error) {
	e := &Estimate{Slots: m.slots(&c)}
	planned := &Model{
		Recorded: m.Recorded, Replayed: m.Replayed, Cache: m.Cache, sites: m.sites, link: m.link, slow: m.slow,
		around: m.around, ahead: m.ahead, steps: m.steps,
	}
	for _, s := range m.sites {
		s.milliCPUs = max(s.milliCPUs, wholeCPU)
	}
	known := map[string]int64{}
	for i := range jobs {
		j := &jobs[i]
		s := m.steps[j.Step]
		isKnown := s != nil && len(s.good) > 0
		if !isKnown && !slices.Contains(e.New, j.Step) {
			e.New = append(e.New, j.Step)
		}
		r := sim.RecordedJob{
			Name: j.Name, Step: j.Step, MilliCPUs: j.MilliCPUs, Priority: j.Priority, Tries: []sim.RecordedTry{{}},
		}
		if isKnown {
			e.Known++
			r.Tries[0] = s.mean()
			e.Computing += scaled(r.Tries[0].Compute, float64(max(j.MilliCPUs, wholeCPU))/wholeCPU)
		}
		for _, f := range j.Reads {
			size, ok := known[f.LFN]
			if !ok {
				size = f.Size
				known[f.LFN] = size
				planned.files = append(planned.files, f)
			}
			if !slices.Contains(r.Reads, f.LFN) {
				r.Reads = append(r.Reads, f.LFN)
				e.Read += size
			}
		}
		for _, lfn := range j.Writes {
			size := int64(0)
			if o := m.outputs[j.Step]; o != nil {
				size = o.bytes / int64(o.files)
			}
			known[lfn] = size
			e.Written += size
			r.Writes = append(r.Writes, sim.RecordedFile{LFN: lfn, Size: size})
		}
		planned.jobs = append(planned.jobs, r)
	}
	slices.Sort(e.New)
	if e.Known == 0 {
		return e, nil
	}
	f, err := planned.Foretell(c, draws)
	if err != nil {
		return nil, fmt.Errorf("estimate the time: %w", err)
	}
	e.Time, e.Low, e.High = f.Time, f.Low, f.High
	return e, nil
}
