package look

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"fairway/internal/cli/console"
	"fairway/internal/cli/screen"
	"fairway/internal/forecast"
	"fairway/internal/history"
	"fairway/internal/quantity"
	"fairway/internal/sim/experiment"
	"fairway/internal/wire"
)

type whatIfOptions struct {
	pilots int
	slots  string
	cache  string
	faster []string
	noWait bool
	draws  int
}

// WhatIfCommand is `fairway what-if`.
func (c *Commands) WhatIfCommand() *cobra.Command {
	o := new(whatIfOptions)
	command := &cobra.Command{
		Use:   "what-if [RUN]",
		Short: "Foretell how long a run would take under other conditions",
		Long: `Foretell how long a run would take with other pilots, caches or times: the TaskQueue
replays its recorded jobs. Without flags it tries half and twice the slots, other
caches, the longest step of the critical path twice as fast, and no wait of the
batch system. With flags it tries all that they say together.

First it replays the run as it was. By how much that misses the recorded time
corrects what is foretold. The interval comes from replays that draw the time of
each job again, from those of its step. RUN is a number at a server that takes
workflows.`,
		Example: "  fairway what-if\n  fairway what-if --slots 2x --cache global\n" +
			"  fairway what-if 7 --server /data/fairway --pilots 16 --faster align=2",
		Args: c.numbered,
		RunE: func(command *cobra.Command, _ []string) error {
			if o.pilots < 0 || o.pilots > forecast.MaxPilots {
				return console.Fail(console.ExitUsage, fmt.Sprintf("write a number up to %d", forecast.MaxPilots),
					"--pilots %d is out of range",
					o.pilots)
			}
			if o.draws < 0 || o.draws > mostDraws {
				return console.Fail(console.ExitUsage, fmt.Sprintf("write a number up to %d", mostDraws),
					"--draws %d is out of range", o.draws)
			}
			return c.Ask(command.Context(), func(ctx context.Context, client wire.WorkflowClient) error {
				return c.whatIf(ctx, client, o)
			})
		},
	}
	flags := command.Flags()
	flags.IntVar(&o.pilots, "pilots", 0, "with so many pilots")
	flags.StringVar(&o.slots, "slots", "", "with so many `slots`, or so many times as many: 16, 2x, 0.5x")
	console.OneOf(command, &o.cache, "cache", "with caches of each pilot, of each host, or of all hosts together, or none",
		string(experiment.PilotCache), string(experiment.HostCache), string(experiment.GlobalCache),
		string(experiment.NoCache))
	flags.StringArrayVar(&o.faster, "faster", nil, "with commands of a step so many times as fast: `STEP=FACTOR` (may be "+
		"repeated)")
	flags.BoolVar(&o.noWait, "no-wait", false, "with pilots that the batch system starts at once")
	flags.IntVar(&o.draws, "draws", 0, "replays with other times of jobs; 0: as many as are quick")
	return command
}

const mostDraws = 10_000

func (c *Commands) whatIf(ctx context.Context, client wire.WorkflowClient, o *whatIfOptions) error {
	run, _, err := c.history(ctx, client)
	if err != nil {
		return err
	}
	model, err := forecast.Of(run)
	if errors.Is(err, forecast.ErrNothing) {
		return console.Fail(console.ExitNotFound, "a job that has ended is needed", "%w", err)
	}
	if err != nil {
		return err
	}
	change, err := o.change(model)
	if err != nil {
		return err
	}
	changes := model.Usual()
	if change != nil {
		changes = []forecast.Change{*change}
	}
	a, err := whatIfOf(ctx, model, changes, o.draws)
	if err != nil {
		return err
	}
	return c.Answer(a, func() { c.printWhatIf(a) })
}

