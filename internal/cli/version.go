package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"fairway/internal/cli/console"
)

func (c *commands) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version of this program",
		Example: "  fairway version --json",
		Args:    console.NoArgument,
		RunE: func(*cobra.Command, []string) error {
			return c.Answer(console.ThisVersion(), func() { fmt.Fprintln(c.Out, "fairway", console.VersionText()) })
		},
	}
}
