// Package agent lets a benchmark start itself again as a pilot.
package agent

import (
	"context"
	"os"

	"fairway/bench/measure"
	"fairway/internal/pilot"
)

// RunIfPilot is called first by a benchmark that starts itself as pilots. Where
// this process is one, which its environment tells, it runs the pilot and does
// not return.
func RunIfPilot() {
	encoded, isPilot := os.LookupEnv(pilot.ConfigVariable)
	if !isPilot {
		return
	}
	measure.ExitOn(run(encoded))
	os.Exit(0)
}

func run(encoded string) error {
	config, err := pilot.DecodeConfig(encoded)
	if err != nil {
		return err
	}
	return pilot.Run(context.Background(), config)
}
