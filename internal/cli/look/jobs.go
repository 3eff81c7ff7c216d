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
	"fairway/internal/wire"
)

var stateNames = []string{"waiting", "ready", "assigned", "running", "done", "failed", "blocked", "cancelled"}

// silentName is shown for the state of a job whose pilot is not heard.
const silentName = "silent"

// statesOf are the states that a name of one means. On the screen, "queued" are jobs that could run, and
// "silent" those whose pilot is not heard.
func statesOf(name string) []string {
	switch {
	case name == "queued":
		return []string{"ready", "assigned"}
	case name == silentName:
		return []string{"assigned", "running"}
	case slices.Contains(stateNames, name):
		return []string{name}
	}
	return nil
}

const jobsListed = 100

// JobsCommand is `fairway jobs`.
func (c *Commands) JobsCommand() *cobra.Command {
	request := &wire.ListJobsRequest{}
	var limit int32
	var after uint32
	command := &cobra.Command{
		Use:   "jobs",
		Short: "List jobs",
		Long: `List the jobs of this folder's workflow, in the order of their places in the
queue. Each job has a name, STEP/VALUES, and a number; all commands accept both.`,
		Example: `  fairway jobs
  fairway jobs --state failed --state blocked
  fairway jobs --step align --limit 20 --json`,
		Args: console.NoArgument,
		RunE: func(command *cobra.Command, _ []string) error {
			asked := request.States
			request.States = nil
			for _, name := range asked {
				states := statesOf(name)
				if states == nil {
					return console.Fail(console.ExitUsage, "states are queued, silent, "+strings.Join(stateNames, ", "),
						"there is no state %q", name)
				}
				request.States = append(request.States, states...)
			}
			if limit <= 0 {
				return console.Fail(console.ExitUsage, "", "--limit is a number above 0, not %d", limit)
			}
			request.Limit, request.After = limit, after
			if slices.Contains(asked, silentName) {
				if len(asked) > 1 {
					return console.Fail(console.ExitUsage, "ask for it alone",
						"silent is no state of its own: such jobs are assigned or running")
				}
				return c.listSilent(command.Context(), request)
			}
			return c.listJobs(command.Context(), request)
		},
	}
	flags := command.Flags()
	flags.StringArrayVar(&request.States, "state", nil, "only jobs in this state (may be repeated); "+
		"queued: ready or assigned; silent: at a pilot that is not heard")
	flags.StringArrayVar(&request.Steps, "step", nil, "only jobs of this step (may be repeated)")
	flags.Int32Var(&limit, "limit", jobsListed, "list at most this many jobs")
	flags.Uint32Var(&after, "after", 0, "only jobs with a number above this one, to page through many jobs")
	_ = command.RegisterFlagCompletionFunc("state", cobra.FixedCompletions(stateNames, cobra.ShellCompDirectiveNoFileComp))
	_ = command.RegisterFlagCompletionFunc("step", c.CompleteSteps)
	return command
}

func (c *Commands) listSilent(ctx context.Context, request *wire.ListJobsRequest) error {
	return c.AskAbout(ctx, func(ctx context.Context, client wire.WorkflowClient) error {
		silent, err := silentOf(ctx, client, request)
		if err != nil {
			return err
		}
		return c.Answer(silent, func() {
			c.printJobs(silent)
			if silent.More {
				fmt.Fprintf(c.Err, "%d of %d jobs; --limit shows more\n", len(silent.Jobs), silent.Total)
			}
		})
	})
}

// silentOf are those of the jobs that a request asks for whose pilots are not heard.
func silentOf(
	ctx context.Context, client wire.WorkflowClient, request *wire.ListJobsRequest,
) (*wire.ListJobsResponse, error) {
	found, err := client.ListJobs(ctx, &wire.ListJobsRequest{Limit: 1})
	if err != nil {
		return nil, err
	}
	found.Jobs, found.More, found.Total = nil, false, 0
	all := &wire.ListJobsRequest{States: request.States, Steps: request.Steps, After: request.After}
	for job, err := range console.AllJobs(ctx, client, all) {
		if err != nil {
			return nil, err
		}
		if !set(job.Silent) {
			continue
		}
		if found.Total++; len(found.Jobs) < int(request.Limit) {
			found.Jobs = append(found.Jobs, job)
		} else {
			found.More = true
		}
	}
	return found, nil
}

