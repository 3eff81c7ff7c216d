package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"

	"github.com/spf13/cobra"

	"fairway/internal/access"
	"fairway/internal/bootstrap"
	"fairway/internal/pilot"
)

// pilotCommand is what a batch system starts on a worker node. It is of no use
// to a person, so help does not list it.
func (c *console) pilotCommand() *cobra.Command {
	connect, brought, probe := "", "", false
	command := &cobra.Command{
		Use:    "pilot",
		Short:  "Run a pilot (started by the batch system, configured by " + pilot.ConfigVariable + " or a connection file)",
		Hidden: true,
		Args:   noArgument,
		RunE: func(command *cobra.Command, _ []string) (err error) {
			config, err := pilotConfig(connect)
			if brought != "" {
				bootstrap.Started(brought)
				defer func() {
					if err == nil {
						err = bootstrap.Ended(brought)
					}
				}()
			}
			if err != nil {
				return err
			}
			if probe {
				return probeNode(command.Context(), config)
			}
			if err := pilot.Run(command.Context(), config); err != nil {
				return fmt.Errorf("pilot: %w", err)
			}
			return nil
		},
	}
	command.Flags().StringVar(&connect, "connect", "", "reach the server as this connection file says, which the server wrote for the launch; -: standard input")
	command.Flags().StringVar(&brought, "brought", "", "the folder into which a script has brought this program; it is removed")
	command.Flags().BoolVar(&probe, "probe", false, "tell the server what the node has, and end")
	return command
}

// probeNode tells the server what a pilot would have here.
func probeNode(ctx context.Context, config pilot.Config) error {
	if config.Line == nil {
		return fail(exitUsage, "`fairway site test` starts it", "--probe needs --connect")
	}
	found, err := json.Marshal(pilot.Probe(ctx, config))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, access.BaseURL+foundPath, bytes.NewReader(found))
	if err != nil {
		return err
	}
	answer, err := config.Line.Client(1).Do(request)
	if err != nil {
		return fmt.Errorf("this node does not reach the server, so its pilots cannot work: %w", err)
	}
	if answer.StatusCode != http.StatusNoContent {
		err = fmt.Errorf("the server does not take the answer: %s", answer.Status)
	}
	return errors.Join(err, answer.Body.Close())
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
