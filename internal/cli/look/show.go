package look

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/timestamppb"

	"fairway/internal/cli/console"
	"fairway/internal/cli/screen"
	"fairway/internal/quantity"
	"fairway/internal/taskqueue"
	"fairway/internal/wire"
)

// ShowCommand is `fairway show`.
func (c *Commands) ShowCommand() *cobra.Command {
	return &cobra.Command{
		Use:               "show JOB",
		Short:             "Show a job: its command, files and attempts",
		Long:              "Show a job: its state, its command, what it needs, the files that it reads and\nwrites, and how its attempts ended.",
		Example:           "  fairway show align/p3\n  fairway show 17 --json",
		Args:              console.OneJob,
		ValidArgsFunction: c.CompleteJob,
		RunE: func(command *cobra.Command, arguments []string) error {
			return c.AskAbout(command.Context(), func(ctx context.Context, client wire.WorkflowClient) error {
				job, err := client.ShowJob(ctx, &wire.ShowJobRequest{Job: arguments[0]})
				if err != nil {
					return err
				}
				return c.Answer(job, func() { c.printJob(job) })
			})
		},
	}
}

func (c *Commands) printJob(job *wire.JobDetail) {
	s := screen.StyleOf(c.Out)
	summary := job.Summary
	tasks := ""
	if summary.Tasks > 0 {
		tasks = fmt.Sprintf(" of %d tasks", summary.Tasks)
	}
	fmt.Fprintf(c.Out, "%s  job %d%s of step %s, %s\n", s.Paint(screen.Bold, screen.OneLine(summary.Name)), summary.Id,
		tasks,
		summary.Step, s.Paint(stateColour(summary.State), summary.State))
	if summary.Reason != "" {
		fmt.Fprintf(c.Out, "  %s\n", screen.Uncoloured(summary.Reason))
	}
	c.printNotes(summary)
	heading := func(text string) { fmt.Fprintf(c.Out, "\n%s\n", s.Paint(screen.Dim, text)) }
	heading("command")
	for line := range strings.Lines(commandText(job.Payload)) {
		fmt.Fprintf(c.Out, "  %s\n", strings.TrimRight(line, "\n"))
	}
	switch own, lent := job.GetPriority(), job.GetEffectivePriority(); {
	case lent > own:
		heading("priority")
		fmt.Fprintf(c.Out, "  %d; %d is lent by jobs that wait for it\n", own, lent)
	case own != 0:
		heading("priority")
		fmt.Fprintf(c.Out, "  %d\n", own)
	}
	if needs := needsText(job.Needs); needs != "" {
		heading("needs")
		fmt.Fprintf(c.Out, "  %s%s\n", needs, grownText(job.Attempts))
	}
	done := summary.State == taskqueue.Done.String()
	c.printFiles(heading, "reads", job.Reads, done)
	c.printFiles(heading, "writes", job.Writes, done)
	if len(job.Attempts) > 0 {
		heading("attempts")
		c.printAttempts(job.Attempts, summary.Tasks)
	}
}

func (c *Commands) printNotes(job *wire.JobSummary) {
	for _, note := range job.Notes {
		fmt.Fprintf(c.Out, "  %s\n", screen.StyleOf(c.Out).Paint(screen.Yellow, "note: "+screen.OneLine(note)))
	}
}

func commandText(payload *wire.Payload) string {
	switch {
	case payload == nil:
		return ""
	case payload.Replay != nil:
		return fmt.Sprintf("replay of %s: %s of computing", payload.Replay.Program, payload.Replay.Compute.AsDuration())
	case payload.Script != "":
		return strings.TrimSpace(payload.Interpreter + " " + payload.Script)
	case payload.Shell != "":
		return payload.Shell
	default:
		return strings.Join(payload.Argv, " ")
	}
}

// grownText says why a job may need more than its step says.
func grownText(attempts []*wire.AttemptDetail) string {
	if slices.ContainsFunc(attempts, func(a *wire.AttemptDetail) bool {
		return a.Result.GetOutcome() == wire.Outcome_OUTCOME_OUT_OF_MEMORY
	}) {
		return " (grown since an attempt ran out of it)"
	}
	return ""
}

