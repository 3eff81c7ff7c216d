//go:build linux

package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"fairway/internal/cli/console"
	"fairway/internal/cli/service"
	"fairway/internal/eviction"
	"fairway/internal/flow/workflow"
	"fairway/internal/notice"
	"fairway/internal/pilot"
	"fairway/internal/quantity"
	"fairway/internal/server/listen"
	"fairway/internal/server/publish"
	"fairway/internal/server/serverjob"
	"fairway/internal/wire"
)

type runOptions struct {
	workOptions
	placeOptions
	pilotOptions
	serverOptions
	processOptions
}

type workOptions struct {
	file, folder string
	base         string // folder that names in the workflow are relative to; empty: folder
	text         []byte // of a workflow that no file has; nil: that of file
	set          []string
	parameters   map[string]string // the same
	dryRun       bool
	keepGoing    bool
	noReuse      bool
	force        []string
	until        string
	priority     int32
	timeScale    float64
	sizeScale    float64
	demands      []workflow.Demand // of jobs that come with the call
	strict       bool              // a step asks for strict sandboxes
	variables    []string          // that steps name
}

type placeOptions struct {
	results     string
	keepResults bool
	storage     string
	record      string
}

type pilotOptions struct {
	sites       []string
	pilots      int
	has         []string
	countable   map[string]int64 // the same
	tools       []string
	environment []string // variables that jobs get, or process.AllVariables
	waitAnyway  bool
	cache       string
	cachePolicy string
	cacheSize   string
	cacheSpace  int64 // the same, in bytes for each pilot
	placement   string
	watchInputs string
	keepSandbox bool
}

// serverOptions say where the server is, who reaches it, and of one that takes workflows (lasting)
// what it keeps and who may ask it.
type serverOptions struct {
	server                 string // serverHere or serverSite
	listen                 string
	web                    string // address of pages; empty: there are none
	webCertificate, webKey string
	notify                 string // a URL or a command; empty: none
	lasting                bool
	store                  string
	standby                bool          // other servers of the state stand by for it
	leaseText              string        // of a server that may have others, as it was given
	lease                  time.Duration // the same
	retention              string
	keeps                  time.Duration // the same
	compared               string
	comparedSize           int64  // the same
	shares, rights         string // files
}

type processOptions struct {
	follow    bool
	detach    bool
	attached  bool            // it ends with its standard input, of a program
	program   <-chan struct{} // closed when that has ended
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
			if err := o.check(command); err != nil {
				return err
			}
			var err error
			if o.file, o.folder, err = c.FileAndFolder(arguments); err != nil {
				return err
			}
			if o.base, err = filepath.Abs(filepath.Dir(o.file)); err != nil {
				return err
			}
			return c.run(command.Context(), o)
		},
	}
	flags := command.Flags()
	flags.StringArrayVar(&o.set, "set", nil, "give a parameter a value: name=value (may be repeated)")
	flags.BoolVar(&o.dryRun, "dry-run", false, "print what would run, why, and how long it takes by earlier "+
		"runs, and run nothing")
	flags.BoolVar(&o.keepGoing, "keep-going", false, "after a failure, go on with the jobs that do not depend on it")
	flags.StringArrayVar(&o.force, "force", nil,
		"run a step or a job again, with all that depends on it (may be repeated)")
	flags.BoolVar(&o.noReuse, "no-reuse", false, service.NoReuseHelp)
	flags.StringVar(&o.until, "until", "", "run only up to this step, or up to the step that writes this file")
	flags.Int32Var(&o.priority, "priority", 0, service.PriorityHelp)
	flags.BoolVar(&o.keepResults, "keep-results", false, "keep results of earlier runs that this run does not make")
	flags.BoolVar(&o.follow, "follow", false, "if another process runs the workflow already, watch that run")
	flags.Float64Var(&o.timeScale, "time-scale", 1, "multiply the run times of a trace by this")
	flags.Float64Var(&o.sizeScale, "size-scale", 1, "multiply the file sizes of a trace by this")
	flags.StringVar(&o.server, "server", serverHere,
		"where the server runs: in this process (here); as a job of the first "+
			"--site (site); or the `ADDRESS` of one that takes workflows (fairway serve)")
	flags.BoolVar(&o.detach, "detach", false, detachHelp)
	c.GroupFlag(command)
	webFlag(command, o)
	c.serverFlags(command, o)
	_ = command.RegisterFlagCompletionFunc("set", c.CompleteParameters)
	return command
}

