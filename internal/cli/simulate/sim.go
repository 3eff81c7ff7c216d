package simulate

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"fairway/internal/cli/console"
	"fairway/internal/cli/screen"
	"fairway/internal/sim"
	"fairway/internal/sim/compare"
	"fairway/internal/sim/experiment"
	"fairway/internal/sim/faults"
	"fairway/internal/sim/paper"
	"fairway/internal/sim/report"
)

// simOptions are the flags of sim and of the commands below it.
type simOptions struct {
	out         string
	seed        uint64
	repetitions int
}

// Command is `fairway sim`.
func Command(on *console.Console) *cobra.Command {
	c := &commands{on}
	o := &simOptions{}
	command := &cobra.Command{
		Use:   "sim FILE",
		Short: "Simulate an experiment: sites, storage, caches, faults",
		Long: `Simulate the experiment that FILE describes. The scheduler is that of a real run;
time, pilots, batch systems, networks and storage are modelled. The same file and
seed always give the same results. examples/sim has some files;
all-keys.yaml there explains each key.

With --out, sim writes the results into a folder: runs.csv, results.json, figures
as PNG, and report.html, which shows all of them.`,
		Example: `  fairway sim examples/sim/cache-size.yaml --out results
  fairway sim examples/sim/cache-size.yaml --json
  fairway sim paper
  fairway sim compare`,
		Args: console.Takes(1, 1, "FILE"),
		RunE: func(command *cobra.Command, arguments []string) error {
			return c.simulate(command.Context(), arguments[0], o)
		},
	}
	command.PersistentFlags().StringVar(&o.out, "out", "", "folder for CSV, JSON, figures and the report")
	command.PersistentFlags().Uint64Var(&o.seed, "seed", 0, "seed, in place of the one in the file")
	command.PersistentFlags().IntVar(&o.repetitions, "repetitions", 0,
		"runs of each point, in place of the number in the file")
	command.AddCommand(c.simPaperCommand(o), c.simCompareCommand(o), c.simFaultsCommand(o), c.simReplayCommand())
	return command
}

func (c *commands) simPaperCommand(o *simOptions) *cobra.Command {
	return &cobra.Command{
		Use:   "paper",
		Short: "Repeat figures 6 to 12 of the paper on pilot jobs and data caches",
		Long: `Repeat the experiments of section V of "CMS Workflow Execution using Intelligent
Job Scheduling and Data Access Strategies" (Hasham and others), and say of each
statement of its text whether it held. Where the paper gives no value, Fairway
assumes one; the report (--out) lists each assumption with its reason.`,
		Example: `  fairway sim paper --out paper
  fairway sim paper --repetitions 5 --json`,
		Args: console.NoArgument,
		RunE: func(command *cobra.Command, _ []string) error {
			return c.simulatePaper(command.Context(), o)
		},
	}
}

func (c *commands) simCompareCommand(o *simOptions) *cobra.Command {
	return &cobra.Command{
		Use:   "compare [TRACE...]",
		Short: "Compare the policies of eviction and placement on the same work",
		Long: `Compare policies on the same work:
  - what a cache gives up first (FIFO, LRU, LFU, LRU-K, LFU-*, LFU with ageing,
    LCB-K, next use), for caches of 5 to 100 % of the data: in scheduled runs,
    and on one recorded sequence of accesses, with a bound that no cache beats;
  - the rules for placing jobs on pilots;
  - what counts in the choice of a site: data, queue, cost;
  - the turnaround with as many pilots as can be used, and the longest chain of
    jobs.
The work is that of the WfFormat traces that you name, or else the patterns of
the paper.`,
		Example: `  fairway sim compare
  fairway sim compare trace.json --out compared`,
		RunE: func(command *cobra.Command, traces []string) error {
			return c.simulateComparison(command.Context(), traces, o)
		},
	}
}

func (c *commands) simulateComparison(ctx context.Context, traces []string, o *simOptions) error {
	rows, results, err := compare.Policies(ctx, traces, o.seed, c.counted("runs"))
	if err != nil {
		return err
	}
	chapters := make([]report.Chapter, len(results))
	for i, res := range results {
		chapters[i].Results = res
	}
	if err := c.writeChapters(o.out, chapters); err != nil {
		return err
	}
	return c.Answer(ComparedRows{rows}, func() { printCompared(c.Out, rows) })
}

// What --json prints of policies that are compared, of the paper, and of drawn faults.
type (
	ComparedRows struct {
		Rows []compare.Row `json:"rows"`
	}
	PaperClaims struct {
		Rows []report.Claim `json:"rows"`
	}
	FacedFaults struct {
		First  uint64         `json:"first"`
		Seeds  int            `json:"seeds"`
		Failed int            `json:"failed"`
		Faults map[string]int `json:"faults"`
	}
)

// printCompared leaves empty what was not measured.
func printCompared(out io.Writer, rows []compare.Row) {
	table := [][]screen.Cell{
		cells("kind", "work", "cache", "policy", "hits", "byte hits", "read GB", "over bound", "turnaround s",
			"from other sites GB", "money"),
	}
	for _, r := range rows {
		cache := ""
		if r.CachePercent > 0 {
			cache = fmt.Sprintf("%d %%", r.CachePercent)
		}
		table = append(table, cells(
			r.Kind, r.Work, cache, r.Policy, measured("%.3f", r.HitRatio, 1), measured("%.3f", r.ByteHitRatio, 1),
			measured("%.4g", r.ReadGB, 1), measured("%.1f %%", r.OverBound, 100), measured("%.0f", r.Turnaround, 1),
			measured("%.4g", r.WideGB, 1), measured("%.3g", r.Money, 1),
		))
	}
	screen.PrintTable(out, table)
}

