package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"fairway/internal/access"
	"fairway/internal/pilot"
)

// pilotCommand is what a batch system starts on a worker node. It is of no use
// to a person, so help does not list it.
func (c *console) pilotCommand() *cobra.Command {
	connect, probe := "", ""
	command := &cobra.Command{
		Use:    "pilot",
		Short:  "Run a pilot (started by the batch system, configured by " + pilot.ConfigVariable + " or a connection file)",
		Hidden: true,
		Args:   noArgument,
		RunE: func(command *cobra.Command, _ []string) error {
			if probe != "" {
				return probeNode(command.Context(), probe)
			}
			config, err := pilotConfig(connect)
			if err != nil {
				return err
			}
			if err := pilot.Run(command.Context(), config); err != nil {
				return fmt.Errorf("pilot: %w", err)
			}
			return nil
		},
	}
	command.Flags().StringVar(&connect, "connect", "", "reach the server as this connection file says, which the server wrote for the launch; -: standard input")
	command.Flags().StringVar(&probe, "probe", "", "read settings from this file, write what the node has beside it (.found), and end")
	return command
}

// foundEnding is added to the name of the settings of a probe.
const foundEnding = ".found"

// probeNode writes down what a pilot with the settings of a file would have here.
func probeNode(ctx context.Context, file string) error {
	encoded, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	config, err := pilot.DecodeConfig(string(encoded))
	if err != nil {
		return err
	}
	found, err := json.Marshal(pilot.Probe(ctx, config))
	if err != nil {
		return err
	}
	fresh := file + ".new"
	if err := os.WriteFile(fresh, found, 0o600); err != nil {
		return err
	}
	return os.Rename(fresh, file+foundEnding)
}

// pilotConfig is that of a connection file or, where none is named, of the
// environment.
func pilotConfig(connect string) (pilot.Config, error) {
	encoded, given := os.LookupEnv(pilot.ConfigVariable)
	var line *access.Line
	if connect != "" {
		var err error
		if line, err = access.OpenLine(connect); err != nil {
			return pilot.Config{}, fail(exitUsage, "the server writes one for each launch: .fairway/pilots/ID/LAUNCH.connect", "--connect %s: %w", connect, err)
		}
		encoded, given = string(line.Connection().Pilot), true
	}
	if !given {
		return pilot.Config{}, fail(exitUsage, "`fairway run` starts pilots", "a pilot is configured by the environment variable %s, or by --connect FILE", pilot.ConfigVariable)
	}
	config, err := pilot.DecodeConfig(encoded)
	if err != nil {
		return pilot.Config{}, &failure{code: exitUsage, err: err}
	}
	config.Line = line
	return config, nil
}
