//go:build linux

package cli

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"fairway/internal/cli/console"
	"fairway/internal/flow/workflow"
)

const openName = workflow.SubmittedJobs

// openedBy stands for the file of an open run that has none.
const openedBy = "fairway open, exec or map"

func (c *commands) openCommand() *cobra.Command {
	o, name := newRunOptions(), openName
	command := &cobra.Command{
		Use:   "open",
		Short: "Open a run to which programs submit jobs",
		Long: `Open a run of this folder without a workflow file: programs submit its jobs by the
API (docs/api.md), ` + "`fairway exec` and `fairway map`" + `. Acknowledged jobs survive any
crash: open the run again. It stays open until ` + "`fairway close`" + `, and ends when its
jobs have. With --server the run is at that server; open prints its number, for
--run of other commands.`,
		Example: "  fairway open\n  fairway open --site cluster --detach\n  fairway -C /data/queue open --pilots 4\n" +
			"  fairway open --server /data/fairway --name tuesday",
		Args: console.NoArgument,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := c.prepareOpen(command, o, name); err != nil {
				return err
			}
			if c.Service == "" {
				if err := c.RefuseGroup(); err != nil {
					return err
				}
				return c.runAttached(command.Context(), o)
			}
			if err := refuseHere(command); err != nil {
				return err
			}
			answer, err := c.openAtServer(command.Context(), o)
			if err != nil {
				return err
			}
			return c.Answer(answer, func() { fmt.Fprintln(c.Out, answer.GetRun()) })
		},
	}
	command.Flags().StringVar(&name, "name", openName, "name of the run, for people")
	command.Flags().BoolVar(&o.detach, "detach", false, detachHelp)
	attachFlags(command, o)
	c.GroupFlag(command)
	c.serverFlags(command, o)
	return command
}

func (c *commands) prepareOpen(command *cobra.Command, o *runOptions, name string) error {
	if err := o.check(); err != nil {
		return err
	}
	o.file, o.text = openedBy, []byte("workflow: "+name+"\nopen: true\n")
	if _, err := o.workflow(); err != nil {
		return console.Fail(console.ExitUsage, "use letters, digits, '_', '-' and '.'", "--name %q is no name for a run",
			name)
	}
	c.TellMeant()
	folder := c.Dir
	if folder == "" {
		folder = "."
	}
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return err
	}
	var err error
	if o.config.Folder, err = filepath.Abs(folder); err != nil {
		return fmt.Errorf("the folder of the run: %w", err)
	}
	return nil
}
