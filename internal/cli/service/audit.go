package service

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/timestamppb"

	"fairway/internal/cli/console"
	"fairway/internal/cli/screen"
	"fairway/internal/quantity"
	"fairway/internal/wire"
)

// AuditCommand is `fairway audit`.
func (c *Commands) AuditCommand() *cobra.Command {
	user, since, limit := "", "", int32(0)
	command := &cobra.Command{
		Use:   "audit",
		Short: "Show who has done what at a server",
		Long: `Show what people have changed at a server that takes workflows, and what they were
refused, the newest first: when, who, by which proof, from where, and how it came out.
Administrators may look.`,
		Example: "  fairway audit\n  fairway audit --user ada --since 24h --limit 1000\n  fairway audit --json",
		Args:    console.NoArgument,
		RunE: func(command *cobra.Command, _ []string) error {
			r := &wire.ListAuditRequest{User: user, Limit: limit}
			if since != "" {
				ago, err := quantity.Duration(since)
				if err != nil {
					return console.Fail(console.ExitUsage, "write a time such as 2h or 7d", "--since %s is no time", since)
				}
				r.Since = timestamppb.New(time.Now().Add(-ago))
			}
			return c.askRights(command.Context(), func(ctx context.Context, client wire.RightsClient) error {
				answer, err := client.ListAudit(ctx, r)
				if err != nil {
					return err
				}
				return c.Answer(answer, func() { c.printAudit(answer) })
			})
		},
	}
	flags := command.Flags()
	flags.StringVar(&user, "user", "", "only what this `user` has done")
	flags.StringVar(&since, "since", "", "only what was done within this `time`, such as 24h")
	flags.Int32Var(&limit, "limit", 0, "how many entries to show (default 100)")
	return command
}

func (c *Commands) printAudit(answer *wire.ListAuditResponse) {
	if len(answer.GetEntries()) == 0 {
		fmt.Fprintln(c.Out, "nothing was changed, and nobody was refused")
		return
	}
	rows := [][]screen.Cell{screen.Head("WHEN", "WHO", "BY", "FROM", "CALL", "RUN", "OUTCOME", "ABOUT")}
	for _, e := range answer.GetEntries() {
		run, by, outcome, colour := "", e.GetProof(), e.GetOutcome(), ""
		if e.GetRun() > 0 {
			run = fmt.Sprint(e.GetRun())
		}
		if e.GetToken() != "" {
			by += " " + e.GetToken()
		}
		if outcome != "ok" {
			colour = screen.Red
		}
		if e.GetRepeated() > 0 {
			outcome += fmt.Sprintf(", and %d more", e.GetRepeated())
		}
		rows = append(rows, []screen.Cell{
			{e.GetAt().AsTime().Local().Format("2006-01-02 15:04:05"), ""}, {cmp.Or(e.GetUser(), "-"), ""},
			{cmp.Or(by, "-"), ""}, {cmp.Or(e.GetFrom(), "-"), ""},
			{e.GetCall(), ""}, {run, ""}, {outcome, colour}, {e.GetAbout(), ""},
		})
	}
	screen.PrintTable(c.Out, rows)
	if answer.GetMore() {
		fmt.Fprintln(c.Err, "there are older entries: --limit shows more")
	}
}
