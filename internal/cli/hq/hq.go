package hq

import (
	"bufio"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"google.golang.org/protobuf/types/known/durationpb"

	"fairway/internal/cli/console"
	"fairway/internal/cli/screen"
	"fairway/internal/quantity"
	"fairway/internal/taskqueue"
	"fairway/internal/wire"
)

// Name is what the program is called where it stands for the command of HyperQueue: programs
// that submit jobs by that submit them to an open run (docs/nextflow.md).
const Name = "hq"

// runVariable names the run of a server that takes workflows to which hq submits.
const runVariable = "FAIRWAY_RUN"

// Root is the command `hq`, as far as Nextflow calls it.
func Root(on *console.Console) *cobra.Command {
	c := &commands{on}
	root := &cobra.Command{
		Use:   Name,
		Short: "Submit jobs to an open run of Fairway, as to HyperQueue",
		Long: `Fairway under the name of HyperQueue's command: what Nextflow calls of it. Jobs go
to the open run (fairway open) of this folder or the nearest one above it, or to
that of the folder in $` + console.ServerVariable + `. If that is a server that takes workflows,
$` + runVariable + ` has the number of the run.`,
		Version: console.VersionText(), SilenceUsage: true, SilenceErrors: true,
		PersistentPreRunE: func(*cobra.Command, []string) error {
			c.Started = true
			return c.hqRun()
		},
	}
	output := "cli"
	root.PersistentFlags().Var(console.ChoiceOf(&output, "cli", "quiet"), "output-mode", "cli or quiet")
	job := &cobra.Command{Use: "job", Short: "List and cancel jobs"}
	job.AddCommand(c.hqListCommand(&output), c.hqCancelCommand(&output))
	root.AddCommand(c.hqSubmitCommand(&output), job)
	root.SetFlagErrorFunc(console.FlagError)
	return root
}

func (c *commands) hqRun() error {
	c.Dir, c.Service = "", os.Getenv(console.ServerVariable)
	if c.Service != "" && console.IsFolderOfRun(c.Service) {
		c.Dir, c.Service = c.Service, ""
	}
	text := os.Getenv(runVariable)
	if c.Service == "" {
		return nil
	}
	number, err := strconv.ParseUint(text, 10, 32)
	if err != nil || number == 0 {
		return console.Fail(console.ExitUsage, "open one: export "+runVariable+"=$(fairway open)",
			"$%s names a server that takes workflows, and $%s is %q, not the number of one of its open runs",
			console.ServerVariable, runVariable, text)
	}
	c.Number = uint32(number)
	return nil
}

type hqOptions struct {
	name, log, stream, cwd, stdout, stderr, directives string

	resources []string
	variables []string
	cpus      string
	timeLimit string
	priority  int32
	losses    string // that HyperQueue counts; here they have a limit of their own
}

func (o *hqOptions) flags(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVar(&o.name, "name", "", "name of the job")
	flags.StringVar(&o.log, "log", "", "file for what the job prints")
	flags.StringVar(&o.stream, "stream", "", "the same")
	flags.StringVar(&o.stdout, "stdout", "", "file for its standard output")
	flags.StringVar(&o.stderr, "stderr", "", "file for its standard error")
	flags.StringVar(&o.cwd, "cwd", "", "folder in which it runs (default: this one)")
	flags.StringArrayVar(&o.resources, "resource", nil, "mem=MEGABYTES (or bytes, from 2^24 on), gpus=N or 0.5, "+
		"or what a site names")
	flags.StringArrayVar(&o.variables, "env", nil, "NAME=VALUE")
	flags.StringVar(&o.cpus, "cpus", "1", "processors")
	flags.StringVar(&o.timeLimit, "time-limit", "", "how long it may run, such as 600sec")
	flags.Int32Var(&o.priority, "priority", 0, "higher ones first")
	flags.StringVar(&o.losses, "crash-limit", "", "read, and left aside: 5 lost pilots are no failures")
	console.OneOf(command, &o.directives, "directives",
		"where else options stand: in the comments of the script that begin with "+
			hqToken+" (file, auto), or nowhere (off)", "auto", "file", "off")
}

