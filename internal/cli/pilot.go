package cli

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"fairway/internal/pilot"
)

// pilotCommand is what a batch system starts on a worker node. It is of no use
// to a person, so help does not list it.
func (c *console) pilotCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "pilot",
		Short:  "Run a pilot (started by the batch system, configured by " + pilot.ConfigVariable + ")",
		Hidden: true,
		Args:   noArgument,
		RunE: func(command *cobra.Command, _ []string) error {
			encoded, given := os.LookupEnv(pilot.ConfigVariable)
			if !given {
				return fail(exitUsage, "`fairway run` starts pilots", "a pilot is configured by the environment variable %s", pilot.ConfigVariable)
			}
			config, err := pilot.DecodeConfig(encoded)
			if err != nil {
				return &failure{code: exitUsage, err: err}
			}
			if err := pilot.Run(command.Context(), config); err != nil {
				return fmt.Errorf("pilot: %w", err)
			}
			return nil
		},
	}
}
