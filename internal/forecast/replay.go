package forecast

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"fairway/internal/sim"
	"fairway/internal/sim/experiment"
)

// Change is what is different. The zero value changes nothing.
type Change struct {
	Pilots int                // at most, in all; 0: as recorded
	Slots  float64            // multiplies the slots; 0: as recorded
	Cache  experiment.Share   // empty: as recorded
	Faster map[string]float64 // by step: its commands are so many times as fast
	NoWait bool               // the batch system starts pilots at once
}

// Forecast is what is foretold of a change.
type Forecast struct {
	Change
	Name      string        // for a person: "with 16 pilots"
	Time      time.Duration // corrected by the replay of the run as it was
	Low, High time.Duration // nine of ten draws lie between
	Slots     int
}

// Foretell replays the run with a change: once with the times that were recorded, and so many times
// with times drawn anew.
func (m *Model) Foretell(c Change, draws int) (*Forecast, error) {
	took, err := m.replay(&c, m.jobs)
	if err != nil {
		return nil, err
	}
	ratio := m.correction()
	f := &Forecast{Change: c, Name: m.name(&c), Time: scaled(took, ratio), Slots: m.slots(&c)}
	times := []time.Duration{took}
	for i := range draws {
		drawn, err := m.replay(&c, m.drawn(uint64(i)))
		if err != nil {
			return nil, err
		}
		times = append(times, drawn)
	}
	slices.Sort(times)
	n := len(times)
	cut := n / 20
	off := math.Abs(1 - ratio)
	f.Low = scaled(min(times[cut], took), ratio*(1-off))
	f.High = scaled(max(times[n-1-cut], took), ratio*(1+off))
	return f, nil
}

func scaled(d time.Duration, by float64) time.Duration { return time.Duration(float64(d) * by) }

// correction is the recorded time over that of the replay.
func (m *Model) correction() float64 {
	if m.Replayed <= 0 {
		return 1
	}
	return m.Recorded.Seconds() / m.Replayed.Seconds()
}

// DrawsFor is how many draws are worth their time, for a person who waits.
func (m *Model) DrawsFor() int { return min(20, max(4, 20_000/max(1, len(m.jobs)))) }

// drawn are the jobs with times drawn from those of their steps.
func (m *Model) drawn(seed uint64) []sim.RecordedJob {
	random := sim.Stream(seed, "times")
	jobs := slices.Clone(m.jobs)
	for i := range jobs {
		j := &jobs[i]
		j.Tries = slices.Clone(j.Tries)
		for k := range j.Tries {
			j.Tries[k] = m.steps[j.Step].draw(random, j.Tries[k])
		}
	}
	return jobs
}

// draw takes a try that went as t; t itself where none is known.
func (s *stepTimes) draw(random *rand.Rand, t sim.RecordedTry) sim.RecordedTry {
	if s == nil {
		return t
	}
	from := s.good
	if t.Failed {
		from = s.failed
	}
	if len(from) == 0 {
		return t
	}
	return from[random.IntN(len(from))]
}

// replay executes jobs under a change, and tells how long that takes.
func (m *Model) replay(c *Change, jobs []sim.RecordedJob) (time.Duration, error) {
	if len(c.Faster) > 0 {
		jobs = faster(jobs, c.Faster)
	}
	recorded := &sim.Recorded{Files: m.files, Jobs: jobs, Sites: map[string]sim.RecordedSite{}}
	exp := m.experiment(c, recorded.Sites)
	result, err := sim.Replay(exp, recorded)
	if err != nil {
		return 0, fmt.Errorf("replay the run: %w", err)
	}
	return lasted(result), nil
}

// lasted is from the submission to the end of the last attempt, as a history has it.
func lasted(r *sim.Run) time.Duration {
	last := time.Time{}
	for i := range r.Attempts {
		if end := r.Attempts[i].Usage.StageOutEnd; end.After(last) {
			last = end
		}
	}
	return last.Sub(sim.Epoch()) - r.Submitted
}

func faster(jobs []sim.RecordedJob, by map[string]float64) []sim.RecordedJob {
	jobs = slices.Clone(jobs)
	for i := range jobs {
		j := &jobs[i]
		factor := by[j.Step]
		if factor <= 0 {
			continue
		}
		j.Tries = slices.Clone(j.Tries)
		for k := range j.Tries {
			j.Tries[k].Compute = scaled(j.Tries[k].Compute, 1/factor)
		}
	}
	return jobs
}

// What nobody has recorded: the speed of a file from the cache of another host, in bytes per
// second, and the size of a cache, which is as large as it has to be.
const (
	peerSpeed = 125e6
	cacheSize = 1 << 50
)

