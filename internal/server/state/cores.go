package state

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"fairway/internal/dispatch"
	"fairway/internal/dispatch/records"
	"fairway/internal/flow"
	"fairway/internal/flow/workflow"
	"fairway/internal/heap"
	"fairway/internal/store"
	"fairway/internal/taskqueue"
)

// Cores are the two passive state machines and what is counted beside them, as a run sees
// them: Dispatch has all runs. All three change together, one input at a time; whoever gets
// them may only read, while the call lasts. Of a run that has ended there may be no flow.
type Cores struct {
	Run      taskqueue.RunID // that Flow makes the jobs of; all others are none of its business
	Dispatch *dispatch.Core
	Flow     *flow.Flow
	Tally    *Tally
}

// RunOf is a run of a workflow.
type RunOf struct {
	Run      taskqueue.RunID
	Workflow *workflow.Workflow
}

// Loaded is what is made from the store: the cores of each run, in the order in which they were
// asked for, and what dispatch wants done as the first thing.
type Loaded struct {
	Dispatch *dispatch.Core
	Nodes    *Nodes
	Runs     []Cores
	Effects  taskqueue.Effects
	Records  []taskqueue.Record // that all cores were made from; nil unless they were asked for
}

// Load makes the cores of runs from records: dispatch beside the others. Keep has it return the
// records, which take much memory.
func Load(
	ctx context.Context, source Source, runs []RunOf, config taskqueue.Config, keep bool,
) (*Loaded, error) {
	own, err := LoadTables(ctx, source, []string{flow.TableRun, flow.TableLog})
	if err != nil {
		return nil, err
	}
	defer heap.GrowFreely()()
	l := new(Loaded)
	var group errgroup.Group
	group.Go(func() (err error) {
		l.Dispatch, l.Effects, err = loadDispatch(ctx, source, config, func(r taskqueue.Record) {
			if keep {
				r.Body = bytes.Clone(r.Body)
				l.Records = append(l.Records, r)
			}
		})
		return err
	})
	group.Go(func() (err error) { return l.loadRuns(ctx, source, runs, own) })
	if err := group.Wait(); err != nil {
		return nil, err
	}
	for i := range l.Runs {
		l.Runs[i].Dispatch = l.Dispatch
	}
	if keep {
		l.Records = append(l.Records, own...)
	}
	return l, nil
}

// loadRuns makes flow and Tally of each run; own are the records of all flows.
func (l *Loaded) loadRuns(ctx context.Context, source Source, runs []RunOf, own []taskqueue.Record) (err error) {
	if l.Nodes, err = loadNodes(ctx, source); err != nil {
		return err
	}
	records := map[taskqueue.RunID][]taskqueue.Record{}
	for _, r := range own {
		records[r.Run] = append(records[r.Run], r)
	}
	tallies := map[taskqueue.RunID]*Tally{}
	for _, u := range runs {
		c := Cores{Run: u.Run}
		if c.Flow, err = flow.Load(u.Workflow, records[u.Run]); err != nil {
			return fmt.Errorf("loading the workflow: %w", err)
		}
		c.Tally = newTally(c.Flow.Workflow().Name, c.Flow.Workflow().StepNames(), l.Nodes)
		tallies[u.Run] = c.Tally
		l.Runs = append(l.Runs, c)
	}
	return loadTallies(ctx, source, tallies)
}

// Begin makes the cores of a run that is new to a core, of which there are no records.
func Begin(run RunOf, core *dispatch.Core, nodes *Nodes) (c Cores, err error) {
	c = Cores{Run: run.Run, Dispatch: core}
	if c.Flow, err = flow.New(run.Workflow); err != nil {
		return c, err
	}
	c.Tally = newTally(c.Flow.Workflow().Name, c.Flow.Workflow().StepNames(), nodes)
	return c, nil
}

// SweptTable has an empty record for each run that was retired and of which records may be left, that
// nobody loads.
const SweptTable = "server_swept"

// loadDispatch tells of each record before it takes it.
func loadDispatch(
	ctx context.Context, source Source, config taskqueue.Config, tell func(taskqueue.Record),
) (*dispatch.Core, taskqueue.Effects, error) {
	loading := dispatch.NewLoading(config)
	swept, err := LoadSwept(ctx, source)
	if err != nil {
		return nil, taskqueue.Effects{}, err
	}
	for _, table := range records.Tables() {
		err := source.Each(ctx, table, func(r taskqueue.Record) error {
			if slices.Contains(swept, r.Run) {
				return nil
			}
			tell(r)
			return loading.Add(r)
		})
		if err != nil {
			return nil, taskqueue.Effects{}, fmt.Errorf("loading the jobs: %w", err)
		}
	}
	core, effects, err := loading.End()
	if err != nil {
		err = fmt.Errorf("loading the jobs: %w", err)
	}
	return core, effects, err
}

// LoadSwept are the runs of SweptTable.
func LoadSwept(ctx context.Context, source Source) (runs []taskqueue.RunID, err error) {
	records, err := source.Load(ctx, SweptTable)
	for _, r := range records {
		runs = append(runs, r.Run)
	}
	return runs, err
}

// loadTallies takes in what is recorded of runs; what others recorded is passed over.
func loadTallies(ctx context.Context, s Source, tallies map[taskqueue.RunID]*Tally) error {
	err := s.Each(ctx, AttemptTable, func(r taskqueue.Record) error {
		if t := tallies[r.Run]; t != nil {
			return t.recall(r)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return s.Each(ctx, records.TablePublished, func(r taskqueue.Record) error {
		if t := tallies[r.Run]; t != nil {
			t.Published(strings.Clone(r.Key))
		}
		return nil
	})
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
	defer heap.GrowFreely()()
	core, _, err := loadDispatch(ctx, records, taskqueue.Config{}, func(taskqueue.Record) {})
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
	nodes, err := loadNodes(ctx, records)
	if err != nil {
		return nil, err
	}
	t := newTally(run.Workflow, run.Steps, nodes)
	t.Finished = run.State == Succeeded // of another, the records do not tell it
	return t, loadTallies(ctx, records, map[taskqueue.RunID]*Tally{run.ID: t})
}

// LoadTallyOf makes a Tally that knows the ended attempts of one job and where pilots run,
// and nothing else.
func LoadTallyOf(ctx context.Context, s PartSource, job taskqueue.JobID, hosts Hosts) (*Tally, error) {
	t := &Tally{Nodes: &Nodes{Hosts: hosts}}
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
func FailedJobs(c *Cores) []taskqueue.JobID {
	var failed []taskqueue.JobID
	if run, _ := c.Dispatch.Run(c.Run); run.Totals.ByState[taskqueue.Failed] == 0 {
		return nil
	}
	for job := range c.Dispatch.Jobs(c.Run, 0) {
		if job.State == taskqueue.Failed {
			failed = append(failed, job.ID)
		}
	}
	return failed
}
