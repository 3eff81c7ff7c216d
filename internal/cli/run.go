//go:build linux

package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"fairway/internal/cli/console"
	"fairway/internal/cli/screen"
	"fairway/internal/cli/service"
	"fairway/internal/eviction"
	"fairway/internal/flow/workflow"
	"fairway/internal/notice"
	"fairway/internal/pilot"
	"fairway/internal/provision"
	"fairway/internal/quantity"
	"fairway/internal/server"
	"fairway/internal/server/convert"
	"fairway/internal/server/listen"
	"fairway/internal/server/publish"
	"fairway/internal/server/serverjob"
	"fairway/internal/wire"
)

// runOptions are those of a command that may become a server. Flags write into the configuration of that,
// to which [provision.Provide] adds what comes from sites and from this machine.
type runOptions struct {
	config server.Config
	pilots provision.Options
	workOptions
	serverOptions
	processOptions
}

type workOptions struct {
	file       string
	text       []byte // of a workflow that no file has; nil: that of file
	parameters map[string]string
	dryRun     bool
	until      string
	priority   int32
	scales     workflow.Scales
	placement  string
}

// serverOptions say where the server is, who reaches it, and of one that takes workflows how others
// take its place.
type serverOptions struct {
	server                 string // serverHere or serverSite
	web                    string // address of pages; empty: there are none
	webCertificate, webKey string
	standby                bool          // other servers of the state stand by for it
	lease                  time.Duration // of a server that may have others
}

type processOptions struct {
	follow    bool
	detach    bool
	program   <-chan struct{} // closed when the program has ended with which it ends; nil: there is none
	shared    func()          // others may add jobs: gives up those of this call at the first signal; nil: none may
	temporary bool            // its folder goes when it has ended
}

func (c *commands) runCommand() *cobra.Command {
	o := newRunOptions()
	command := &cobra.Command{
		Use:   "run [FILE]",
		Short: "Run a workflow, or go on with it",
		Long: `Run the workflow that FILE describes (default: workflow.yaml). Its state is in
.fairway/ beside FILE, its results in results/. A second run goes on where the
first one ended: only jobs run that are not done, or whose command or inputs
have changed. FILE can also be a recorded trace in WfFormat (JSON).

Ctrl-C ends the run when the running attempts have ended; twice ends it at once.`,
		Example: `  fairway run workflow.yaml
  fairway run workflow.yaml --set reads=/data/reads --set pairs=500
  fairway run workflow.yaml --force align/p3   # again, although it is done
  fairway run workflow.yaml --results s3://bucket/run7
  fairway run workflow.yaml --site cluster --site local
  fairway run trace.json --time-scale 0.01 --size-scale 0
  fairway run workflow.yaml --detach           # then log out; --follow watches it later
  fairway run workflow.yaml --site cluster --server site`,
		Args:              console.MaybeFile,
		ValidArgsFunction: console.WorkflowFiles,
		RunE: func(command *cobra.Command, arguments []string) error {
			if err := o.check(); err != nil {
				return err
			}
			var err error
			if o.file, o.config.Folder, err = c.FileAndFolder(arguments); err != nil {
				return err
			}
			if o.config.Base, err = filepath.Abs(filepath.Dir(o.file)); err != nil {
				return err
			}
			return c.run(command.Context(), o)
		},
	}
	flags := command.Flags()
	c.ParametersFlag(command, &o.parameters)
	flags.BoolVar(&o.dryRun, "dry-run", false, "print what would run, why, and how long it takes by earlier "+
		"runs, and run nothing")
	flags.BoolVar(&o.config.KeepGoing, "keep-going", false, "after a failure, go on with the jobs that do not depend "+
		"on it")
	flags.StringArrayVar(&o.config.Rerun, "force", nil,
		"run a step or a job again, with all that depends on it (may be repeated)")
	flags.BoolVar(&o.config.NoReuse, "no-reuse", false, service.NoReuseHelp)
	flags.StringVar(&o.until, "until", "", "run only up to this step, or up to the step that writes this file")
	flags.Int32Var(&o.priority, "priority", 0, service.PriorityHelp)
	flags.BoolVar(&o.config.KeepResults, "keep-results", false, "keep results of earlier runs that this run does not make")
	flags.BoolVar(&o.follow, "follow", false, "if another process runs the workflow already, watch that run")
	flags.Float64Var(&o.scales.TimeScale, "time-scale", 1, "multiply the run times of a trace by this")
	flags.Float64Var(&o.scales.SizeScale, "size-scale", 1, "multiply the file sizes of a trace by this")
	flags.StringVar(&o.server, "server", serverHere,
		"where the server runs: in this process (here); as a job of the first "+
			"--site (site); or the `ADDRESS` of one that takes workflows (fairway serve)")
	flags.BoolVar(&o.detach, "detach", false, detachHelp)
	c.GroupFlag(command)
	webFlag(command, o)
	c.serverFlags(command, o)
	return command
}