// serverFlags are those of a command that may become the server of a run: where jobs run, and
// where their files go.
func (c *commands) serverFlags(command *cobra.Command, o *runOptions) {
	flags := command.Flags()
	flags.StringVar(&o.results, "results", "", "put the results into this `place` instead of results/: a folder, or a "+
		"URL (s3://bucket/folder, davs://, root://)")
	flags.StringVar(&o.storage, "storage", "", "store what jobs write at this `place` instead of .fairway/: a folder or "+
		"URL")
	flags.BoolVar(&o.keepSandbox, "keep-sandbox", false, "keep the working folders of attempts that fail; notes of "+
		"the job name them")
	flags.IntVar(&o.pilots, "pilots", 0, "number of local pilots; 0: one for each processor, or fewer for large steps")
	flags.StringArrayVar(&o.has, "has", nil, "what else this machine has that a step can ask for under needs:, such as "+
		"gpu=1 (may be repeated)")
	console.OneOf(command, &o.cache, "cache", "who shares cached files, where the site does not say: all pilots of a "+
		"machine (host), nobody (pilot), no cache (none), or host for what local jobs cannot be given links to (auto)",
		cacheAuto, "host", "pilot", "none")
	console.OneOf(command, &o.placement, "placement", "which of equal jobs a pilot gets, where neither workflow nor site "+
		"says: with most input bytes in its cache, kept for a better pilot if that saves time (by-gain) or is idle "+
		"(by-bytes); or with most input files (by-files)",
		"by-gain", "by-bytes", "by-files")
	console.OneOf(command, &o.watchInputs, "watch-inputs",
		"report files that jobs open without declaring them: in the first "+
			"attempt of each step, if the system allows it (auto), in all, or none", "auto", "all", "none")
	policies := console.Each(eviction.Policies, func(p eviction.Policy) string { return string(p) })
	slices.Reverse(policies) // the default comes first
	console.OneOf(command, &o.cachePolicy, "cache-policy",
		"which file a full cache gives up first, where the site does not say: "+strings.Join(policies, ", "), policies...)
	flags.StringVar(&o.cacheSize, "cache-space", "", "most space for the cache of one pilot, such as 500MB (default "+
		"10GiB, and half of the free disk for all of them)")
	flags.StringArrayVar(&o.sites, "site", nil, "run on this `site`, on this machine (local), or on the nodes of the "+
		"job in which this runs (allocation) (may be repeated)")
	flags.StringVar(&o.listen, "listen", "", listenHelp)
	flags.StringVar(&o.notify, "notify", "", "a URL that gets a POST (JSON), or a command, when a run has ended, has "+
		"failed or is stuck")
	flags.BoolVar(&o.waitAnyway, "wait-anyway", false,
		"wait for pilots even if, at the start, no pilot seems able to run a step")
	flags.StringArrayVar(&o.environment, "environment", nil,
		"a `variable` of this shell that jobs get at sites too, even if it is a secret such as "+
			"BEARER_TOKEN; or all (may be repeated)")
	flags.StringVar(&o.record, "record", "", "append the scheduler's inputs and decisions to this file, for sim replay")
	_ = command.RegisterFlagCompletionFunc("site", c.completeSites)
}

func newRunOptions() *runOptions {
	return &runOptions{
		workOptions:   workOptions{timeScale: 1, sizeScale: 1},
		pilotOptions:  pilotOptions{cache: cacheAuto, placement: "by-gain", watchInputs: string(pilot.WatchAuto)},
		serverOptions: serverOptions{server: serverHere},
	}
}

