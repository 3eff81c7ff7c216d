//go:build linux

package cli

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"fairway/internal/access"
	"fairway/internal/bootstrap"
	"fairway/internal/cli/console"
	"fairway/internal/pilot"
	"fairway/internal/provision"
	"fairway/internal/server/probe"
	"fairway/lib/sched"
)

// pilotCommand is what a batch system starts on a worker node. It is of no use
// to a person, so help does not list it.
func (c *commands) pilotCommand() *cobra.Command {
	connect, brought, probing, attached := "", "", false, false
	command := &cobra.Command{
		Use:    provision.PilotCommand,
		Short:  "Run a pilot (started by the batch system, configured by " + pilot.ConfigVariable + " or a connection file)",
		Hidden: true,
		Args:   console.NoArgument,
		RunE: func(command *cobra.Command, _ []string) (err error) {
			config, err := pilotConfig(connect)
			if brought != "" {
				bootstrap.Started(brought)
				stop := tellLog(config.Line, bootstrap.Log(brought))
				defer func() {
					stop(err)
					if err == nil {
						err = bootstrap.Ended(brought)
					}
				}()
			}
			if err != nil {
				return err
			}
			if probing {
				return probeNode(command.Context(), config)
			}
			if attached {
				config.Program = programEnd(command.Context(), os.Stdin)
			}
			if err := pilot.Run(command.Context(), config); err != nil {
				return fmt.Errorf("pilot: %w", err)
			}
			return nil
		},
	}
	command.Flags().StringVar(&connect, "connect", "", "reach the server as this connection file says, which the server "+
		"wrote for the launch; -: standard input")
	command.Flags().StringVar(&brought, "brought", "", "the folder into which a script has brought this program; it is "+
		"removed")
	command.Flags().BoolVar(&attached, provision.UntilStdinEnds, false, "have no patience with a server that is gone "+
		"when standard input has ended")
	command.Flags().BoolVar(&probing, "probe", false, "tell the server what the node has, and end")
	return command
}

const (
	// logPause is the least time between two messages of a pilot with what it says.
	logPause = 10 * time.Second
	// lastLogTime bounds the last one.
	lastLogTime = 5 * time.Second
)

// tellLog tells the server again and again what the pilot has said into a file on its node,
// so that it is known how far a pilot came that is killed. The returned function tells it the
// last time, with the error by which the pilot ends.
func tellLog(line *access.Line, path string) (stop func(error)) {
	if line == nil {
		return func(error) {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	told, ended := int64(0), make(chan struct{})
	go func() {
		defer close(ended)
		for sched.Default().Sleep(ctx, logPause) == nil {
			if info, err := os.Stat(path); err == nil && info.Size() != told && line.TellLog(ctx, path, "") == nil {
				told = info.Size()
			}
		}
	}()
	return func(failed error) {
		cancel()
		<-ended
		last := ""
		if failed != nil {
			last = fmt.Sprintf("fairway: %v\n", failed)
		}
		info, err := os.Stat(path)
		if err != nil || info.Size() == told && last == "" {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), lastLogTime)
		defer cancel()
		_ = line.TellLog(ctx, path, last) // it stays on the node where it could not be told
	}
}

func probeNode(ctx context.Context, config pilot.Config) error {
	if config.Line == nil {
		return console.Fail(console.ExitUsage, "`fairway site test` starts it", "--probe needs --connect")
	}
	return probe.Tell(ctx, config)
}

// pilotConfig is that of a connection file or, where none is named, of the
// environment.
func pilotConfig(connect string) (pilot.Config, error) {
	encoded, given := os.LookupEnv(pilot.ConfigVariable)
	var line *access.Line
	if connect != "" {
		var err error
		if line, err = access.OpenLine(connect); err != nil {
			return pilot.Config{}, console.Fail(console.ExitUsage,
				"the server writes one for each launch: .fairway/pilots/ID/LAUNCH.connect",
				"--connect %s: %w", connect, err)
		}
		encoded, given = string(line.Connection().Pilot), true
	}
	if !given {
		return pilot.Config{}, console.Fail(console.ExitUsage, "`fairway run` starts pilots",
			"a pilot is configured by the environment variable %s, or by --connect FILE", pilot.ConfigVariable)
	}
	config, err := pilot.DecodeConfig(encoded)
	if err != nil {
		return pilot.Config{}, &console.Failure{Code: console.ExitUsage, Err: err}
	}
	config.Line = line
	return config, nil
}
