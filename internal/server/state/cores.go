package state

import (
	"context"
	"fmt"
	"slices"

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
	Records []dispatch.Record // that both were made from
}

// Load makes the cores of a run from records.
func Load(ctx context.Context, source Source, run dispatch.RunID, workflow *flow.Workflow, parameters map[string]string, config dispatch.Config) (*Loaded, error) {
	records, err := LoadTables(ctx, source, append(dispatch.Tables(), flow.TableRun, flow.TableLog))
	if err != nil {
		return nil, err
	}
	jobs, effects, err := dispatch.Load(config, records)
	if err != nil {
		return nil, fmt.Errorf("loading the jobs: %w", err)
	}
	own := slices.DeleteFunc(slices.Clone(records), func(r dispatch.Record) bool { return r.Run != run })
	steps, err := flow.Load(workflow, parameters, own)
	if err != nil {
		return nil, fmt.Errorf("loading the workflow: %w", err)
	}
	counts, err := loadTally(ctx, source, steps.Workflow().Name, steps.Workflow().Steps())
	return &Loaded{Cores: Cores{Run: run, Dispatch: jobs, Flow: steps, Tally: counts}, Effects: effects, Records: records}, err
}

func loadTally(ctx context.Context, s Source, workflow string, steps []string) (*Tally, error) {
	t := newTally(workflow, steps)
	pilots, err := s.Load(ctx, HostTable)
	if err != nil {
		return nil, err
	}
	t.Hosts = LoadHosts(pilots)
	ended, err := s.Load(ctx, AttemptTable)
	if err != nil {
		return nil, err
	}
	published, err := s.Load(ctx, dispatch.TablePublished)
	if err != nil {
		return nil, err
	}
	return t, t.recall(ended, published)
}

// LoadEndedRun loads the record of a run of which no server is there.
func LoadEndedRun(ctx context.Context, records store.Store) (*Run, error) {
	run, err := LoadRun(ctx, records)
	if run == nil && err == nil {
		run = &Run{State: Stopped}
	}
	return run, err
}

// LoadEnded makes the cores of a run of which no server is there, as if the deferred
// requests had been carried out.
func LoadEnded(ctx context.Context, records store.Store, run *Run) (*Cores, error) {
	jobs, err := LoadTables(ctx, records, dispatch.Tables())
	if err != nil {
		return nil, err
	}
	core, _, err := dispatch.Load(dispatch.Config{}, jobs)
	if err != nil {
		return nil, fmt.Errorf("loading the jobs: %w", err)
	}
	for _, in := range run.DeferredInputs() {
		_, _ = core.Step(Now(), in) // what is refused will be so by the next run, too
	}
	counts, err := loadTally(ctx, records, run.Workflow, run.Steps)
	if err != nil {
		return nil, err
	}
	return &Cores{Run: run.ID, Dispatch: core, Tally: counts}, nil
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