func needsText(needs *wire.Resources) string {
	if needs == nil {
		return ""
	}
	var parts []string
	if needs.MilliCpus > 0 {
		parts = append(parts, fmt.Sprintf("%g cpus", float64(needs.MilliCpus)/1000))
	}
	if needs.MemoryBytes > 0 {
		parts = append(parts, quantity.Bytes(needs.MemoryBytes)+" memory")
	}
	if needs.DiskBytes > 0 {
		parts = append(parts, quantity.Bytes(needs.DiskBytes)+" disk")
	}
	if span := needs.Time.AsDuration(); span > 0 {
		parts = append(parts, quantity.Seconds(span.Seconds()))
	}
	for name, count := range needs.Countable {
		parts = append(parts, fmt.Sprintf("%d %s", count, name))
	}
	if needs.GpuShare > 0 {
		parts = append(parts, quantity.Amount{Share: needs.GpuShare}.String()+" gpu")
	}
	return strings.Join(parts, ", ")
}

func (c *Commands) printFiles(heading func(string), title string, files []*wire.FileDetail, done bool) {
	if len(files) == 0 {
		return
	}
	heading(title)
	var rows [][]screen.Cell
	for _, file := range files {
		rows = append(rows, []screen.Cell{{"  " + file.Lfn, ""}, {fileText(file, done) + accessText(file), ""}, {file.Pfn,
			screen.Dim}})
	}
	screen.PrintTable(c.Out, rows)
}

func accessText(file *wire.FileDetail) string {
	switch file.Access {
	case taskqueue.AccessStream.String():
		return ", streamed unless the node has it"
	case taskqueue.AccessCopy.String():
		return ", copied"
	}
	return ""
}

// fileText describes a file of a job. What a job that is done has read or written was there.
func fileText(file *wire.FileDetail, done bool) string {
	switch {
	case file.Pattern && !file.Available:
		return "names known when the job has ended"
	case !file.Available && file.Temporary && done:
		return fmt.Sprintf("version %d, %s", file.Version, removedAsTemporary)
	case !file.Available && done:
		return fmt.Sprintf("version %d, not stored any more", file.Version)
	case !file.Available && file.Writer != 0:
		return fmt.Sprintf("version %d, not yet written by job %d", file.Version, file.Writer)
	case !file.Available:
		return fmt.Sprintf("version %d, not there", file.Version)
	case file.Published:
		return quantity.Bytes(file.Size) + ", published"
	default:
		return quantity.Bytes(file.Size)
	}
}

func tryText(a *wire.AttemptDetail, tasks int32) string {
	if tasks > 0 {
		return fmt.Sprintf("%d task %d", a.Try, a.Task)
	}
	return strconv.Itoa(int(a.Try))
}

func (c *Commands) printAttempts(attempts []*wire.AttemptDetail, tasks int32) {
	var rows [][]screen.Cell
	for _, a := range attempts {
		rows = append(rows, []screen.Cell{
			{"  " + tryText(a, tasks), ""},
			{outcomeText(a) + whenText(a), outcomeColour(a.Outcome)},
			{usageText(a.Result.GetUsage()), ""},
			{placeText(a), screen.Dim},
			{a.Result.GetMessage(), ""},
		})
	}
	screen.PrintTable(c.Out, rows)
}

func whenText(a *wire.AttemptDetail) string {
	if start := a.Result.GetUsage().GetStart(); a.Earlier && set(start) {
		return " in an earlier run, " + start.AsTime().Local().Format("2006-01-02 15:04")
	}
	return ""
}

func placeText(a *wire.AttemptDetail) string {
	if a.Host == "" {
		return a.Pilot
	}
	return a.Pilot + " on " + a.Host
}

func outcomeText(a *wire.AttemptDetail) string {
	outcome := strings.ReplaceAll(a.Outcome, "_", " ")
	switch {
	case a.Result.GetOutcome() == wire.Outcome_OUTCOME_EXITED:
		return fmt.Sprintf("exit code %d", a.Result.GetExitCode())
	case a.Result.GetOutcome() == wire.Outcome_OUTCOME_SIGNALLED:
		return fmt.Sprintf("signal %d", a.Result.GetSignal())
	default:
		return outcome
	}
}

func outcomeColour(outcome string) string {
	switch outcome {
	case "succeeded":
		return screen.Green
	case "running":
		return screen.Blue
	default:
		return screen.Red
	}
}

func usageText(usage *wire.Usage) string {
	if !set(usage.GetStart()) || !set(usage.GetEnd()) {
		return ""
	}
	text := fmt.Sprintf("%s, cpu %s", quantity.Seconds(between(usage.Start, usage.End)),
		quantity.Seconds(usage.Cpu.AsDuration().Seconds()))
	if usage.MaxRssBytes > 0 {
		text += ", " + quantity.Bytes(usage.MaxRssBytes) + " memory"
	}
	return text
}

func between(start, end *timestamppb.Timestamp) float64 {
	return end.AsTime().Sub(start.AsTime()).Seconds()
}