// measured writes a number in a unit of which one is so many, or nothing.
func measured(format string, value *float64, times float64) string {
	if value == nil {
		return ""
	}
	return fmt.Sprintf(format, times*(*value))
}

func (c *commands) simFaultsCommand(o *simOptions) *cobra.Command {
	var seeds int
	command := &cobra.Command{
		Use:   "faults",
		Short: "Check what must hold while everything goes wrong",
		Long: `Run workflows while everything goes wrong: messages are lost and repeated, pilots
and the server die, records cannot be written, batch systems forget and answer
late, storage fails and fills up. No job may be lost or committed twice, no cache
may grow beyond its limit, nothing may get stuck. If a seed fails, Fairway prints
the command that repeats it.`,
		Example: `  fairway sim faults --seeds 10000
  fairway sim faults --seed 17 --seeds 1`,
		Args: console.NoArgument,
		RunE: func(command *cobra.Command, _ []string) error {
			first := max(o.seed, 1)
			faced, err := faults.Check(command.Context(), first, seeds, c.counted("seeds"))
			if err != nil {
				return err
			}
			return c.Answer(FacedFaults{first, seeds, 0, faced.ByName()}, func() {
				fmt.Fprintf(c.Out, "%d seeds from %d on: all held\n", seeds, first)
				for f, times := range faced {
					fmt.Fprintf(c.Out, "%9d  %s\n", times, sim.Fault(f))
				}
			})
		},
	}
	command.Flags().IntVar(&seeds, "seeds", 100, "number of seeds")
	return command
}

func (c *commands) simulate(ctx context.Context, file string, o *simOptions) error {
	plan, err := experiment.ParseFile(file)
	if err != nil {
		return &console.Failure{Code: console.ExitBadFile, Err: err}
	}
	if err := plan.Repeat(o.repetitions); err != nil {
		return &console.Failure{Code: console.ExitBadFile, Err: err}
	}
	if err := plan.Reseed(o.seed); err != nil {
		return &console.Failure{Code: console.ExitBadFile, Err: err}
	}
	results, err := sim.Sweep(ctx, plan, c.counted("runs"))
	if err != nil {
		return err
	}
	if err := c.writeChapters(o.out, []report.Chapter{{Results: results}}); err != nil {
		return err
	}
	return c.Answer(report.JSON(results), func() { printRows(c.Out, results) })
}

func (c *commands) simulatePaper(ctx context.Context, o *simOptions) error {
	chapters, err := paper.Run(ctx, o.repetitions, o.seed, c.counted("runs"))
	if err != nil {
		return err
	}
	if err := c.writeChapters(o.out, chapters); err != nil {
		return err
	}
	claims := []report.Claim{}
	for _, chapter := range chapters {
		claims = append(claims, chapter.Claims...)
	}
	return c.Answer(PaperClaims{claims}, func() {
		for _, claim := range claims {
			printClaim(c.Out, claim)
		}
	})
}

func printClaim(out io.Writer, claim report.Claim) {
	held := "held    "
	if !claim.Held {
		held = "NOT HELD"
	}
	fmt.Fprintf(out, "%-5s %s  %s\n                 found: %s\n", claim.ID, held, claim.Claim, claim.Value)
	if !claim.Held {
		fmt.Fprintf(out, "                 expected: %s\n", claim.Expected)
	}
	if claim.Reason != "" {
		fmt.Fprintf(out, "                 reason: %s\n", claim.Reason)
	}
	if claim.Chance != "" {
		fmt.Fprintf(out, "                 by chance: %s\n", claim.Chance)
	}
}

// writeChapters draws and writes, where a folder is given.
func (c *commands) writeChapters(folder string, chapters []report.Chapter) error {
	if folder == "" {
		return nil
	}
	for i := range chapters {
		var err error
		if chapters[i].Figures, err = report.Figures(chapters[i].Results); err != nil {
			return err
		}
	}
	return report.Write(folder, chapters)
}

// shownMetrics are the columns that a person sees first; the rest is in the
// files of --out and in --json.
var shownMetrics = []string{"turnaround_s", "stage_in_s", "hit_ratio", "read_gb", "attempts"}

func printRows(out io.Writer, results *sim.Results) {
	rows := [][]screen.Cell{cells(append(append([]string{}, results.Plan.Axes...), shownMetrics...)...)}
	for _, row := range results.Rows {
		line := append([]string{}, row.Levels...)
		for _, metric := range shownMetrics {
			line = append(line, report.Text(&row, metric))
		}
		rows = append(rows, cells(line...))
	}
	screen.PrintTable(out, rows)
	for _, row := range results.Rows {
		if failed, _ := row.Of("jobs_failed"); failed > 0 {
			fmt.Fprintln(out, "not all jobs were done everywhere: they failed, or wait for files that will not come "+
				"(jobs_failed in --json and runs.csv)")
			return
		}
	}
}

func cells(texts ...string) []screen.Cell {
	row := make([]screen.Cell, len(texts))
	for i, text := range texts {
		row[i] = screen.Cell{text}
	}
	return row
}