// serverFlags are those of a command that may become the server of a run: where jobs run, and
// where their files go.
func (c *commands) serverFlags(command *cobra.Command, o *runOptions) {
	flags, config, pilots := command.Flags(), &o.config, &o.pilots
	place := func(name string, value *string, instead, help string) {
		console.Parsed(command, name, "", help, func(text string) (err error) {
			if text == "" {
				return console.Fail(console.ExitUsage, instead, "--%s names no place", name)
			}
			if *value, err = publish.ParsePlace(text); err != nil {
				err = console.Fail(console.ExitUsage, "", "--%s: %w", name, err)
			}
			return err
		})
	}
	place("results", &config.Results, "leave --results out to publish in results/", "put the results into this `place` "+
		"instead of results/: a folder, or a URL (s3://bucket/folder, davs://, root://)")
	place("storage", &config.Storage, "leave --storage out to store in .fairway/", "store what jobs write at this "+
		"`place` instead of .fairway/: a folder or URL")
	flags.BoolVar(&pilots.KeepSandbox, "keep-sandbox", false, "keep the working folders of attempts that fail; notes of "+
		"the job name them")
	flags.IntVar(&pilots.Pilots, "pilots", 0, "number of local pilots; 0: one for each processor, or fewer for large "+
		"steps")
	console.Parsed(command, "has", "", "what else this machine has that a step can ask for under needs:, such as "+
		"gpu=1 (may be repeated)", o.readHas)
	console.OneOf(command, &pilots.Cache, "cache", "who shares cached files, where the site does not say: all pilots of "+
		"a machine (host), nobody (pilot), no cache (none), or host for what local jobs cannot be given links to (auto)",
		provision.CacheAuto, "host", "pilot", "none")
	console.OneOf(command, &o.placement, "placement", "which of equal jobs a pilot gets, where neither workflow nor site "+
		"says: with most input bytes in its cache, kept for a better pilot if that saves time (by-gain) or is idle "+
		"(by-bytes); or with most input files (by-files)",
		"by-gain", "by-bytes", "by-files")
	console.OneOf(command, &pilots.WatchInputs, "watch-inputs",
		"report files that jobs open without declaring them: in the first "+
			"attempt of each step, if the system allows it (auto), in all, or none", "auto", "all", "none")
	policies := convert.Each(eviction.Policies, func(p eviction.Policy) string { return string(p) })
	slices.Reverse(policies) // the default comes first
	console.OneOf(command, &pilots.CachePolicy, "cache-policy",
		"which file a full cache gives up first, where the site does not say: "+strings.Join(policies, ", "), policies...)
	console.Parsed(command, "cache-space", "", "most space for the cache of one pilot, such as 500MB (default "+
		"10GiB, and half of the free disk for all of them)", func(text string) (err error) {
		if pilots.CacheSpace, err = quantity.Room(text); err != nil || pilots.CacheSpace == 0 {
			return console.Fail(console.ExitUsage, "write a size such as 500MB, or --cache none for no cache",
				"--cache-space %s is no size for a cache", text)
		}
		return nil
	})
	flags.StringArrayVar(&pilots.Sites, "site", nil, "run on this `site`, on this machine (local), or on the nodes of "+
		"the job in which this runs (allocation) (may be repeated)")
	flags.StringVar(&config.Listen, "listen", "", listenHelp)
	flags.StringVar(&config.Notify, "notify", "", "a URL that gets a POST (JSON), or a command, when a run has ended, "+
		"has failed or is stuck")
	flags.BoolVar(&config.WaitAnyway, "wait-anyway", false,
		"wait for pilots even if, at the start, no pilot seems able to run a step")
	flags.StringArrayVar(&pilots.Environment, "environment", nil,
		"a `variable` of this shell that jobs get at sites too, even if it is a secret such as "+
			"BEARER_TOKEN; or all (may be repeated)")
	flags.StringVar(&config.Recording, "record", "", "append the scheduler's inputs and decisions to this file, for sim "+
		"replay")
	_ = command.RegisterFlagCompletionFunc("site", c.completeSites)
}

func newRunOptions() *runOptions {
	return &runOptions{
		pilots: provision.Options{
			Cache: provision.CacheAuto, WatchInputs: string(pilot.WatchAuto), Shown: screen.DisplayPath,
		},
		workOptions:   workOptions{scales: workflow.Scales{TimeScale: 1, SizeScale: 1}, placement: "by-gain"},
		serverOptions: serverOptions{server: serverHere},
	}
}

func (o *runOptions) readHas(setting string) error {
	name, text, _ := strings.Cut(setting, "=")
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || name == "" {
		return console.Fail(console.ExitUsage, "write --has name=number, such as --has gpu=1",
			"--has %s gives no number", setting)
	}
	if o.pilots.Has == nil {
		o.pilots.Has = map[string]int64{}
	}
	o.pilots.Has[name] = n
	return nil
}