func (c *commands) hqSubmitCommand(output *string) *cobra.Command {
	o := &hqOptions{directives: "auto"}
	command := &cobra.Command{
		Use:   "submit [flags] SCRIPT [ARGUMENT...]",
		Short: "Submit a script as a job, and print its number",
		Args:  console.Takes(1, console.AnyNumber, "SCRIPT"),
		RunE: func(command *cobra.Command, words []string) error {
			job, err := o.job(command, words)
			if err != nil {
				return err
			}
			var refs []*wire.SubmittedRef
			err = c.AskReturning(command.Context(), func(ctx context.Context, client wire.WorkflowClient) (err error) {
				refs, err = console.AddJobs(ctx, client, []*wire.SubmittedJob{job}, false)
				return err
			})
			if nothing, ok := errors.AsType[*console.Failure](err); ok && nothing.Code == console.ExitNoState {
				nothing.Hint = "open a run there with `fairway open`, or name the folder of one with $" + console.ServerVariable
			}
			if err != nil {
				return err
			}
			if *output == "cli" {
				fmt.Fprint(c.Out, "Job submitted successfully, job ID: ")
			}
			fmt.Fprintln(c.Out, refs[0].GetId())
			return nil
		},
	}
	command.Flags().SetInterspersed(false)
	o.flags(command)
	return command
}

func (o *hqOptions) job(command *cobra.Command, words []string) (*wire.SubmittedJob, error) {
	here, err := os.Getwd()
	if err != nil {
		return nil, fmt.Errorf("the folder of the job: %w", err)
	}
	program := words[:1:1]
	if o.directives != "off" {
		if program, err = o.readScript(command, seenFrom(here, words[0])); err != nil {
			if o.directives == "file" {
				return nil, &console.Failure{Code: console.ExitUsage, Err: err}
			}
			program = words[:1:1]
		}
	}
	needs, err := o.needs()
	if err != nil {
		return nil, &console.Failure{Code: console.ExitUsage, Err: err}
	}
	environment := map[string]string{}
	for _, variable := range o.variables {
		name, value, _ := strings.Cut(variable, "=")
		environment[name] = value
	}
	label := cmp.Or(o.name, filepath.Base(words[0]))
	return &wire.SubmittedJob{
		// Each call is a job of its own, and one whose answer is lost is repeated.
		Name: label + "." + strings.ToLower(rand.Text()[:12]),
		Step: hqStep(label), Needs: needs, Priority: o.priority,
		Payload: &wire.Payload{
			Argv: slices.Concat(o.wrapper(here), program, words[1:]), Environment: environment, Unwatched: true,
		},
		Retry: &wire.RetryPolicy{Attempts: 1},
	}, nil
}

// readScript takes the options that stand in a script, where the command line has no others, and
// returns what executes the script.
func (o *hqOptions) readScript(command *cobra.Command, script string) (program []string, err error) {
	text, err := os.ReadFile(script)
	if err != nil {
		return nil, err
	}
	found, err := readHQScript(string(text))
	if err != nil {
		return nil, fmt.Errorf("the options in %s: %w", script, err)
	}
	reader := &cobra.Command{}
	new(hqOptions).flags(reader)
	err = reader.ParseFlags(found.options)
	if more := reader.Flags().Args(); err == nil && len(more) > 0 {
		err = fmt.Errorf("%q is no option", more[0])
	}
	if err != nil {
		return nil, fmt.Errorf("the options in %s: %w", script, console.FlagError(reader, err))
	}
	reader.Flags().Visit(func(f *pflag.Flag) {
		ours := command.Flags().Lookup(f.Name)
		if list, ok := f.Value.(pflag.SliceValue); ok {
			for _, value := range list.GetSlice() {
				err = errors.Join(err, ours.Value.(pflag.SliceValue).Append(value))
			}
		} else if !ours.Changed {
			err = errors.Join(err, ours.Value.Set(f.Value.String()))
		}
	})
	return append(found.interpreter, script), err
}

// wrapper is the beginning of a command that runs in a folder which is no sandbox, and prints
// into files, as HyperQueue has it: a shell, which the command itself replaces.
func (o *hqOptions) wrapper(here string) []string {
	const text = `cd -- "$1" || exit; [ -z "$2" ] || exec >"$2"; case $3 in "") ;; =) exec 2>&1 ;; *) exec 2>"$3" ;; ` +
		`esac; shift 3; exec "$@"`
	cwd := seenFrom(here, o.cwd)
	file := func(path string) string {
		if path == "" {
			return "" // kept as what other jobs print
		}
		return seenFrom(cwd, path)
	}
	out, err := file(o.stdout), file(o.stderr)
	if both := cmp.Or(o.log, o.stream); both != "" {
		out, err = file(both), "="
	}
	return []string{"/bin/sh", "-c", text, Name, cwd, out, err}
}

func seenFrom(folder, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(folder, path)
}

// hqStep is the step of a job: of the name that Nextflow gives it, nf-PROCESS_(TAG), the process.
func hqStep(name string) string {
	name, _, _ = strings.Cut(strings.TrimPrefix(name, "nf-"), "_(")
	return strings.TrimLeft(notInStep.ReplaceAllString(name, "_"), "-.")
}

var notInStep = regexp.MustCompile(`[^A-Za-z0-9_.-]`)

