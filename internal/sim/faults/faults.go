// Package faults checks what must hold while everything goes wrong: it draws
// an experiment from a seed, in which messages, pilots, the server, batch
// systems and storage fail, and runs it in package sim, which ends a run at the
// first breach of a promise (sim/promise.go). A seed always gives the same run;
// the error of one that fails says how to repeat it.
package faults

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"fairway/internal/eviction"
	"fairway/internal/sim"
	"fairway/internal/sim/experiment"
)

// Experiment returns the experiment of a seed in which everything goes wrong now
// and then: messages are lost and repeated, pilots and the server die,
// records cannot be written, batch systems forget and answer late, storage
// fails and is nearly full. Workflow, other users, sites and caches are drawn too.
func Experiment(seed uint64) experiment.Experiment {
	r := sim.Stream(seed, "faulty")
	e := experiment.Experiment{
		Name: "faults", Seed: seed, Repetitions: 1, Limit: 10 * 24 * time.Hour,
		Workflow: faultyWorkflow(r), Cache: faultyCache(r), Faults: faultyFaults(r),
		Network:   experiment.NetworkSpec{Latency: experiment.Gauss{Mean: 100 * time.Millisecond, SD: 100 * time.Millisecond}},
		TaskQueue: experiment.TaskQueueSpec{Attempts: 10_000, MaxLosses: 10_000, MaxRegenerations: 10_000, Backoff: pick(r, time.Second, time.Minute)},
	}
	e.Faults.LostUntil = e.Limit / 2 // what is stuck long after that is not so for lost messages
	e.Submission = pick(r, experiment.Running, experiment.Monitor)
	e.Creation = experiment.CreationSpec{WhenData: r.IntN(2) == 0, Poll: 30 * time.Second}
	e.TaskQueue.WaitForData = pick(r, 0, -1, time.Minute)
	total := experiment.Size(e.Workflow.Jobs) * e.Workflow.FileSize
	if e.Workflow.Cached > 0 { // what is nowhere else needs room, or it is made again for ever
		e.Cache.Share, e.Cache.Size = pick(r, experiment.PilotCache, experiment.HostCache, experiment.GlobalCache),
			e.Cache.Spare+2*total
		e.TaskQueue.Lease = patientLease
	}
	for i := range 1 + r.IntN(3) {
		name := fmt.Sprintf("site%d", i)
		e.Storage = append(e.Storage, faultyStorage(r, name, total))
		e.Sites = append(e.Sites, faultySite(r, name))
	}
	if e.Workflow.Cached == 0 && e.Cache.Size > 0 { // a byte less than what whole files need, now and then
		e.Cache.Size -= experiment.Size(seed % 2)
	}
	if len(e.Sites) > 1 {
		e.TaskQueue.Sites = experiment.WeightsSpec{Data: pick(r, 0, 1.0), Queue: pick(r, 0, 1.0), Money: pick(r, 0, 3600.0)}
	}
	if d := sim.Stream(seed, "damage"); d.IntN(2) == 0 {
		e.Faults.Damage, e.Faults.Damages = upTo(d, time.Minute, time.Hour), 50
	}
	if sim.Stream(seed, "staging").IntN(3) == 0 {
		for i := range e.Sites {
			e.Sites[i].StagesIn = true
		}
	}
	faultyHosts(sim.Stream(seed, "hosts"), &e)
	e.Workflow.Priorities = pick(sim.Stream(seed, "priorities"), 0, 2, 5)
	e.Workflow.Rivals = pick(sim.Stream(seed, "rivals"), 0, 5, 30)
	faultyGangs(sim.Stream(seed, "gangs"), &e)
	e.Defaults()
	return e
}

// faultyGangs gives some of the jobs several tasks, in half of the runs: as many as the largest site has
// pilots at most. What stays in caches is for no such job.
func faultyGangs(r *rand.Rand, e *experiment.Experiment) {
	most := 0
	for i := range e.Sites {
		s := &e.Sites[i]
		pilots := s.Nodes * s.Slots
		if e.Submission == experiment.Running && s.Started > 0 {
			pilots = s.Started
		}
		most = max(most, pilots)
	}
	if gangs := experiment.Chance(pick(r, 0, 0, 0.1, 0.5)); gangs > 0 && e.Workflow.Cached == 0 && most > 1 {
		e.Workflow.Gangs, e.Workflow.Tasks = gangs, min(most, 2+r.IntN(4))
		e.TaskQueue.Lease = patientLease // all pilots of a job have to outlast it together
	}
}

