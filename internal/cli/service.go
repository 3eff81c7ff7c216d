package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	"fairway/internal/quantity"
	"fairway/internal/server/listen"
	"fairway/internal/wire"
	"fairway/lib/sched"
)

// serverVariable names the server that takes workflows, where --server does not.
const serverVariable = "FAIRWAY_SERVICE"

// askService talks to the server that --server names.
func (c *console) askService(ctx context.Context, do func(context.Context, wire.WorkflowClient) error) error {
	var lost time.Time // when the active server was lost; zero: it answers
	for {
		began := time.Now()
		next, err := c.askActive(ctx, do)
		if !next || ctx.Err() != nil {
			return explained(err)
		}
		if lost.IsZero() || time.Since(began) > takeoverTime { // it has answered meanwhile
			lost = time.Now()
			c.announce("fairway: no active server answers; waiting for one that stands by")
		}
		if time.Since(lost) > takeoverTime {
			return explained(err)
		}
		if err := sched.Default().Sleep(ctx, takeoverPause); err != nil {
			return err
		}
	}
}

// takeoverTime is how long a question is asked again, where servers stand by for the one that is
// lost.
const (
	takeoverTime  = 2 * time.Minute
	takeoverPause = 250 * time.Millisecond
)

// askActive asks the server that is active now. It reports whether the next one is to be asked.
func (c *console) askActive(
	ctx context.Context, do func(context.Context, wire.WorkflowClient) error,
) (next bool, err error) {
	connection, err := dialService(ctx, c.service)
	if err != nil {
		return errors.Is(err, listen.ErrNoActive), err
	}
	defer connection.Close()
	err = do(ctx, connection)
	gone := serverGone(err) || errors.Is(err, errWentAway) || connect.CodeOf(err) == connect.CodeDeadlineExceeded
	return gone && connection.Standby, err
}

// withKey has a repeated submission be known, where it may be repeated: by a key, if it has none.
func withKey(client wire.WorkflowClient, request *wire.SubmitWorkflowRequest) {
	if c, ok := client.(*listen.Connection); ok && c.Standby && request.GetKey() == "" {
		request.Key = "once-" + rand.Text()
	}
}

// dialService reaches a server by its folder, or by a file that says how.
func dialService(ctx context.Context, address string) (*listen.Connection, error) {
	info, err := os.Stat(address)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fail(exitUsage, "name the folder of a server (fairway serve --state), or a copy of its file "+
			".fairway/service",
			"--server %s: there is no such folder or file", address)
	}
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		connection, err := listen.DialService(ctx, address)
		if err != nil {
			return nil, notDialled(address, err)
		}
		return connection, nil
	}
	return dialServiceFolder(ctx, address)
}

// notDialled is the error of a file by which no server is reached.
func notDialled(address string, err error) error {
	hint := "" // what is wrong with the file says what to do
	if errors.Is(err, listen.ErrUnreached) || errors.Is(err, listen.ErrNoActive) {
		hint = "see whether it runs, and whether the file is the one that it has now"
	}
	return fail(exitNoState, hint, "--server %s: %w", address, err)
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func (c *console) pilotsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "pilots",
		Short: "List pilots",
		Long: `List the pilots of the server: busy ones run jobs, idle ones have none, silent ones
are not heard, doubted ones have none since jobs fail on their nodes, and inactive ones
are asked for and not there yet.`,
		Example: "  fairway pilots\n  fairway pilots --server /data/fairway --json",
		Args:    noArgument,
		RunE: func(command *cobra.Command, _ []string) error {
			return c.askRunning(command.Context(), func(ctx context.Context, client wire.WorkflowClient) error {
				answer, err := client.ListPilots(ctx, &wire.ListPilotsRequest{})
				if err != nil {
					return err
				}
				return c.answer(answer, func() { c.printPilots(answer) })
			})
		},
	}
}

func (c *console) printPilots(answer *wire.ListPilotsResponse) {
	if len(answer.GetPilots()) == 0 {
		fmt.Fprintln(c.out, "no pilots")
	} else {
		rows := [][]cell{{
			{"PILOT", dim}, {"STATE", dim}, {"SITE", dim}, {"HOST", dim}, {"RUNS", dim}, {"WAITING", dim}, {"CPUS", dim},
			{"MEMORY", dim}, {"LEFT", dim}, {"CACHED", dim},
		}}
		for _, p := range answer.GetPilots() {
			rows = append(rows, pilotRow(p, answer))
		}
		printTable(c.out, rows)
	}
	for _, why := range answer.GetWaiting() {
		fmt.Fprintln(c.err, why)
	}
}

func pilotRow(p *wire.PilotSummary, answer *wire.ListPilotsResponse) []cell {
	name, left := p.GetName(), "-"
	if name == "" {
		name = p.GetLaunch()
		return []cell{{name, ""}, {p.GetState(), dim}, {p.GetSite(), ""}}
	}
	if p.GetExpires() != nil {
		left = quantity.Seconds(p.GetExpires().AsTime().Sub(answer.GetNow().AsTime()).Seconds())
	}
	colour := map[string]string{"busy": green, "silent": red, "doubted": red}[p.GetState()]
	return []cell{
		{name, ""}, {p.GetState(), colour}, {p.GetSite(), ""}, {p.GetHost(), ""}, {fmt.Sprint(p.GetRunning()), ""},
		{fmt.Sprint(p.GetQueued()), ""}, {fmt.Sprintf("%g", float64(p.GetHas().GetMilliCpus())/1000), ""},
		{quantity.Bytes(p.GetHas().GetMemoryBytes()), ""}, {left, ""},
		{strings.TrimSpace(quantity.Count(p.GetCacheFiles(), "file")), ""},
	}
}
