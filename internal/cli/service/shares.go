package service

import (
	"context"
	"fmt"
	"os/user"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"fairway/internal/cli/console"
	"fairway/internal/cli/screen"
	"fairway/internal/quantity"
	"fairway/internal/wire"
)

// GroupFlag is that of commands that begin a run at a server.
func (c *Commands) GroupFlag(command *cobra.Command) {
	command.Flags().StringVar(&c.Group, "group", "",
		"`group` of yours at the server whose share the run takes, such as physics/higgs (default: the first that has you)")
}

// RefuseGroup refuses --group where no server is asked.
func (c *Commands) RefuseGroup() error {
	if c.Group == "" {
		return nil
	}
	return console.Fail(console.ExitUsage, "name a server with --server, or leave it out",
		"--group is for a run at a server")
}

func thisUser() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return ""
}

// SharesCommand is `fairway shares`.
func (c *Commands) SharesCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "shares",
		Short: "Show how people share a server",
		Long: `Show how groups and users share a server that takes workflows (` + "`fairway serve --shares`" + `):
their weights, what they have used, which counts less and less, and their rank: who
has rank 1 gets the next free slot. The server reads its file of shares again
before it answers, if that has changed.`,
		Example: "  fairway shares --server /data/fairway\n  fairway shares --json",
		Args:    console.NoArgument,
		RunE: func(command *cobra.Command, _ []string) error {
			return c.AskServer(command.Context(), func(ctx context.Context, client wire.WorkflowClient) error {
				answer, err := client.ListShares(ctx, &wire.ListSharesRequest{})
				if err != nil {
					return err
				}
				return c.Answer(answer, func() { c.printShares(answer) })
			})
		},
	}
}

func (c *Commands) printShares(answer *wire.ListSharesResponse) {
	if problem := answer.GetProblem(); problem != "" {
		fmt.Fprintf(c.Err, "fairway: the shares are those of before, since the file cannot be used: %s\n", problem)
	}
	if len(answer.GetShares()) == 0 {
		fmt.Fprintln(c.Out, "nobody has a share, and nobody has used anything")
	} else {
		rows := [][]screen.Cell{screen.Head("NAME", "WEIGHT", "SHARE", "USED", "SLOT-HOURS", "LEVEL", "RANK", "READY",
			"RUNNING", "LIMITS")}
		for _, s := range answer.GetShares() {
			rows = append(rows, shareRow(s))
		}
		screen.PrintTable(c.Out, rows)
	}
	for _, l := range answer.GetLimits() {
		fmt.Fprintf(c.Out, "%s: %d of %d in use\n", l.GetName(), l.GetUsed(), l.GetMost())
	}
	fmt.Fprintf(c.Out, "usage counts half after %s\n", quantity.Days(answer.GetHalfLife()))
}

func shareRow(s *wire.ShareSummary) []screen.Cell {
	name, rank, level := s.GetName(), "", strconv.FormatFloat(s.GetLevelFs(), 'f', 2, 64)
	switch {
	case !s.GetUser():
		name += "/"
	case name == "":
		name = "(nobody)"
	}
	if s.GetUser() {
		rank = strconv.Itoa(int(s.GetRank()))
	}
	if s.LevelFs == nil {
		level = "unused"
	}
	used := time.Duration(s.GetUsage() * float64(time.Second)).Hours()
	return []screen.Cell{
		{strings.Repeat("  ", int(s.GetDepth())) + name, ""}, {strconv.FormatInt(s.GetWeight(), 10), ""},
		{percent(s.GetShare()), ""}, {percent(s.GetUsed()), ""}, {strconv.FormatFloat(used, 'f', 1, 64), ""}, {level, ""},
		{rank, ""}, {strconv.FormatInt(s.GetReady(), 10), ""}, {strconv.FormatInt(s.GetRunning(), 10), ""},
		{limitsText(s), screen.Dim},
	}
}

func percent(part float64) string { return strconv.FormatFloat(100*part, 'f', 1, 64) + "%" }

func limitsText(s *wire.ShareSummary) string {
	var texts []string
	if n := s.GetMostRunning(); n > 0 {
		texts = append(texts, fmt.Sprintf("running %d", n))
	}
	if n := s.GetMostCores(); n > 0 {
		texts = append(texts, fmt.Sprintf("cores %v of %v", s.GetCores(), n))
	}
	if n := s.GetMostQueued(); n > 0 {
		texts = append(texts, fmt.Sprintf("queued %d", n))
	}
	if n := s.GetMostStored(); n > 0 {
		texts = append(texts, fmt.Sprintf("stored %s of %s", quantity.Bytes(s.GetStored()), quantity.Bytes(n)))
	}
	return strings.Join(texts, ", ")
}
