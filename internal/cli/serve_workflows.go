//go:build linux

package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"fairway/internal/cli/console"
	"fairway/internal/cli/screen"
	"fairway/internal/quantity"
	"fairway/internal/server"
	"fairway/internal/server/active"
	"fairway/internal/store"
	"fairway/lib/sched"
)

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
	flags, config, pilots := command.Flags(), &o.config, &o.pilots
	flags.StringVar(&config.Folder, "state", ".", "folder of the server, which is made if need be")
	flags.StringVar(&config.Store, "store", "", "a PostgreSQL that keeps the records, from the first start on: "+
		"postgres://USER@HOST/DATABASE?schema=NAME (default: a file in the folder of the state)")
	flags.BoolVar(&o.standby, "standby", false, "share the state with other servers that are started in this way, "+
		"of which one at a time is active; wants --store and --listen with a port")
	console.Parsed(command, "lease", "10s", "with --standby: the `time` for which the active server may be silent "+
		"until another one takes its place; say the same to all", func(text string) (err error) {
		if o.lease, err = quantity.Duration(text); err == nil && o.lease < store.MinLease {
			err = fmt.Errorf("it is shorter than %v", store.MinLease)
		}
		if err != nil {
			err = console.Fail(console.ExitUsage, "write a time such as 10s", "--lease: %w", err)
		}
		return err
	})
	flags.StringArrayVar(&pilots.Tools, "tool", nil,
		"a `program` that pilots look for when they start; for others they look when a run names them under tools: "+
			"(may be repeated)")
	flags.BoolVar(&pilots.Strict, "strict-sandboxes", false, "pilots must be able to give steps strict sandboxes")
	flags.BoolVar(&o.detach, "detach", false, detachHelp)
	flags.StringVar(&config.Shares, "shares", "", "`file` that says how groups and users share the server; it is read "+
		"again when it changes (default: all users alike)")
	console.Parsed(command, "retention", "30d", "keep stored outputs that no run names any more for this `time`, "+
		"of groups whose shares do not say; 0: not at all", func(text string) (err error) {
		if config.Dispatch.Retention = 0; text != "0" {
			config.Dispatch.Retention, err = quantity.Duration(text)
		}
		if err != nil {
			err = console.Fail(console.ExitUsage, "write a time such as 30d, or 0", "--retention: %w", err)
		}
		return err
	})
	console.Parsed(command, "compare-inputs", "64GiB", "know inputs up to this `size` by their contents, which are "+
		"read once; larger ones are known by size, time and inode", func(text string) (err error) {
		if config.CompareInputs, err = quantity.Size(text); err != nil {
			err = console.Fail(console.ExitUsage, "write a size such as 64GiB", "--compare-inputs: %w", err)
		}
		return err
	})
	flags.StringVar(&config.Rights, "rights", "", "`file` that says who may ask the server besides those who have a "+
		"token: by an identity provider, or by a proxy")
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
		o.config.Folder = c.Dir
	}
	if o.config.Store != "" {
		if err := store.CheckAddress(o.config.Store); err != nil {
			return &console.Failure{Code: console.ExitUsage, Err: fmt.Errorf("--store: %w", err)}
		}
	}
	if err := o.checkStandby(command); err != nil {
		return err
	}
	o.config.Lasting, o.config.WaitAnyway = true, true
	if o.config.Listen != "" && len(o.pilots.Sites) == 0 {
		o.pilots.Sites = []string{server.LocalSite}
	}
	if err := o.check(); err != nil {
		return err
	}
	for _, file := range []*string{&o.config.Shares, &o.config.Rights} {
		if *file != "" {
			absolute, err := filepath.Abs(*file)
			if err != nil {
				return err
			}
			*file = absolute
		}
	}
	if (o.webCertificate == "") != (o.webKey == "") {
		return console.Fail(console.ExitUsage, "name both with --web-certificate and --web-key",
			"a certificate is good with its key only")
	}
	if err := os.MkdirAll(o.config.Folder, 0o777); err != nil {
		return err
	}
	var err error
	o.config.Folder, err = console.GivenFolder(o.config.Folder)
	return err
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
	if err != nil {
		return o.opened(err)
	}
	shown := screen.DisplayPath(o.config.Folder)
	if isDetached() {
		shown = o.config.Folder // who reads the log is elsewhere
		if err := leaveTerminal(o.config.Folder); err != nil {
			return fmt.Errorf("going on in the background: %w", err)
		}
	}
	sched.Default().React()
	c.Announce(fmt.Sprintf("fairway: serving %s; submit with `fairway submit FILE --server %s`",
		console.FolderText(o.config.Folder),
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
