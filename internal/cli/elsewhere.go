//go:build !linux

package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"fairway/internal/cli/console"
	"fairway/internal/cli/service"
	"fairway/internal/flow/workflow"
)

// What this program is on other systems than Linux: a client of servers that run there. This file
// has the few things that the other files of the package want from those that are for Linux alone.

func (c *commands) stopLeft(context.Context, bool) error { return console.NoServer() }

func (c *commands) runCommand() *cobra.Command {
	o, server := new(service.SubmitOptions), ""
	command := &cobra.Command{
		Use:   "run [FILE] --server ADDRESS",
		Short: "Run a workflow at a server",
		Long: `Submit the workflow that FILE describes (default: workflow.yaml) to a server, and
watch it. On Linux, run needs no server.`,
		Example:           "  fairway run workflow.yaml --server service",
		Args:              console.MaybeFile,
		ValidArgsFunction: console.WorkflowFiles,
		RunE: func(command *cobra.Command, arguments []string) error {
			if server != "" {
				c.Service = server
			}
			if c.Service == "" || c.Service == "here" || c.Service == "site" {
				return console.OnLinux("fairway run without the address of a server")
			}
			file, dir, err := c.SubmittedFile(arguments)
			if err != nil {
				return err
			}
			request, err := service.Submission(file, dir, o)
			if err != nil {
				return err
			}
			return c.SubmitWorkflow(command.Context(), request, true)
		},
	}
	flags := command.Flags()
	flags.StringVar(&server, "server", "", "the `ADDRESS` of the server: a copy of its file .fairway/service")
	c.SubmissionFlags(command, o)
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
			return console.OnLinux(command.CommandPath())
		},
	}
}

func (c *commands) execCommand() *cobra.Command { return elsewhere("exec", "Run one command as a job") }
func (c *commands) mapCommand() *cobra.Command {
	return elsewhere("map", "Run a command for each file")
}
func (c *commands) openCommand() *cobra.Command  { return elsewhere("open", "Open a run") }
func (c *commands) serveCommand() *cobra.Command { return elsewhere("serve", "Start a server") }
func (c *commands) siteCommand() *cobra.Command  { return elsewhere("site", "Describe batch systems") }
func (c *commands) cleanCommand() *cobra.Command { return elsewhere("clean", "Remove a finished run") }
func (c *commands) pilotCommand() *cobra.Command { return elsewhere("pilot", "Run a pilot") }
func (c *commands) taskCommand() *cobra.Command  { return elsewhere("task", "Start processes of a job") }

// checkSites looks at nothing: sites are described where servers run.
func checkSites(string, []byte) error { return console.OnLinux("fairway check of a file of sites") }

// checkNeeds looks at nothing: sites are described where servers run.
func checkNeeds(*workflow.Workflow, string, []string) error { return nil }