func (c *Commands) listJobs(ctx context.Context, request *wire.ListJobsRequest) error {
	return c.AskAbout(ctx, func(ctx context.Context, client wire.WorkflowClient) error {
		answer, err := client.ListJobs(ctx, request)
		if err != nil {
			return err
		}
		return c.Answer(answer, func() {
			c.printJobs(answer)
			if answer.More {
				c.printRest(request, answer)
			}
		})
	})
}

func (c *Commands) printJobs(answer *wire.ListJobsResponse) {
	if len(answer.Jobs) == 0 {
		fmt.Fprintln(c.Out, "no such jobs")
		return
	}
	rows := [][]screen.Cell{screen.Head("JOB", "NAME", "STATE", "ATTEMPTS", "TIME", "")}
	for _, job := range answer.Jobs {
		rows = append(rows, jobRow(job, answer.Now))
	}
	screen.PrintTable(c.Out, rows)
}

func (c *Commands) printRest(request *wire.ListJobsRequest, answer *wire.ListJobsResponse) {
	states := ""
	if len(request.States) == 0 {
		states = " (" + screen.StatesText(progressOf(answer.ByState), true) + ")"
	}
	last := answer.Jobs[len(answer.Jobs)-1].Id
	fmt.Fprintf(c.Err, "%d of %d jobs%s; the next: --after %d; fewer: --state, --step\n", len(answer.Jobs), answer.Total,
		states, last)
}

func progressOf(byState map[string]int64) *wire.StepProgress {
	return &wire.StepProgress{
		Waiting: byState["waiting"], Ready: byState["ready"],
		Queued: byState["assigned"], Running: byState["running"],
		Done: byState["done"], Failed: byState["failed"], Blocked: byState["blocked"], Cancelled: byState["cancelled"],
	}
}

func jobRow(job *wire.JobSummary, now *timestamppb.Timestamp) []screen.Cell {
	note, state := job.Reason, job.State
	if set(job.Silent) {
		state = "silent"
	}
	if job.Reused && job.Attempts == 0 {
		note = "result of an earlier run"
	} else if note == "" && set(job.Silent) {
		note = fmt.Sprintf("on %s, which has not been heard of for %s", job.Pilot, quantity.Seconds(between(job.Silent, now)))
	} else if note == "" && job.State == "running" && job.Tasks > 0 {
		note = fmt.Sprintf("%d tasks, the first on %s", job.Tasks, job.Pilot)
	} else if note == "" && job.State == "running" {
		note = "on " + job.Pilot
	} else if note == "" {
		note = strings.Join(job.Notes, "; ")
	}
	return []screen.Cell{
		{strconv.FormatUint(uint64(job.Id), 10), ""},
		{job.Name, ""},
		{state, stateColour(state)},
		{strconv.Itoa(int(job.Attempts)), ""},
		{ranText(job, now), ""},
		{note, screen.Dim},
	}
}

func stateColour(state string) string {
	switch state {
	case "done":
		return screen.Green
	case "failed", "silent":
		return screen.Red
	case "blocked", "cancelled":
		return screen.Yellow
	case "running":
		return screen.Blue
	default:
		return ""
	}
}

// ranText is how long the last attempt ran, or has run until now, which the server has told:
// it started the attempt by the same clock.
func ranText(job *wire.JobSummary, now *timestamppb.Timestamp) string {
	end := job.Ended
	if !set(end) && job.State == "running" {
		end = now
	}
	if !set(job.Started) || !set(end) {
		return ""
	}
	return quantity.Seconds(between(job.Started, end))
}

func set(t *timestamppb.Timestamp) bool {
	return t.IsValid() && !t.AsTime().IsZero() && t.AsTime().Unix() > 0
}