func (o *runOptions) check() error {
	for _, name := range o.pilots.Environment {
		if !variableName.MatchString(name) {
			return console.Fail(console.ExitUsage, "write a name such as LANG, or all", "--environment %s names no variable",
				name)
		}
	}
	if o.config.Notify != "" {
		if err := notice.CheckPlace(o.config.Notify); err != nil {
			return console.Fail(console.ExitUsage, "write https://HOST/PATH or a command", "--notify: %w", err)
		}
	}
	switch {
	case o.config.Listen != "" && len(o.pilots.Sites) == 0:
		return console.Fail(console.ExitUsage, "name the site whose pilots connect, with --site",
			"--listen is for pilots of sites, and there is no --site")
	case o.pilots.Pilots < 0:
		return console.Fail(console.ExitUsage, "", "--pilots cannot be negative")
	case o.scales.TimeScale < 0 || o.scales.SizeScale < 0:
		return console.Fail(console.ExitUsage, "", "--time-scale and --size-scale cannot be negative")
	case o.detach && (o.dryRun || o.follow):
		return console.Fail(console.ExitUsage, "", "--detach is for a run that goes on, not for --dry-run or --follow")
	case (o.pilots.Attached || o.temporary) && (o.detach || o.server != serverHere):
		return console.Fail(console.ExitUsage, "leave one of them out", "--until-stdin-ends and --temporary are for a run "+
			"of this process, not for --detach or --server")
	case o.priority != 0 && o.config.Recording != "":
		return console.Fail(console.ExitUsage, "write `priority` at the steps", "--record keeps no --priority")
	case o.dryRun && o.follow:
		return console.Fail(console.ExitUsage, "", "--dry-run runs nothing that --follow could watch")
	}
	return o.checkServer()
}

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func (c *commands) run(ctx context.Context, o *runOptions) error {
	if o.server != serverHere && o.server != serverSite {
		return c.runAtServer(ctx, o)
	}
	if err := c.RefuseGroup(); err != nil {
		return err
	}
	if o.dryRun {
		return c.dryRun(ctx, o)
	}
	if o.server == serverSite && serverjob.Running() {
		return c.serve(ctx, o) // which waits for the server before, if this one is to follow it
	}
	connection, err := console.ReachRunning(ctx, o.config.Folder)
	if err != nil && o.follow {
		return console.WithInstead(o.config.Folder, err)
	}
	if connection != nil {
		defer connection.Close()
		if !o.follow {
			return alreadyRunning(o.config.Folder)
		}
		if err := console.RefuseStopped(o.config.Folder, connection); err != nil {
			return err
		}
		return c.follow(ctx, o.config.Folder, connection)
	}
	if o.server == serverSite {
		return c.runAsJob(ctx, o)
	}
	if o.detach && !isDetached() {
		return c.detach(ctx, o)
	}
	return c.serve(ctx, o)
}

func alreadyRunning(folder string) error {
	return console.Fail(console.ExitRunning, "watch it with --follow, or end it with `fairway stop`",
		"another process runs the workflow in %s", console.FolderText(folder))
}

func (c *commands) follow(ctx context.Context, folder string, connection *listen.Connection) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer console.Signalled(func(os.Signal) { cancel() })()
	report, err := c.Watch(ctx, connection)
	if err != nil && connection.Far {
		report, err = c.followNext(ctx, folder, err)
	}
	if ctx.Err() != nil {
		return console.Quietly(console.ExitInterrupted)
	}
	if err != nil {
		return fmt.Errorf("watching the run: %w", console.Explained(console.WithInstead(folder, err)))
	}
	return c.conclude(ctx, folder, report)
}

func (c *commands) conclude(ctx context.Context, folder string, report *wire.ProgressReport) error {
	return c.ConcludeAsking(report, func(do console.Asking) error { return console.AskIn(ctx, folder, do) })
}

const detachHelp = "run in the background, and go on when the terminal is closed"

const listenHelp = "address at which the server waits for pilots of sites: HOST:PORT (default all interfaces, any " +
	"free port)"

func (c *commands) runAtServer(ctx context.Context, o *runOptions) error {
	config := &o.config
	if o.dryRun || o.follow || o.detach || len(config.Rerun) > 0 || config.KeepResults || config.Recording != "" ||
		len(o.pilots.Sites) > 0 {
		return console.Fail(console.ExitUsage, "leave them out, or run the workflow here",
			"--dry-run, --follow, --detach, --force, "+
				"--keep-results, --record and --site are not for a workflow that is submitted to a server")
	}
	c.Service = o.server
	request, err := service.Submission(o.file, config.Base, &service.SubmitOptions{
		Parameters: o.parameters, Until: o.until, KeepGoing: config.KeepGoing, Scales: o.scales, Priority: o.priority,
		Results: strings.TrimPrefix(config.Results, "file:"), WaitAnyway: config.WaitAnyway, NoReuse: config.NoReuse,
	})
	if err != nil {
		return err
	}
	return c.SubmitWorkflow(ctx, request, true)
}