// faultyHosts has lines cut, hosts frozen, and batch systems refuse, forget and repeat,
// in half of the runs each.
func faultyHosts(r *rand.Rand, e *experiment.Experiment) {
	f := &e.Faults
	f.Outages = 50
	if r.IntN(2) == 0 {
		f.CutOff, f.CutFor = upTo(r, time.Minute, time.Hour), upTo(r, time.Second, 15*time.Minute)
	}
	if r.IntN(2) == 0 {
		f.Freezes, f.FrozenFor = upTo(r, time.Minute, time.Hour), upTo(r, time.Second, 15*time.Minute)
	}
	for i := range e.Sites {
		b := &e.Sites[i].Batch
		b.Refuse, b.Silent = experiment.Chance(pick(r, 0, 0.3)), experiment.Chance(pick(r, 0, 0.3))
		b.Lose, b.Double = experiment.Chance(pick(r, 0, 0.2)), experiment.Chance(pick(r, 0, 0.2))
	}
}

// patientLease outlasts several lost messages in a row, each of which keeps a
// pilot silent for the hold and its patience, 55 s. Where every fifth message is
// lost, the simulator's default takes a pilot for dead, with the only copies of
// outputs, every few minutes: sooner than jobs end that need several of them.
const patientLease = 10 * time.Minute

func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

func upTo(r *rand.Rand, least, most time.Duration) experiment.Gauss {
	mean := least + time.Duration(r.Int64N(int64(most-least)))
	return experiment.Gauss{Mean: mean, SD: mean / 2, Least: time.Second}
}

func faultyWorkflow(r *rand.Rand) experiment.WorkflowSpec {
	return experiment.WorkflowSpec{
		Pattern: "layers", Jobs: 5 + r.IntN(50), Layers: 1 + r.IntN(5), Fan: r.IntN(4), FileSize: faultyFile,
		Run: upTo(r, time.Second, 10*time.Minute), Accesses: 1 + r.IntN(4), Cached: experiment.Chance(pick(r, 0, 0, 0.3)),
	}
}

// faultyFile is the size of every output.
const faultyFile experiment.Size = 100e6

func faultyCache(r *rand.Rand) experiment.CacheSpec {
	return experiment.CacheSpec{
		Share: pick(r, experiment.NoCache, experiment.PilotCache, experiment.HostCache, experiment.GlobalCache),
		Size:  experiment.Size(50e6 * float64(r.IntN(20))),
		Spare: experiment.Size(pick(r, 0, 100e6)), Policy: string(pick(r, eviction.Policies...)),
		Look: pick(r, 0, 30*time.Second), Inputs: r.IntN(2) == 0,
	}
}

func faultySite(r *rand.Rand, name string) experiment.SiteSpec {
	s := experiment.SiteSpec{
		Name: name, Nodes: 1 + r.IntN(4), Slots: 1 + r.IntN(3), Storage: name, Ask: pick(r, 0, 0, 20*time.Second),
	}
	s.Price, s.Expects = r.Float64(), pick(r, 0, 5*time.Minute)
	s.Started = r.IntN(s.Nodes*s.Slots + 1)
	s.MinIdle = r.IntN(2)
	if r.IntN(4) == 0 {
		s.Life, s.SaysLife = experiment.Gauss{Mean: 2 * time.Hour, SD: time.Hour, Least: 30 * time.Minute}, r.IntN(2) == 0
	}
	s.Batch = experiment.BatchSpec{
		Delay: upTo(r, time.Second, 5*time.Minute), Poll: pick(r, 0, time.Minute), Limit: pick(r, 0, 2),
		Forget: experiment.Chance(pick(r, 0, 0.2)), Late: upTo(r, time.Millisecond, 2*time.Minute),
	}
	return s
}

