//go:build linux

package cli

import (
	"context"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"fairway/internal/cli/console"
	"fairway/internal/pilot/launcher"
)

// taskCommand is for commands of jobs of several tasks, and for what they start. It is of no use
// elsewhere, so help does not list it.
func (c *commands) taskCommand() *cobra.Command {
	command := &cobra.Command{
		Use:    "task",
		Short:  "Start processes on the nodes of the other tasks of a job",
		Hidden: true,
	}
	command.AddCommand(&cobra.Command{
		Use:   "shell TASK COMMAND...",
		Short: "Run a command on the node of a task, as ssh does (mpirun calls it)",
		Long: `Run a command on the node of a task of the job, as ssh does. A task is called task0,
task1 and so on. It is for commands of steps with once: true; mpirun finds it by itself.`,
		Example:            `  $FAIRWAY_RSH task1 hostname`,
		Args:               console.Takes(2, console.AnyNumber, "TASK and a COMMAND"),
		DisableFlagParsing: true,
		RunE: func(command *cobra.Command, words []string) error {
			code, err := launcher.Run(command.Context(), words[0], strings.Join(words[1:], " "), os.Stdin, c.Out, os.Stderr)
			if err == nil && code != 0 {
				return &console.Failure{Code: code}
			}
			return err
		},
	}, &cobra.Command{
		Use:   "serve",
		Short: "Start what the first task asks for (a pilot calls it)",
		Args:  console.NoArgument,
		RunE: func(command *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(context.WithoutCancel(command.Context()), syscall.SIGTERM)
			defer stop()
			return launcher.Serve(ctx)
		},
	})
	return command
}
