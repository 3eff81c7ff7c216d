package look

import (
	"bytes"
	"context"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"fairway/internal/cli/console"
	"fairway/internal/wfformat"
	"fairway/internal/wire"
)

// ExportCommand is `fairway export`.
func (c *Commands) ExportCommand() *cobra.Command {
	out, format := "-", "1.5"
	var crate crateOptions
	command := &cobra.Command{
		Use:   "export",
		Short: "Write a run as WfFormat, as RO-Crate, or for Perfetto",
		Long: `Write the run of this folder as WfFormat (JSON), the format in which workflow
systems exchange recorded runs, with times to the microsecond. Jobs that are not
done, or whose results came from an earlier run, are left out. With --format
perfetto it is a timeline of all attempts for https://ui.perfetto.dev.
With --format ro-crate it is a Workflow Run RO-Crate 0.5, with the workflow file: a
new folder, or a ZIP file if the name ends in .zip. It tells of the steps and jobs,
what they read and wrote, with sizes and checksums, when, and who had them run. The
data are not copied.`,
		Example: "  fairway export -o run.json\n  fairway export --format ro-crate --license CC-BY-4.0 -o crate.zip\n" +
			"  fairway -C examples/lambda export --format 1.6 | jq .workflow.execution.makespanInSeconds",
		Args: console.NoArgument,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := crate.refuse(format, out); err != nil {
				return err
			}
			return c.Ask(command.Context(), func(ctx context.Context, client wire.WorkflowClient) error {
				switch format {
				case formatPerfetto:
					return c.exportPerfetto(ctx, client, out)
				case formatCrate:
					return c.exportCrate(ctx, client, out, crate)
				}
				run, err := recorded(ctx, client)
				if err != nil {
					return err
				}
				var text bytes.Buffer
				if err := wfformat.Export(&text, run, format); err != nil {
					return &console.Failure{Code: console.ExitUsage, Err: err}
				}
				return c.write(out, &text)
			})
		},
	}
	command.Flags().StringVarP(&out, "output", "o", out, "file to write; -: standard output")
	console.OneOf(command, &format, "format", "version of WfFormat: 1.5 or 1.6; or perfetto, or ro-crate", "1.5", "1.6",
		formatPerfetto, formatCrate)
	flags := command.Flags()
	flags.StringVar(&crate.workflow, "workflow", "", "of an RO-Crate: the workflow `file` (default: workflow.yaml in the "+
		"folder of the run)")
	flags.StringVar(&crate.agent, "agent", "", "of an RO-Crate: who had it run, a name or a URL such as that of an ORCID "+
		"(default: the user of the run)")
	flags.StringVar(&crate.license, "license", "", "of an RO-Crate: under which licence it is, a name or a URL")
	return command
}

// Values of --format that are no version.
const (
	formatPerfetto = "perfetto"
	formatCrate    = "ro-crate"
)

func (c *Commands) exportPerfetto(ctx context.Context, client wire.WorkflowClient, out string) error {
	run, _, err := c.history(ctx, client)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	if err := run.Perfetto(&text); err != nil {
		return err
	}
	return c.write(out, &text)
}

func (c *Commands) write(path string, text *bytes.Buffer) error {
	if path == "-" {
		_, err := io.Copy(c.Out, text)
		return err
	}
	return os.WriteFile(path, text.Bytes(), 0o666)
}

const exportPage = 1000

func recorded(ctx context.Context, client wire.WorkflowClient) (wfformat.Run, error) {
	machine, err := thisMachine()
	if err != nil {
		return wfformat.Run{}, err
	}
	run := wfformat.Run{Created: time.Now(), Version: console.ProgramVersion()}
	report, err := console.ProgressNow(ctx, client)
	if err != nil {
		return run, err
	}
	run.Name = report.GetWorkflow()
	for summary, err := range console.AllJobs(ctx, client, &wire.ListJobsRequest{States: []string{"done"},
		Limit: exportPage}) {
		if err != nil {
			return run, err
		}
		job, err := client.ShowJob(ctx, &wire.ShowJobRequest{Job: summary.Name})
		if err != nil {
			return run, err
		}
		addTask(&run, job)
	}
	run.Machines = machinesOf(run.Tasks, machine)
	return run, nil
}

func addTask(run *wfformat.Run, job *wire.JobDetail) {
	attempt := committed(job)
	usage := attempt.GetResult().GetUsage()
	if !set(usage.GetStart()) || !set(usage.GetEnd()) {
		return
	}
	program, arguments := programOf(job.Payload)
	task := wfformat.RunTask{
		Name: job.Summary.Name, Program: program, Arguments: arguments,
		Reads: runFiles(job.Reads), Writes: runFiles(job.Writes),
		Start: usage.Start.AsTime(), End: usage.End.AsTime(), CPU: usage.Cpu.AsDuration(), Memory: usage.MaxRssBytes,
		Cores:     float64(max(1000, job.Needs.GetMilliCpus())) / 1000,
		BytesRead: usage.BytesStaged + usage.BytesCached, BytesWrote: usage.BytesWritten,
		Priority: int(job.Priority), Machine: attempt.GetHost(),
	}
	if run.Start.IsZero() || task.Start.Before(run.Start) {
		run.Start = task.Start
	}
	if task.End.After(run.End) {
		run.End = task.End
	}
	run.Tasks = append(run.Tasks, task)
}

// committed is the attempt whose outputs are visible: the last that succeeded.
func committed(job *wire.JobDetail) *wire.AttemptDetail {
	for _, a := range slices.Backward(job.Attempts) {
		if a.Result.GetOutcome() == wire.Outcome_OUTCOME_SUCCEEDED && a.Result != nil {
			return a
		}
	}
	return nil
}

func programOf(payload *wire.Payload) (program string, arguments []string) {
	switch {
	case payload.GetReplay() != nil:
		return payload.Replay.Program, nil
	case len(payload.GetArgv()) > 0:
		return payload.Argv[0], payload.Argv[1:]
	}
	words := strings.Fields(payload.GetInterpreter())
	if len(words) == 0 {
		words = []string{"bash"}
	}
	if payload.GetScript() != "" {
		return words[0], append(words[1:], payload.Script)
	}
	return words[0], append(words[1:], "-c", strings.TrimSpace(payload.GetShell()))
}

func runFiles(files []*wire.FileDetail) []wfformat.RunFile {
	var list []wfformat.RunFile
	for _, file := range files {
		if file.Available {
			list = append(list, wfformat.RunFile{LFN: file.Lfn, Version: file.Version, Size: file.Size})
		}
	}
	return list
}
