package service

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/timestamppb"

	"fairway/internal/access"
	"fairway/internal/cli/console"
	"fairway/internal/cli/screen"
	"fairway/internal/quantity"
	"fairway/internal/rights"
	"fairway/internal/server/listen"
	"fairway/internal/wire"
)

func (c *Commands) askRights(ctx context.Context, do func(context.Context, wire.RightsClient) error) error {
	return c.AskServer(ctx, func(ctx context.Context, client wire.WorkflowClient) error {
		connection, ok := client.(*listen.Connection)
		if !ok || connection.Rights == nil {
			return console.Fail(console.ExitNoState, "`fairway serve` starts one", "no server that takes workflows is asked")
		}
		return do(ctx, connection.Rights)
	})
}

// TokenCommand is `fairway token`.
func (c *Commands) TokenCommand() *cobra.Command {
	command := &cobra.Command{
		Use:   "token",
		Short: "Make, list and revoke tokens",
		Long: `Make, list and revoke the tokens by which people and pilots reach a server that takes
workflows over a network. The server keeps their hashes only.`,
		Example: "  fairway token create --role submit --user ada --expires 30d -o ada.service\n  fairway token list\n" +
			"  fairway token revoke k2vq7x3am4",
	}
	command.AddCommand(c.tokenCreateCommand(), c.tokenListCommand(), c.tokenRevokeCommand())
	return command
}

type tokenOptions struct {
	role, user, site, expires, note, output string
}

// never is the word of --expires for a token without an end.
const never = "never"

func (c *Commands) tokenCreateCommand() *cobra.Command {
	o := &tokenOptions{role: string(rights.Submitter), expires: "90d"}
	command := &cobra.Command{
		Use:   "create",
		Short: "Make a token",
		Long: `Make a token for a user, or for pilots of a site that a person starts. It is printed
once. With -o it is written into a file (mode 0600) that says how the server is
reached, for --server or $` + console.ServerVariable + ` of the one who gets it; ` + "`fairway pilot --connect`" + `
takes that of a pilot. Administrators may do that.`,
		Example: `  fairway token create --role submit --user ada --expires 30d -o ada.service
  fairway token create --role read --user ci --note dashboard
  fairway token create --role pilot --site cluster --expires 7d -o pilot.connect`,
		Args: console.NoArgument,
		RunE: func(command *cobra.Command, _ []string) error { return c.createToken(command.Context(), o) },
	}
	flags := command.Flags()
	console.OneOf(command, &o.role, "role", "what the token is good for: read, submit, admin or pilot",
		string(rights.Reader),
		string(rights.Submitter), string(rights.Admin), string(rights.Pilot))
	flags.StringVar(&o.user, "user", "", "the `user` who gets it, as the file of shares names users")
	flags.StringVar(&o.site, "site", "", "the `site` of a pilot")
	flags.StringVar(&o.expires, "expires", o.expires, "`time` for which it is good, such as 12h or 30d; never: "+
		"without an end")
	flags.StringVar(&o.note, "note", "", "`text` that says what it is for")
	flags.StringVarP(&o.output, "output", "o", "", "write a `file` with it that says how the server is reached")
	return command
}

func (c *Commands) createToken(ctx context.Context, o *tokenOptions) error {
	r := &wire.CreateTokenRequest{Role: o.role, User: o.user, Site: o.site, Note: o.note}
	if o.expires != never {
		lasts, err := quantity.Duration(o.expires)
		if err != nil || lasts < time.Second {
			return console.Fail(console.ExitUsage, "write a time such as 12h or 30d, or never", "--expires %s is no time",
				o.expires)
		}
		r.ExpiresSeconds = int64(lasts / time.Second)
	}
	switch pilot := o.role == string(rights.Pilot); {
	case pilot && o.site == "":
		return console.Fail(console.ExitUsage, "name the site with --site", "the token of a pilot is for one site")
	case !pilot && o.user == "":
		return console.Fail(console.ExitUsage, "name the user with --user", "it is not said whose token it is to be")
	}
	return c.askRights(ctx, func(ctx context.Context, client wire.RightsClient) error {
		answer, err := client.CreateToken(ctx, r)
		if err != nil {
			return err
		}
		if o.output == "" {
			return c.Answer(answer, func() {
				fmt.Fprintf(c.Err, "fairway: token %s, %s; it is told this once\n", answer.GetSummary().GetNumber(),
					tokenEnd(answer.GetSummary()))
				fmt.Fprintln(c.Out, answer.GetToken())
			})
		}
		if err := writeService(o.output, answer.GetConnection()); err != nil {
			_, _ = client.RevokeToken(ctx, &wire.RevokeTokenRequest{Number: answer.GetSummary().GetNumber()})
			return err
		}
		answer.Token, answer.Connection = "", nil
		return c.Answer(answer, func() {
			fmt.Fprintf(c.Out, "%s holds token %s, %s\n", screen.DisplayPath(o.output), answer.GetSummary().GetNumber(),
				tokenEnd(answer.GetSummary()))
		})
	})
}

// writeService writes a file by which a server is reached.
func writeService(path string, connection []byte) error {
	if len(connection) == 0 {
		return console.Fail(console.ExitNoState, "start it with --listen", "this server does not listen on a network")
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return access.WritePrivate(path, connection)
}

func tokenEnd(t *wire.TokenSummary) string {
	if t.GetExpires() == nil {
		return "which does not expire"
	}
	return "which expires at " + t.GetExpires().AsTime().Local().Format("2006-01-02 15:04")
}

func (c *Commands) tokenListCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List tokens",
		Long: `List your tokens, and if you are an administrator those of all, the oldest first. USED
is when one was used last since the server began.`,
		Example: "  fairway token list\n  fairway token list --json",
		Args:    console.NoArgument,
		RunE: func(command *cobra.Command, _ []string) error {
			return c.askRights(command.Context(), func(ctx context.Context, client wire.RightsClient) error {
				answer, err := client.ListTokens(ctx, &wire.ListTokensRequest{})
				if err != nil {
					return err
				}
				return c.Answer(answer, func() { c.printTokens(answer.GetTokens()) })
			})
		},
	}
}