// faultyStorage returns a storage element that has, if it has a limit, room for
// all outputs and for those of a few attempts more: just enough for the
// workflow to end when what failed attempts have stored is removed.
func faultyStorage(r *rand.Rand, name string, outputs experiment.Size) experiment.StorageSpec {
	s := experiment.StorageSpec{
		Name: name, Bandwidth: 100e6, Latency: experiment.Gauss{Mean: time.Second}, DelayFactor: 0.1, DelaySpread: 0.5,
		FailureRate: experiment.Chance(r.Float64() * 0.2),
		Capacity:    pick(r, 0, outputs+faultyFile*experiment.Size(r.IntN(3))),
	}
	if s.Capacity > 0 {
		s.Fills, s.FullFor = upTo(r, time.Minute, time.Hour), upTo(r, time.Second, 10*time.Minute)
	}
	return s
}

func faultyFaults(r *rand.Rand) experiment.FaultSpec {
	return experiment.FaultSpec{
		Lost: experiment.Chance(pick(r, 0, 0.02, 0.2)), Repeated: experiment.Chance(pick(r, 0, 0.02, 0.2)),
		PilotDies: pick(r, experiment.Gauss{}, upTo(r, time.Minute, time.Hour)), PilotDeaths: 50,
		ServerDies: pick(r, experiment.Gauss{}, upTo(r, time.Minute, time.Hour)),
		ServerAway: upTo(r, time.Second, 10*time.Minute), Crashes: 20,
		WriteFails: experiment.Chance(pick(r, 0, 0.05)), WriteFailures: 200,
	}
}

// Check runs the experiments of count seeds from first on, on all
// processors, and checks each: no job is lost or committed twice, what is done
// is stored, what a job is told to read is there, no cache grows beyond its
// limit, nothing gets stuck, no user gets a slot before another who has used
// less for the weight. It returns what went wrong, counted; over 40 seeds
// or more every kind of fault must have happened. The error of the lowest seed
// that fails says how to repeat it. progress, which may be nil, is called by
// one goroutine at a time.
func Check(ctx context.Context, first uint64, count int, progress func(done, total int)) (sim.Happened, error) {
	var sum sim.Happened
	if err := checkSeeds(first, count); err != nil {
		return sum, err
	}
	errs := make([]error, count)
	var mutex sync.Mutex
	done := 0
	note := func(faced *sim.Happened) {
		mutex.Lock()
		defer mutex.Unlock()
		for f, times := range faced {
			sum[f] += times
		}
		if done++; progress != nil {
			progress(done, count)
		}
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i := range count {
		g.Go(func() error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			var faced sim.Happened
			faced, errs[i] = checkSeed(first + uint64(i))
			note(&faced)
			return nil
		})
	}
	err := g.Wait()
	for _, failed := range errs {
		if failed != nil {
			return sum, failed
		}
	}
	return sum, cmp.Or(err, missing(&sum, count))
}

// checkSeeds refuses what names no seeds, or seeds that do not exist.
func checkSeeds(first uint64, count int) error {
	switch {
	case count < 1:
		return fmt.Errorf("%d seeds check nothing: give at least 1", count)
	case first > math.MaxUint64-uint64(count)+1:
		return fmt.Errorf("%d seeds from %d on go beyond the largest, %d: begin lower", count, first, uint64(math.MaxUint64))
	}
	return nil
}

func checkSeed(seed uint64) (sim.Happened, error) {
	exp := Experiment(seed)
	run, err := sim.Once(exp, 0)
	if err == nil && int(run.Of("jobs_done")) != exp.Workflow.Jobs {
		err = fmt.Errorf("%g of %d jobs are done", run.Of("jobs_done"), exp.Workflow.Jobs)
	}
	if err != nil {
		return sim.Happened{}, fmt.Errorf("seed %d (repeat it with: fairway sim faults --seed %d --seeds 1): %w",
			seed, seed, err)
	}
	return run.Faced, nil
}

// missing says which kind never happened over so many seeds, where each should
// have: a check under faults that do not come checks nothing.
func missing(h *sim.Happened, seeds int) error {
	for f, times := range h {
		if times == 0 && seeds >= enoughSeeds {
			return fmt.Errorf("over %d seeds this fault never happened: %s", seeds, sim.Fault(f))
		}
	}
	return nil
}

// enoughSeeds is the number of seeds over which every kind of fault is sure to
// happen; fewer repeat single runs.
const enoughSeeds = 40
