package look

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"fairway/internal/cli/console"
	"fairway/internal/cli/screen"
	"fairway/internal/quantity"
	"fairway/internal/wire"
)

// PilotsCommand is `fairway pilots`.
func (c *Commands) PilotsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "pilots",
		Short: "List pilots",
		Long: `List the pilots of the server: busy ones run jobs, idle ones have none, silent ones
are not heard, doubted ones have none since jobs fail on their nodes, and inactive ones
are asked for and not there yet.`,
		Example: "  fairway pilots\n  fairway pilots --server /data/fairway --json",
		Args:    console.NoArgument,
		RunE: func(command *cobra.Command, _ []string) error {
			return c.AskRunning(command.Context(), func(ctx context.Context, client wire.WorkflowClient) error {
				answer, err := client.ListPilots(ctx, &wire.ListPilotsRequest{})
				if err != nil {
					return err
				}
				return c.Answer(answer, func() { c.printPilots(answer) })
			})
		},
	}
}

func (c *Commands) printPilots(answer *wire.ListPilotsResponse) {
	if len(answer.GetPilots()) == 0 {
		fmt.Fprintln(c.Out, "no pilots")
	} else {
		rows := [][]screen.Cell{screen.Head("PILOT", "STATE", "SITE", "HOST", "RUNS", "WAITING", "CPUS", "MEMORY", "LEFT",
			"CACHED")}
		for _, p := range answer.GetPilots() {
			rows = append(rows, pilotRow(p, answer))
		}
		screen.PrintTable(c.Out, rows)
	}
	for _, why := range answer.GetWaiting() {
		fmt.Fprintln(c.Err, why)
	}
}

func pilotRow(p *wire.PilotSummary, answer *wire.ListPilotsResponse) []screen.Cell {
	name, left := p.GetName(), "-"
	if name == "" {
		name = p.GetLaunch()
		return []screen.Cell{{name, ""}, {p.GetState(), screen.Dim}, {p.GetSite(), ""}}
	}
	if p.GetExpires() != nil {
		left = quantity.Seconds(p.GetExpires().AsTime().Sub(answer.GetNow().AsTime()).Seconds())
	}
	colour := map[string]string{"busy": screen.Green, "silent": screen.Red, "doubted": screen.Red}[p.GetState()]
	return []screen.Cell{
		{name, ""}, {p.GetState(), colour}, {p.GetSite(), ""}, {p.GetHost(), ""}, {fmt.Sprint(p.GetRunning()), ""},
		{fmt.Sprint(p.GetQueued()), ""}, {fmt.Sprintf("%g", float64(p.GetHas().GetMilliCpus())/1000), ""},
		{quantity.Bytes(p.GetHas().GetMemoryBytes()), ""}, {left, ""},
		{strings.TrimSpace(quantity.Count(p.GetCacheFiles(), "file")), ""},
	}
}