func (c *Commands) printTokens(tokens []*wire.TokenSummary) {
	if len(tokens) == 0 {
		fmt.Fprintln(c.Out, "no tokens")
		return
	}
	rows := [][]screen.Cell{screen.Head("TOKEN", "ROLE", "FOR", "EXPIRES", "USED", "BY", "NOTE")}
	for _, t := range tokens {
		whom, expires, colour := t.GetUser(), "never", ""
		if t.GetSite() != "" {
			whom = "site " + t.GetSite()
		}
		if t.GetProof() == string(rights.ByOwner) {
			whom = "(owner)"
		}
		if t.GetExpires() != nil {
			expires = minute(t.GetExpires())
		}
		if t.GetExpired() {
			expires, colour = "expired", screen.Red
		}
		rows = append(rows, []screen.Cell{
			{t.GetNumber(), ""}, {t.GetRole(), ""}, {whom, ""}, {expires, colour}, {minute(t.GetUsed()), ""}, {t.GetBy(), ""},
			{t.GetNote(), screen.Dim},
		})
	}
	screen.PrintTable(c.Out, rows)
}

func minute(t *timestamppb.Timestamp) string {
	if t == nil {
		return "-"
	}
	return t.AsTime().Local().Format("2006-01-02 15:04")
}

func (c *Commands) tokenRevokeCommand() *cobra.Command {
	user := ""
	command := &cobra.Command{
		Use:   "revoke TOKEN...|--user USER",
		Short: "Make tokens worthless",
		Long: `Make tokens worthless at once, by their numbers, or all of a user; what is done with
them ends. You may do that with your own, an administrator with all. The number owner
stands for the token of the file .fairway/service: it gets another one, and copies of
it are good no more.`,
		Example: "  fairway token revoke k2vq7x3am4\n  fairway token revoke --user ada\n  fairway token revoke owner",
		Args: func(command *cobra.Command, numbers []string) error {
			switch {
			case user == "":
				return console.Takes(1, console.AnyNumber, "TOKEN")(command, numbers)
			case len(numbers) > 0:
				return fmt.Errorf("revoke takes numbers of tokens or --user, not both")
			}
			return nil
		},
		RunE: func(command *cobra.Command, numbers []string) error {
			return c.askRights(command.Context(), func(ctx context.Context, client wire.RightsClient) (err error) {
				if user != "" {
					if numbers, err = tokensOf(ctx, client, user); err != nil {
						return err
					}
				}
				for _, number := range numbers {
					if _, err := client.RevokeToken(ctx, &wire.RevokeTokenRequest{Number: number}); err != nil {
						return err
					}
				}
				return c.Answer(RevokedObject{append([]string{}, numbers...)}, func() {
					fmt.Fprintf(c.Out, "revoked: %s\n", strings.Join(numbers, " "))
				})
			})
		},
	}
	command.Flags().StringVar(&user, "user", "", "all tokens of this `user`, those of logins too")
	return command
}

// RevokedObject is what --json prints.
type RevokedObject struct {
	Revoked []string `json:"revoked"` // numbers of tokens
}

func tokensOf(ctx context.Context, client wire.RightsClient, user string) (numbers []string, err error) {
	answer, err := client.ListTokens(ctx, &wire.ListTokensRequest{})
	if err != nil {
		return nil, err
	}
	for _, t := range answer.GetTokens() {
		if t.GetUser() == user && t.GetProof() != string(rights.ByOwner) {
			numbers = append(numbers, t.GetNumber())
		}
	}
	if len(numbers) == 0 {
		return nil, console.Fail(console.ExitNotFound, "`fairway token list` lists those that you may see",
			"there is no token of a user %q",
			user)
	}
	return numbers, nil
}

// WhoamiCommand is `fairway whoami`.
func (c *Commands) WhoamiCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "whoami",
		Short:   "Show who you are to a server",
		Long:    `Show who you are to a server that takes workflows: user, groups, role, and how you have proved that.`,
		Example: "  fairway whoami --server ada.service\n  fairway whoami --json",
		Args:    console.NoArgument,
		RunE: func(command *cobra.Command, _ []string) error {
			return c.askRights(command.Context(), func(ctx context.Context, client wire.RightsClient) error {
				answer, err := client.WhoAmI(ctx, &wire.WhoAmIRequest{})
				if err != nil {
					return err
				}
				return c.Answer(answer, func() {
					user := answer.GetUser()
					if user == "" {
						user = "(owner)"
					}
					fmt.Fprintf(c.Out, "user    %s\nrole    %s\ngroups  %s\nby      %s", screen.OneLine(user), answer.GetRole(),
						screen.OneLine(strings.Join(answer.GetGroups(), ", ")), answer.GetProof())
					if answer.GetToken() != "" {
						fmt.Fprintf(c.Out, " %s", answer.GetToken())
					}
					if answer.GetExpires() != nil {
						fmt.Fprintf(c.Out, ", which expires at %s", minute(answer.GetExpires()))
					}
					fmt.Fprintln(c.Out)
				})
			})
		},
	}
}
