//go:build !linux

package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"fairway/internal/flow"
	"fairway/internal/server/listen"
)

// What this program is on other systems than Linux: a client of servers that run there. This file
// has the few things that the other files of the package want from those that are for Linux alone.

// unsurveyed says that inputs are not looked at; empty: they are.
const unsurveyed = "the files of the inputs were not looked at: that is done on Linux"

func (*surveyed) survey() {}

type listing struct{}

func newListing(string) (*listing, error) { return nil, nil }

// onLinux is the error of what only Linux can do.
func onLinux(what string) error {
	return fail(exitUsage, "run it on Linux; from here, submit to a server with --server", "%s works on Linux only", what)
}

// noServer is the error where no server is named.
func noServer() error {
	return fail(exitUsage, "name a copy of the file .fairway/service of a server (fairway serve) with --server, or with $"+
		serverVariable, "it is not said which server is meant, and runs of a folder are on Linux only")
}

func (c *console) askHere(context.Context, asking) error        { return noServer() }
func (c *console) askRunningHere(context.Context, asking) error { return noServer() }
func (c *console) askAbout(ctx context.Context, do asking) error {
	return c.ask(ctx, do)
}
func (c *console) getStored(context.Context, string, *uint32, string) (*fetched, error) {
	return nil, noServer()
}

func (c *console) stopLeft(context.Context, bool) error { return noServer() }
func (c *console) asksService() bool                    { return c.service != "" }

func (c *console) printPilotLog(string, int64) error { return onLinux("fairway logs --pilot") }

// memoryOfMachine is asked for the nodes that ran jobs, of which this one is none.
func memoryOfMachine() (int64, error) { return 0, nil }

// shownPlaces gives a stored file the name that the server gives it.
func (c *console) shownPlaces() (func(pfn string) string, error) {
	return func(pfn string) string { return pfn }, nil
}

// isFolderOfRun is asked for folders of runs, which are on Linux only.
func isFolderOfRun(string) bool { return false }

func isLasting(string) bool { return false }

func isUnderwayIn(string) bool { return false }

func hasEnded(error) bool { return false }

func (c *console) isUnderway(context.Context) bool { return false }

func dialServiceFolder(_ context.Context, address string) (*listen.Connection, error) {
	return nil, fail(exitUsage, "name a copy of the file .fairway/service in it",
		"--server %s: the folder of a server is for Linux only", address)
}

// runCommand is run for those who submit.
func (c *console) runCommand() *cobra.Command {
	o, server := new(submitOptions), ""
	command := &cobra.Command{
		Use:   "run [FILE] --server ADDRESS",
		Short: "Run a workflow at a server",
		Long: `Submit the workflow that FILE describes (default: workflow.yaml) to a server, and
watch it. On Linux, run needs no server.`,
		Example:           "  fairway run workflow.yaml --server service",
		Args:              maybeFile,
		ValidArgsFunction: workflowFiles,
		RunE: func(command *cobra.Command, arguments []string) error {
			if server != "" {
				c.service = server
			}
			if c.service == "" || c.service == "here" || c.service == "site" {
				return onLinux("fairway run without the address of a server")
			}
			file, dir, err := c.submittedFile(arguments)
			if err != nil {
				return err
			}
			request, err := submission(file, dir, o)
			if err != nil {
				return err
			}
			return c.submitWorkflow(command.Context(), request, true)
		},
	}
	flags := command.Flags()
	flags.StringVar(&server, "server", "", "the `ADDRESS` of the server: a copy of its file .fairway/service")
	c.submissionFlags(command, o)
	return command
}

// elsewhere stands for a command that is for Linux alone.
func elsewhere(use, short string) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short + " (on Linux)", DisableFlagParsing: true,
		RunE: func(command *cobra.Command, arguments []string) error {
			if len(arguments) > 0 && strings.Trim(arguments[0], "-") == "help" {
				return command.Help()
			}
			return onLinux(command.CommandPath())
		},
	}
}

func (c *console) execCommand() *cobra.Command  { return elsewhere("exec", "Run one command as a job") }
func (c *console) mapCommand() *cobra.Command   { return elsewhere("map", "Run a command for each file") }
func (c *console) openCommand() *cobra.Command  { return elsewhere("open", "Open a run") }
func (c *console) serveCommand() *cobra.Command { return elsewhere("serve", "Start a server") }
func (c *console) siteCommand() *cobra.Command  { return elsewhere("site", "Describe batch systems") }
func (c *console) cleanCommand() *cobra.Command { return elsewhere("clean", "Remove a finished run") }
func (c *console) pilotCommand() *cobra.Command { return elsewhere("pilot", "Run a pilot") }
func (c *console) taskCommand() *cobra.Command  { return elsewhere("task", "Start processes of a job") }

// checkSites looks at nothing: sites are described where servers run.
func checkSites(string, []byte) error { return onLinux("fairway check of a file of sites") }

// checkNeeds looks at nothing: sites are described where servers run.
func (c *console) checkNeeds(*flow.Workflow, string, []string) error { return nil }
