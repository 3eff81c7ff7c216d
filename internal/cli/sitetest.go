//go:build linux

package cli

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"fairway/internal/bootstrap"
	"fairway/internal/cli/console"
	"fairway/internal/cli/screen"
	"fairway/internal/pilot"
	"fairway/internal/provision"
	"fairway/internal/quantity"
	"fairway/internal/server/launch"
	"fairway/internal/server/probe"
	"fairway/internal/site"
)

func (c *commands) siteTestCommand() *cobra.Command {
	wait, address := 10*time.Minute, ""
	command := &cobra.Command{
		Use:   "test NAME",
		Short: "Submit one pilot to a site, and say what it finds",
		Long: `Submit one pilot to a site, print its script, and report how long it waited and
what its node has: processors, memory, disk, remaining time, tools. It also says
at which address the node reaches this machine, and whether it sees the folder of
the workflow. The pilot runs no jobs. Ctrl-C cancels it.`,
		Example: "  fairway site test cluster\n  fairway site test cluster --wait 1h --json",
		Args:    console.Takes(1, 1, "NAME"),
		RunE: func(command *cobra.Command, arguments []string) error {
			s, folder, err := c.siteMeant(arguments[0])
			if err == nil {
				err = console.OfSites(provision.EnterSite(command.Context(), s))
			}
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(command.Context(), wait)
			defer cancel()
			defer console.Signalled(func(os.Signal) { cancel() })()
			return c.testSite(ctx, s, folder, address)
		},
	}
	command.Flags().DurationVar(&wait, "wait", wait, "how long to wait for the pilot")
	command.Flags().StringVar(&address, "listen", "", listenHelp)
	return command
}

// testSite submits a probe, which reaches this process as a pilot reaches its server.
func (c *commands) testSite(ctx context.Context, s *site.Site, folder, address string) error {
	p, err := probe.Open(probe.Config{
		Site: s, Folder: folder, Listen: address, Sandbox: provision.SandboxMode(false, s.Strict),
		Start: func(at launch.Way, arguments ...string) (bootstrap.Start, error) {
			return provision.StartOf(s, at, arguments...)
		},
	})
	if err != nil {
		return err
	}
	defer p.Close()
	if !c.JSON {
		script, err := p.Script()
		if err != nil {
			return err
		}
		fmt.Fprintf(c.Out, "submitting to %s:\n\n%s\n", s.Name, script)
	}
	told := console.Reason("")
	result, err := p.Run(ctx, func(why string) {
		if told.IsNews(why) {
			fmt.Fprintln(c.Err, screen.Uncoloured(why))
		}
	})
	if err != nil {
		said, elsewhere := p.Said()
		advice := "see docs/sites.md"
		switch {
		case elsewhere != "":
			advice = "what it said is on the node, in " + elsewhere
		case s.File != "":
			advice = fmt.Sprintf("mend the description in %s:%d; see docs/sites.md", screen.DisplayPath(s.File), s.Line)
		}
		return console.Fail(console.ExitFailed, advice, "no pilot came at %s: %w%s", s.Name, err, withLines(said))
	}
	return c.printFound(s, &result)
}

func withLines(said string) string {
	if text := strings.TrimSpace(said); text != "" {
		return "; it said:\n" + text
	}
	return ""
}

type testedSite struct {
	Site   string      `json:"site"`
	Waited float64     `json:"waited"` // seconds
	Found  pilot.Found `json:"found"`
	// Problems are those of hosts that take no pilot.
	Problems []string `json:"problems,omitempty"`
}

func (c *commands) printFound(s *site.Site, r *probe.Result) error {
	found, waited := r.Found, quantity.Seconds(r.Waited.Seconds())
	if c.JSON {
		c.PrintJSON(testedSite{s.Name, r.Waited.Seconds(), found, r.Problems})
	} else {
		fmt.Fprintf(c.Out, "a pilot came after %s, on %s\n", waited, found.Host)
		fmt.Fprintf(c.Out, "  processors  %g\n  memory      %s\n  disk        %s in %s\n", float64(found.MilliCPUs)/1000,
			quantity.Bytes(found.Memory), quantity.Bytes(found.Disk), found.Scratch)
		if found.Life > 0 {
			fmt.Fprintf(c.Out, "  time        %s\n", quantity.Seconds(found.Life.Seconds()))
		}
		if len(found.Tools) > 0 {
			fmt.Fprintf(c.Out, "  tools       %s\n", strings.Join(found.Tools, ", "))
		}
		fmt.Fprintf(c.Out, "  server      reached at %s\n  folder      %s\n", found.Server, sharing(found.Folder))
		for _, problem := range r.Problems {
			fmt.Fprintf(c.Out, "no pilot can be started on %s\n", problem)
		}
	}
	if found.Problem != "" {
		return console.Fail(console.ExitFailed, fmt.Sprintf("mend the node, or the description in %s:%d",
			screen.DisplayPath(s.File), s.Line),
			"the pilot would take no jobs: %s", found.Problem)
	}
	return nil
}

func sharing(way string) string {
	switch way {
	case pilot.FolderWritten:
		return "the workflow's is read and written in place"
	case pilot.FolderRead:
		return "the workflow's is read in place, and outputs go through the server"
	}
	return "the workflow's is not seen: files go through the server"
}
