//go:build linux

package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"fairway/internal/cli/console"
	"fairway/internal/cli/screen"
	"fairway/internal/quantity"
	"fairway/internal/server"
	"fairway/internal/server/active"
	"fairway/internal/server/folder"
	"fairway/internal/store"
	"fairway/internal/yamlfile"
	"fairway/lib/sched"
)

// serviceText is the workflow that stands for those that will be submitted, where a server is
// prepared as for one.
const serviceText = "workflow: service\nopen: true\n"

func (c *commands) serveCommand() *cobra.Command {
	o := newRunOptions()
	command := &cobra.Command{
		Use:   "serve",
		Short: "Start a server that takes workflows",
		Long: `Start a server that takes workflows (` + "`fairway submit`" + `) until it is stopped, and runs
them side by side, with the same pilots and caches. Its state is in .fairway/ of the
folder --state, results are in results/NUMBER/. Start it again there, and all runs
go on. With --listen or --site it also answers over the network, to those who have
a copy of .fairway/service.

With --standby several servers may be started for one state, on machines that share
its folder and reach the PostgreSQL of --store. One is active. When it has ended, was
killed, or is silent for a --lease, another one goes on; pilots and clients follow.`,
		Example: `  fairway serve --state /data/fairway --site cluster --listen :7070
  fairway serve --state /data/fairway --detach
  fairway serve --state /data/fairway --web
  fairway serve --state /shared/fairway --store postgres://db/fairway --listen :7070 --standby
  fairway submit workflow.yaml --server /data/fairway`,
		Args: console.NoArgument,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := c.prepareService(command, o); err != nil {
				return err
			}
			if o.detach && !isDetached() {
				return c.detach(command.Context(), o)
			}
			return c.serveWorkflows(command.Context(), o)
		},
	}
	flags := command.Flags()
	flags.StringVar(&o.folder, "state", ".", "folder of the server, which is made if need be")
	flags.StringVar(&o.store, "store", "", "a PostgreSQL that keeps the records, from the first start on: "+
		"postgres://USER@HOST/DATABASE?schema=NAME (default: a file in the folder of the state)")
	flags.BoolVar(&o.standby, "standby", false, "share the state with other servers that are started in this way, "+
		"of which one at a time is active; wants --store and --listen with a port")
	flags.StringVar(&o.leaseText, "lease", "10s", "with --standby: the `time` for which the active server may be silent "+
		"until another one takes its place; say the same to all")
	flags.StringArrayVar(&o.tools, "tool", nil,
		"a `program` that pilots look for when they start; for others they look when a run names them under tools: "+
			"(may be repeated)")
	flags.BoolVar(&o.strict, "strict-sandboxes", false, "pilots must be able to give steps strict sandboxes")
	flags.BoolVar(&o.detach, "detach", false, detachHelp)
	flags.StringVar(&o.shares, "shares", "", "`file` that says how groups and users share the server; it is read again "+
		"when it changes (default: all users alike)")
	flags.StringVar(&o.retention, "retention", "30d", "keep stored outputs that no run names any more for this `time`, "+
		"of groups whose shares do not say; 0: not at all")
	flags.StringVar(&o.compared, "compare-inputs", "64GiB", "know inputs up to this `size` by their contents, which are "+
		"read once; larger ones are known by size, time and inode")
	flags.StringVar(&o.rights, "rights", "", "`file` that says who may ask the server besides those who have a token: "+
		"by an identity provider, or by a proxy")
	webFlag(command, o)
	flags.StringVar(&o.webCertificate, "web-certificate", "", "PEM `file` with the certificate of the pages, where "+
		"they are not on loopback (default: one that the state signs)")
	flags.StringVar(&o.webKey, "web-key", "", "PEM `file` with its key")
	c.serverFlags(command, o)
	for _, name := range []string{"record", "results", "wait-anyway"} { // of one run
		_ = flags.MarkHidden(name)
	}
	return command
}