// change is what the flags ask for; nil: nothing.
func (o *whatIfOptions) change(m *forecast.Model) (*forecast.Change, error) {
	if o.pilots == 0 && o.slots == "" && o.cache == "" && len(o.faster) == 0 && !o.noWait {
		return nil, nil
	}
	change := &forecast.Change{
		Pilots: o.pilots, Cache: experiment.Share(o.cache), NoWait: o.noWait, Faster: map[string]float64{},
	}
	var err error
	if o.slots != "" {
		if o.pilots > 0 {
			return nil, console.Fail(console.ExitUsage, "leave one of them out", "--pilots and --slots say the same thing twice")
		}
		if change.Slots, err = m.SlotsFactor(o.slots); err != nil {
			return nil, console.Fail(console.ExitUsage, "", "--slots: %w", err)
		}
	}
	for _, text := range o.faster {
		step, factor, err := forecast.FasterStep(text)
		if err != nil {
			return nil, console.Fail(console.ExitUsage, "", "--faster: %w", err)
		}
		if !m.HasStep(step) {
			return nil, console.Fail(console.ExitNotFound, "`fairway why --json` lists the steps", "no job of a step %q was "+
				"executed in this run", step)
		}
		change.Faster[step] = factor
	}
	return change, nil
}

// WhatIfAnswer is what --json prints.
type WhatIfAnswer struct {
	Seconds  float64      `json:"seconds"`          // as recorded
	Replayed float64      `json:"replayed_seconds"` // as it was
	Slots    int          `json:"slots"`
	Pilots   int          `json:"pilots"`
	Cache    string       `json:"cache"`
	Notes    []string     `json:"notes"`
	Cases    []whatIfCase `json:"cases"`
}

type whatIfCase struct {
	Name    string             `json:"name"`
	Seconds float64            `json:"seconds"`
	Low     float64            `json:"low_seconds"`
	High    float64            `json:"high_seconds"`
	Slots   int                `json:"slots"`
	Cache   string             `json:"cache"`
	Faster  map[string]float64 `json:"faster"`
	NoWait  bool               `json:"no_wait"`
}

func whatIfOf(ctx context.Context, m *forecast.Model, changes []forecast.Change, draws int) (*WhatIfAnswer, error) {
	if draws == 0 {
		draws = m.DrawsFor()
	}
	a := &WhatIfAnswer{
		Seconds: m.Recorded.Seconds(), Replayed: m.Replayed.Seconds(), Slots: m.Slots(), Pilots: m.Pilots(),
		Cache: string(m.Cache), Notes: append([]string{}, m.Notes...), Cases: []whatIfCase{},
	}
	for _, change := range changes {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		f, err := m.Foretell(change, draws)
		if err != nil {
			return nil, err
		}
		one := whatIfCase{
			Name: f.Name, Seconds: f.Time.Seconds(), Low: f.Low.Seconds(), High: f.High.Seconds(), Slots: f.Slots,
			Cache: string(m.Cache), Faster: f.Faster, NoWait: f.NoWait,
		}
		if f.Cache != "" {
			one.Cache = string(f.Cache)
		}
		a.Cases = append(a.Cases, one)
	}
	return a, nil
}

func (c *Commands) printWhatIf(a *WhatIfAnswer) {
	fmt.Fprintf(c.Out, "It took %s with %s of %s. Replayed as it was: %s (%.0f %%).\n", quantity.Seconds(a.Seconds),
		quantity.Count(int64(a.Slots), "slot"), quantity.Count(int64(a.Pilots), "pilot"), quantity.Seconds(a.Replayed),
		100*a.Replayed/max(a.Seconds, 1e-9))
	rows := [][]screen.Cell{screen.Head("WHAT IF", "TIME", "CHANGE", "9 OF 10 BETWEEN")}
	for _, one := range a.Cases {
		rows = append(rows, []screen.Cell{
			{screen.OneLine(one.Name), ""}, {quantity.Seconds(one.Seconds), ""},
			{fmt.Sprintf("%+.0f %%", 100*(one.Seconds/max(a.Seconds, 1e-9)-1)), ""},
			{quantity.Seconds(one.Low) + " and " + quantity.Seconds(one.High), screen.Dim},
		})
	}
	screen.PrintTable(c.Out, rows)
	for _, note := range a.Notes {
		fmt.Fprintf(c.Out, "note: %s\n", note)
	}
}

// A run of up to fewJobs executed jobs is foretold with what set its time, with so many draws.
const (
	fewJobs  = 2000
	fewDraws = 4
)

// foretoldOf foretells the usual changes of a run; nil: it has too many jobs for that to be quick.
func foretoldOf(ctx context.Context, run *history.Run) (*WhatIfAnswer, error) {
	if len(run.Jobs) > fewJobs {
		return nil, nil
	}
	model, err := forecast.Of(run)
	if err != nil {
		return nil, err
	}
	return whatIfOf(ctx, model, model.Usual(), fewDraws)
}