func (o *hqOptions) needs() (*wire.Resources, error) {
	needs := &wire.Resources{Countable: map[string]int64{}}
	var err error
	if needs.MilliCpus, err = quantity.MilliCPUs(o.cpus); err != nil {
		return nil, fmt.Errorf("--cpus: %w", err)
	}
	if o.timeLimit != "" {
		limit, err := hqDuration(o.timeLimit)
		if err != nil {
			return nil, fmt.Errorf("--time-limit: %w", err)
		}
		needs.Time = durationpb.New(limit)
	}
	for _, resource := range o.resources {
		name, amount, _ := strings.Cut(resource, "=")
		switch name {
		case "mem":
			needs.MemoryBytes, err = hqMemory(amount)
		case "gpus":
			var n quantity.Amount
			n, err = quantity.GPUs(amount)
			if needs.GpuShare = n.Share; n.Share == 0 {
				needs.Countable[quantity.GPU] = n.Whole
			}
		default:
			needs.Countable[name], err = quantity.Whole(amount)
		}
		if err != nil {
			return nil, fmt.Errorf("--resource %s: %w", resource, err)
		}
	}
	return needs, nil
}

// hqMemory is an amount of memory in bytes. Nextflow writes bytes up to 24.04, and megabytes (2^20)
// from 24.10 on. A number from 2^24 on is one of bytes: as megabytes it would be 16 TiB, and a
// smaller one would be less than 16 MiB as bytes.
func hqMemory(text string) (int64, error) {
	n, err := quantity.Whole(text)
	if err == nil && n < 1<<24 {
		n <<= 20
	}
	return n, err
}

// hqDuration reads durations such as 600sec, 1h 30min and 01:30:00; a number alone is seconds.
func hqDuration(text string) (time.Duration, error) {
	if d := quantity.ClockTime(text); d > 0 {
		return d, nil
	}
	if n, err := quantity.Whole(text); err == nil && n < 1<<32 {
		return time.Duration(n) * time.Second, nil
	}
	return quantity.Duration(unitsInWords.Replace(text))
}

var unitsInWords = strings.NewReplacer(" ", "", "seconds", "s", "second", "s", "secs", "s", "sec", "s", "minutes", "m",
	"minute", "m", "mins", "m", "min", "m", "hours", "h", "hour", "h", "hrs", "h", "hr", "h", "days", "d", "day", "d")

var hqStates = map[string]string{
	taskqueue.Waiting.String(): "WAITING", taskqueue.Ready.String(): "WAITING", taskqueue.Assigned.String(): "WAITING",
	taskqueue.Running.String(): "RUNNING", taskqueue.Done.String(): "FINISHED", taskqueue.Failed.String(): "FAILED",
	taskqueue.Blocked.String(): "FAILED", taskqueue.Cancelled.String(): "CANCELED",
}

func (c *commands) hqListCommand(output *string) *cobra.Command {
	all := false
	command := &cobra.Command{
		Use:   "list [--all]",
		Short: "List jobs, a line each: number and state",
		Args:  console.NoArgument,
		RunE: func(command *cobra.Command, _ []string) error {
			return c.UntilReturned(command.Context(), c.Ask, func(ctx context.Context, client wire.WorkflowClient) error {
				out := bufio.NewWriter(c.Out)
				for job, err := range console.AllJobs(ctx, client, &wire.ListJobsRequest{Limit: hqPage}) {
					if err != nil {
						return err
					}
					state := hqStates[job.GetState()]
					if !all && state != "WAITING" && state != "RUNNING" {
						continue
					}
					fmt.Fprintf(out, "%d %s", job.GetId(), state)
					if *output == "cli" {
						fmt.Fprint(out, " ", screen.OneLine(job.GetName()))
					}
					fmt.Fprintln(out)
				}
				return out.Flush()
			})
		},
	}
	command.Flags().BoolVar(&all, "all", false, "also those that have ended")
	return command
}

const hqPage = 10_000

func (c *commands) hqCancelCommand(output *string) *cobra.Command {
	return &cobra.Command{
		Use:   "cancel JOB[,JOB...]",
		Short: "Cancel jobs, by their numbers",
		Args:  console.Takes(1, 1, "JOB"),
		RunE: func(command *cobra.Command, arguments []string) error {
			jobs := strings.Split(arguments[0], ",")
			return c.UntilReturned(command.Context(), c.Ask, func(ctx context.Context, client wire.WorkflowClient) error {
				changed, err := client.Cancel(ctx, &wire.CancelRequest{Jobs: jobs})
				if err != nil {
					return err
				}
				if *output == "cli" {
					for _, job := range changed.GetJobs() {
						fmt.Fprintln(c.Out, "Job", job.GetId(), hqStates[job.GetState()])
					}
				}
				return nil
			})
		},
	}
}
