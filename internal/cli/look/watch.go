package look

import "github.com/spf13/cobra"

// WatchCommand is `fairway watch`.
func (c *Commands) WatchCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "watch [RUN]",
		Short: "Watch a run until it has ended",
		Long: `Watch the run of this folder, or a run of a server that takes workflows, until it has
ended. Ctrl-C ends the watching only. The exit code is that of the run.`,
		Example: "  fairway watch\n  fairway watch 7 --server /data/fairway",
		Args:    c.numbered,
		RunE: func(command *cobra.Command, _ []string) error {
			return c.WatchRun(command.Context(), c.Number)
		},
	}
}
