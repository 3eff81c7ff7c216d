package cli

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/timestamppb"

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

// jobsListed is how many jobs are listed when it is not said: more than a person
// reads, and quick however many there are.
const jobsListed = 100

func (c *console) jobsCommand() *cobra.Command {
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
		Args: noArgument,
		RunE: func(command *cobra.Command, _ []string) error {
			asked := request.States
			request.States = nil
			for _, name := range asked {
				states := statesOf(name)
				if states == nil {
					return fail(exitUsage, "states are queued, silent, "+strings.Join(stateNames, ", "), "there is no state %q", name)
				}
				request.States = append(request.States, states...)
			}
			if limit <= 0 {
				return fail(exitUsage, "", "--limit is a number above 0, not %d", limit)
			}
			request.Limit, request.After = limit, after
			if slices.Contains(asked, silentName) {
				if len(asked) > 1 {
					return fail(exitUsage, "ask for it alone", "silent is no state of its own: such jobs are assigned or running")
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
	_ = command.RegisterFlagCompletionFunc("step", c.completeSteps)
	return command
}

// listSilent lists jobs whose pilots are not heard.
func (c *console) listSilent(ctx context.Context, request *wire.ListJobsRequest) error {
	return c.askAbout(ctx, func(ctx context.Context, client wire.WorkflowClient) error {
		silent, err := silentOf(ctx, client, request)
		if err != nil {
			return err
		}
		return c.answer(silent, func() {
			c.printJobs(silent)
			if silent.More {
				fmt.Fprintf(c.err, "%d of %d jobs; --limit shows more\n", len(silent.Jobs), silent.Total)
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
	for job, err := range allJobs(ctx, client, all) {
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

func (c *console) listJobs(ctx context.Context, request *wire.ListJobsRequest) error {
	return c.askAbout(ctx, func(ctx context.Context, client wire.WorkflowClient) error {
		answer, err := client.ListJobs(ctx, request)
		if err != nil {
			return err
		}
		return c.answer(answer, func() {
			c.printJobs(answer)
			if answer.More {
				c.printRest(request, answer)
			}
		})
	})
}

// allJobs are the jobs that a request asks for, of all pages. The first error ends them.
func allJobs(
	ctx context.Context, client wire.WorkflowClient, request *wire.ListJobsRequest,
) iter.Seq2[*wire.JobSummary, error] {
	return func(yield func(*wire.JobSummary, error) bool) {
		for more := true; more; {
			page, err := client.ListJobs(ctx, request)
			if err != nil {
				yield(nil, err)
				return
			}
			for _, job := range page.Jobs {
				request.After = job.Id
				if !yield(job, nil) {
					return
				}
			}
			more = page.More && len(page.Jobs) > 0
		}
	}
}

func (c *console) printJobs(answer *wire.ListJobsResponse) {
	if len(answer.Jobs) == 0 {
		fmt.Fprintln(c.out, "no such jobs")
		return
	}
	rows := [][]cell{{{"JOB", dim}, {"NAME", dim}, {"STATE", dim}, {"ATTEMPTS", dim}, {"TIME", dim}, {"", dim}}}
	for _, job := range answer.Jobs {
		rows = append(rows, jobRow(job, answer.Now))
	}
	printTable(c.out, rows)
}

// printRest tells what the list leaves out.
func (c *console) printRest(request *wire.ListJobsRequest, answer *wire.ListJobsResponse) {
	states := ""
	if len(request.States) == 0 {
		states = " (" + statesText(progressOf(answer.ByState), true) + ")"
	}
	last := answer.Jobs[len(answer.Jobs)-1].Id
	fmt.Fprintf(c.err, "%d of %d jobs%s; the next: --after %d; fewer: --state, --step\n", len(answer.Jobs), answer.Total,
		states, last)
}

func progressOf(byState map[string]int64) *wire.StepProgress {
	return &wire.StepProgress{
		Waiting: byState["waiting"], Ready: byState["ready"],
		Queued: byState["assigned"], Running: byState["running"],
		Done: byState["done"], Failed: byState["failed"], Blocked: byState["blocked"], Cancelled: byState["cancelled"],
	}
}

func jobRow(job *wire.JobSummary, now *timestamppb.Timestamp) []cell {
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
	return []cell{
		{strconv.FormatUint(uint64(job.Id), 10), ""},
		{job.Name, ""},
		{state, stateColour(state)},
		{strconv.Itoa(int(job.Attempts)), ""},
		{ranText(job, now), ""},
		{note, dim},
	}
}

func stateColour(state string) string {
	switch state {
	case "done":
		return green
	case "failed", "silent":
		return red
	case "blocked", "cancelled":
		return yellow
	case "running":
		return blue
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
