package state

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"slices"

	"golang.org/x/sync/errgroup"

	"fairway/internal/dispatch"
	"fairway/internal/flow"
	"fairway/internal/store"
)

// Cores are the two passive state machines and what is counted beside them. All
// three change together, one input at a time; whoever gets them may only read, while
// the call lasts. Of a run that has ended there is no flow.
type Cores struct {
	Run      dispatch.RunID // that Flow makes the jobs of; all others are none of its business
	Dispatch *dispatch.Core
	Flow     *flow.Flow
	Tally    *Tally
}

// Loaded is what is made from the store: the cores, and what dispatch wants
// done as the first thing.
type Loaded struct {
	Cores
	Effects dispatch.Effects
	Records []dispatch.Record // that both cores were made from; nil unless they were asked for
}

// Load makes the cores of a run from records, both at the same time. Keep has it return
// the records, which take much memory.
func Load(
	ctx context.Context, source Source, run dispatch.RunID, workflow *flow.Workflow, config dispatch.Config, keep bool,
) (*Loaded, error) {
	own, err := LoadTables(ctx, source, []string{flow.TableRun, flow.TableLog})
	if err != nil {
		return nil, err
	}
	defer growFreely()()
	l := &Loaded{Cores: Cores{Run: run}}
	var group errgroup.Group
	group.Go(func() (err error) {
		l.Dispatch, l.Effects, err = loadDispatch(ctx, source, config, func(r dispatch.Record) {
			if keep {
				r.Body = bytes.Clone(r.Body)
				l.Records = append(l.Records, r)
			}
		})
		return err
	})
	group.Go(func() (err error) {
		of := slices.DeleteFunc(slices.Clone(own), func(r dispatch.Record) bool { return r.Run != run })
		if l.Flow, err = flow.Load(workflow, of); err != nil {
			return fmt.Errorf("loading the workflow: %w", err)
		}
		l.Tally, err = loadTally(ctx, source, l.Flow.Workflow().Name, l.Flow.Workflow().Steps())
		return err
	})
	if err := group.Wait(); err != nil {
		return nil, err
	}
	if keep {
		l.Records = append(l.Records, own...)
	}
	return l, nil
}

// loadDispatch tells of each record before it takes it.
func loadDispatch(
	ctx context.Context, source Source, config dispatch.Config, tell func(dispatch.Record),
) (*dispatch.Core, dispatch.Effects, error) {
	loading := dispatch.NewLoading(config)
	for _, table := range dispatch.Tables() {
		err := source.Each(ctx, table, func(r dispatch.Record) error {
			tell(r)
			return loading.Add(r)
		})
		if err != nil {
			return nil, dispatch.Effects{}, fmt.Errorf("loading the jobs: %w", err)
		}
	}
	core, effects, err := loading.End()
	if err != nil {
		err = fmt.Errorf("loading the jobs: %w", err)
	}
	return core, effects, err
}

func loadTally(ctx context.Context, s Source, workflow string, steps []string) (*Tally, error) {
	t := newTally(workflow, steps)
	pilots, err := s.Load(ctx, HostTable)
	if err != nil {
		return nil, err
	}
	t.Hosts = LoadHosts(pilots)
	if err := s.Each(ctx, AttemptTable, t.recall); err != nil {
		return nil, err
	}
	if err := s.Each(ctx, CacheTable, t.recallCache); err != nil {
		return nil, err
	}
	published, err := s.Load(ctx, dispatch.TablePublished)
	if err != nil {
		return nil, err
	}
	for _, r := range published {
		t.Published(r.Key)
	}
	return t, nil
}

// LoadEndedRun loads the record of a run of which no server is there.
func LoadEndedRun(ctx context.Context, records store.Store) (*Run, error) {
	run, err := LoadRun(ctx, records)
	if run == nil && err == nil {
		run = &Run{State: Stopped}
	}
	return run, err
}

// LoadEnded makes the cores of a run of which no server is there, without Tally, as if the
// deferred requests had been carried out.
func LoadEnded(ctx context.Context, records store.Store, run *Run) (*Cores, error) {
	defer growFreely()()
	core, _, err := loadDispatch(ctx, records, dispatch.Config{}, func(dispatch.Record) {})
	if err != nil {
		return nil, err
	}
	for _, in := range run.DeferredInputs() {
		_, _ = core.Step(Now(), in) // what is refused will be so by the next run, too
	}
	return &Cores{Run: run.ID, Dispatch: core}, nil
}

// LoadEndedTally makes the Tally of a run of which no server is there.
func LoadEndedTally(ctx context.Context, records store.Store, run *Run) (*Tally, error) {
	return loadTally(ctx, records, run.Workflow, run.Steps)
}

// LoadTallyOf makes a Tally that knows the ended attempts of one job and where pilots run,
// and nothing else.
func LoadTallyOf(ctx context.Context, s partSource, job dispatch.JobID, hosts Hosts) (*Tally, error) {
	t := &Tally{Hosts: hosts}
	from, below := attemptKeys(job)
	records, err := s.LoadPart(ctx, AttemptTable, job.Run(), from, below, math.MaxInt32)
	if err != nil {
		return nil, err
	}
	for _, r := range records {
		if err := t.Attempts.take(r); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// FailedJobs are the jobs that failed for good.
func FailedJobs(c *Cores) []dispatch.JobID {
	var failed []dispatch.JobID
	if run, _ := c.Dispatch.Run(c.Run); run.Totals.ByState[dispatch.Failed] == 0 {
		return nil
	}
	for job := range c.Dispatch.Jobs(c.Run, 0) {
		if job.State == dispatch.Failed {
			failed = append(failed, job.ID)
		}
	}
	return failed
}