// experiment is the model of where the jobs run.
func (m *Model) experiment(c *Change, sites map[string]sim.RecordedSite) experiment.Experiment {
	exp := experiment.Experiment{
		Name: "what-if", Seed: 1, Submission: experiment.Monitor, Limit: m.limit(c),
		Storage: []experiment.StorageSpec{{
			Name: "se", Bandwidth: experiment.Size(m.link.bandwidth), Connection: experiment.Size(m.link.each),
		}},
		Network: experiment.NetworkSpec{
			Latency: experiment.Gauss{Mean: (m.around.reaction - m.around.between) / 2}, Bandwidth: peerSpeed,
		},
		Cache: experiment.CacheSpec{Share: m.Cache, Size: cacheSize, Inputs: true},
	}
	if c.Cache != "" {
		exp.Cache.Share = c.Cache
	}
	if m.ahead && exp.Cache.Share != experiment.NoCache {
		exp.Cache.Prefetch = 1
	}
	for _, s := range m.sites {
		pilots, cpus := m.changed(s, c)
		hosts := 1
		if s.hosts > 1 {
			hosts = max(1, (pilots*s.hosts+s.pilots-1)/s.pilots)
		}
		exp.Sites = append(exp.Sites, experiment.SiteSpec{
			Name: s.name, Nodes: hosts, Slots: (pilots + hosts - 1) / hosts, Max: pilots, StagesIn: true,
			Behind: true,
		})
		r := sim.RecordedSite{MilliCPUs: cpus, Slowing: m.slow, Waits: []time.Duration{0}}
		if !c.NoWait {
			r.Waits = spreadOver(s.waits, pilots*len(s.waits)/max(1, s.pilots))
		}
		sites[s.name] = r
	}
	return exp
}

// A replay is given up after limitFactor times the recorded time, and limitBesides, or as many times
// that as there are fewer slots: what is recorded may be wrong.
const (
	limitFactor  = 50
	limitBesides = time.Hour
)

func (m *Model) limit(c *Change) time.Duration {
	limit := limitFactor*m.Recorded + limitBesides
	return scaled(limit, max(1, float64(m.Slots())/float64(max(1, m.slots(c)))))
}

// spreadOver takes so many of the waits, in their order and as evenly as can be.
func spreadOver(waits []time.Duration, n int) []time.Duration {
	n = max(n, 1)
	all := make([]time.Duration, n)
	for i := range all {
		all[i] = waits[i*len(waits)/n]
	}
	return all
}

// changed is how many pilots a site has, and the processors of each. Where pilots are too few to be
// halved, their processors are.
func (m *Model) changed(s *site, c *Change) (pilots int, milliCPUs int64) {
	pilots, milliCPUs = s.pilots, max(s.milliCPUs, m.needs)
	if c.Pilots > 0 {
		pilots = max(1, int(math.Round(float64(c.Pilots)*float64(s.pilots)/float64(m.Pilots()))))
	}
	if c.Slots <= 0 {
		return pilots, milliCPUs
	}
	wanted := float64(pilots) * c.Slots
	if n := math.Round(wanted); n >= 1 && (math.Abs(n-wanted) < 1e-9 || milliCPUs < 2*wholeCPU) {
		return int(n), milliCPUs
	}
	return pilots, max(wholeCPU, m.needs, int64(math.Round(float64(milliCPUs)/wholeCPU*c.Slots))*wholeCPU)
}

// slots is how many there are with a change.
func (m *Model) slots(c *Change) (n int) {
	for _, s := range m.sites {
		pilots, cpus := m.changed(s, c)
		n += pilots * max(1, int(cpus/wholeCPU))
	}
	return n
}

// Usual are the changes that most people ask about: half and twice the slots, another cache, the
// longest step of the critical path twice as fast, and no wait of the batch system; those that
// can make a difference.
func (m *Model) Usual() []Change {
	changes := []Change{{Slots: 2}}
	if m.Slots() > 1 {
		changes = []Change{{Slots: 0.5}, {Slots: 2}}
	}
	if m.reads {
		for _, share := range []experiment.Share{experiment.GlobalCache, experiment.NoCache} {
			if share != m.Cache {
				changes = append(changes, Change{Cache: share})
			}
		}
	}
	if m.path != "" {
		changes = append(changes, Change{Faster: map[string]float64{m.path: 2}})
	}
	for _, s := range m.sites {
		if slices.Max(s.waits) > m.Recorded/50 {
			return append(changes, Change{NoWait: true})
		}
	}
	return changes
}

// name says for a person what is changed.
func (m *Model) name(c *Change) string {
	var all []string
	switch {
	case c.Pilots > 0:
		all = append(all, fmt.Sprintf("with %d pilots", c.Pilots))
	case c.Slots == 0.5:
		all = append(all, fmt.Sprintf("with half the slots (%d)", m.slots(c)))
	case c.Slots == 2:
		all = append(all, fmt.Sprintf("with twice the slots (%d)", m.slots(c)))
	case c.Slots > 0:
		all = append(all, fmt.Sprintf("with %g times the slots (%d)", c.Slots, m.slots(c)))
	}
	switch c.Cache {
	case experiment.NoCache:
		all = append(all, "without caches")
	case "":
	case experiment.GlobalCache:
		all = append(all, "with a global cache")
	default:
		all = append(all, fmt.Sprintf("with a cache of each %s", c.Cache))
	}
	for _, step := range slices.Sorted(maps.Keys(c.Faster)) {
		if c.Faster[step] == 2 {
			all = append(all, fmt.Sprintf("with step %s twice as fast", step))
		} else {
			all = append(all, fmt.Sprintf("with step %s %g times as fast", step, c.Faster[step]))
		}
	}
	if c.NoWait {
		all = append(all, "without waiting for the batch system")
	}
	if len(all) == 0 {
		return "as it was"
	}
	return strings.Join(all, ", ")
}