func (c *commands) prepareService(command *cobra.Command, o *runOptions) error {
	for name, instead := range map[string]string{
		"record": "record one workflow with `fairway run --record`", "results": "say it with `fairway submit --results`",
		"wait-anyway": "this server waits in any case",
	} {
		if command.Flags().Changed(name) {
			return console.Fail(console.ExitUsage, instead, "--%s is not for a server that takes workflows", name)
		}
	}
	if c.Service != "" && command.Flags().Changed("server") || c.Number != 0 {
		return console.Fail(console.ExitUsage, "name the folder with --state",
			"--server and --run are for commands that ask a server")
	}
	if c.Dir != "" {
		o.folder = c.Dir
	}
	if o.store != "" {
		if err := store.CheckAddress(o.store); err != nil {
			return &console.Failure{Code: console.ExitUsage, Err: fmt.Errorf("--store: %w", err)}
		}
	}
	if err := o.checkResults(); err != nil {
		return err
	}
	if err := o.checkStandby(command); err != nil {
		return err
	}
	o.lasting, o.waitAnyway, o.file, o.text = true, true, "fairway serve", []byte(serviceText)
	if o.listen != "" && len(o.sites) == 0 {
		o.sites = []string{server.LocalSite}
	}
	if err := o.check(command); err != nil {
		return err
	}
	var err error
	if o.shares != "" {
		if o.shares, err = filepath.Abs(o.shares); err != nil {
			return err
		}
	}
	if o.rights != "" {
		if o.rights, err = filepath.Abs(o.rights); err != nil {
			return err
		}
	}
	if (o.webCertificate == "") != (o.webKey == "") {
		return console.Fail(console.ExitUsage, "name both with --web-certificate and --web-key",
			"a certificate is good with its key only")
	}
	if err := os.MkdirAll(o.folder, 0o777); err != nil {
		return err
	}
	o.folder, err = console.GivenFolder(o.folder)
	return err
}

// checkResults reads how long results are kept, and which inputs are compared.
func (o *runOptions) checkResults() (err error) {
	if o.retention != "0" {
		if o.keeps, err = quantity.Duration(o.retention); err != nil {
			return console.Fail(console.ExitUsage, "write a time such as 30d, or 0", "--retention: %w", err)
		}
	}
	if o.comparedSize, err = quantity.Size(o.compared); err != nil {
		return console.Fail(console.ExitUsage, "write a size such as 64GiB", "--compare-inputs: %w", err)
	}
	return nil
}

func (c *commands) serveWorkflows(ctx context.Context, o *runOptions) error {
	config, err := c.serverConfig(ctx, o)
	if err != nil {
		return err
	}
	if o.standby {
		return c.serveByTurns(ctx, o, config)
	}
	return c.serveOpened(ctx, o, config)
}

// serveOpened is serveWorkflows of the active server. The error is one of active.IsReplaced where
// another one is, or may be.
func (c *commands) serveOpened(ctx context.Context, o *runOptions, config server.Config) error {
	if err := c.openWeb(o, &config); err != nil {
		return err
	}
	s, err := server.Open(ctx, config)
	if active.IsReplaced(err) {
		return err
	}
	if running, ok := errors.AsType[*folder.RunningError](err); ok {
		return served(running, o)
	}
	if kind, ok := errors.AsType[*folder.KindError](err); ok {
		return console.Fail(console.ExitUsage, "choose another folder with --state", "%w", kind)
	}
	if problems, ok := errors.AsType[yamlfile.Problems](err); ok {
		return &console.Failure{Code: console.ExitBadFile, Err: problems}
	}
	if err != nil {
		return opened(err)
	}
	shown := screen.DisplayPath(o.folder)
	if isDetached() {
		shown = o.folder // who reads the log is elsewhere
		if err := leaveTerminal(o.folder); err != nil {
			return fmt.Errorf("going on in the background: %w", err)
		}
	}
	sched.Default().React()
	c.Announce(fmt.Sprintf("fairway: serving %s; submit with `fairway submit FILE --server %s`",
		console.FolderText(o.folder),
		shown))
	interrupted := c.stopOnSignal(s, nil)
	if err := tellReady(); err != nil {
		c.Announce("fairway: " + err.Error())
	}
	outcome, err := s.Run(ctx)
	first := interrupted()
	if outcome.HandedOver {
		c.Announce("fairway: this server ends, and one that stands by goes on")
	}
	switch {
	case active.IsReplaced(err):
		return err
	case err != nil:
		return stateLost(err)
	case first != nil:
		return console.Quietly(signalCode(first))
	}
	return nil
}

// served is the error where another server has the state.
func served(running *folder.RunningError, o *runOptions) error {
	return console.Fail(console.ExitRunning, "end it with `fairway stop --server "+screen.DisplayPath(o.folder)+"`",
		"another process serves %s", console.FolderText(running.Folder))
}