func (o *runOptions) check(command *cobra.Command) error {
	for name, instead := range map[string]string{
		"storage": "leave --storage out to store in .fairway/",
		"results": "leave --results out to publish in results/",
	} {
		if flag := command.Flags().Lookup(name); flag.Changed && flag.Value.String() == "" {
			return console.Fail(console.ExitUsage, instead, "--%s names no place", name)
		}
	}
	var err error
	if o.parameters, err = console.Parameters(o.set); err != nil {
		return err
	}
	if o.countable, err = counts(o.has); err != nil {
		return err
	}
	if o.results != "" {
		if o.results, err = publish.ParsePlace(o.results); err != nil {
			return console.Fail(console.ExitUsage, "", "--results: %w", err)
		}
	}
	if o.storage != "" {
		if o.storage, err = publish.ParsePlace(o.storage); err != nil {
			return console.Fail(console.ExitUsage, "", "--storage: %w", err)
		}
	}
	for _, name := range o.environment {
		if !variableName.MatchString(name) {
			return console.Fail(console.ExitUsage, "write a name such as LANG, or all", "--environment %s names no variable",
				name)
		}
	}
	if o.cacheSize != "" {
		if o.cacheSpace, err = quantity.Size(o.cacheSize); err != nil || o.cacheSpace == 0 {
			return console.Fail(console.ExitUsage, "write a size such as 500MB, or --cache none for no cache",
				"--cache-space %s is no size for a cache", o.cacheSize)
		}
	}
	if o.notify != "" {
		if err := notice.CheckPlace(o.notify); err != nil {
			return console.Fail(console.ExitUsage, "write https://HOST/PATH or a command", "--notify: %w", err)
		}
	}
	switch {
	case o.listen != "" && len(o.sites) == 0:
		return console.Fail(console.ExitUsage, "name the site whose pilots connect, with --site",
			"--listen is for pilots of sites, and there is no --site")
	case o.pilots < 0:
		return console.Fail(console.ExitUsage, "", "--pilots cannot be negative")
	case o.timeScale < 0 || o.sizeScale < 0:
		return console.Fail(console.ExitUsage, "", "--time-scale and --size-scale cannot be negative")
	case o.detach && (o.dryRun || o.follow):
		return console.Fail(console.ExitUsage, "", "--detach is for a run that goes on, not for --dry-run or --follow")
	case o.attached && (o.detach || o.server != serverHere):
		return console.Fail(console.ExitUsage, "leave one of them out", "--until-stdin-ends is for a run of this process, "+
			"not for --detach or --server")
	case o.temporary && (o.detach || o.server != serverHere):
		return console.Fail(console.ExitUsage, "leave one of them out", "--temporary is for a run of this process, "+
			"not for --detach or --server")
	case o.priority != 0 && o.record != "":
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
	connection, err := console.ReachRunning(ctx, o.folder)
	if err != nil && o.follow {
		return console.WithInstead(o.folder, err)
	}
	if connection != nil {
		defer connection.Close()
		if !o.follow {
			return alreadyRunning(o.folder)
		}
		if err := console.RefuseStopped(o.folder, connection); err != nil {
			return err
		}
		return c.follow(ctx, o.folder, connection)
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
	if o.dryRun || o.follow || o.detach || len(o.force) > 0 || o.keepResults || o.record != "" || len(o.sites) > 0 {
		return console.Fail(console.ExitUsage, "leave them out, or run the workflow here",
			"--dry-run, --follow, --detach, --force, "+
				"--keep-results, --record and --site are not for a workflow that is submitted to a server")
	}
	c.Service = o.server
	request, err := service.Submission(o.file, o.base, &service.SubmitOptions{
		Set: o.set, Until: o.until, KeepGoing: o.keepGoing, Results: strings.TrimPrefix(o.results, "file:"),
		Scales: workflow.Scales{TimeScale: o.timeScale, SizeScale: o.sizeScale}, WaitAnyway: o.waitAnyway,
		NoReuse: o.noReuse, Priority: o.priority,
	})
	if err != nil {
		return err
	}
	return c.SubmitWorkflow(ctx, request, true)
}
