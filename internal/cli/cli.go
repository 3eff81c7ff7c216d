package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"fairway/internal/cli/console"
	"fairway/internal/cli/hq"
	"fairway/internal/cli/look"
	"fairway/internal/cli/screen"
	"fairway/internal/cli/simulate"
	"fairway/internal/heap"
	"fairway/internal/provision"
)

// commands are all commands: those that run and change are here, beside those that look.
type commands struct{ *look.Commands }

func commandsOf(c *console.Console) *commands { return &commands{look.New(c)} }

// Main runs the program with the arguments of the process and returns its
// exit code.
//
// A umask that takes from the owner is ignored, in jobs too: whoever makes a folder
// must be able to make files in it.
func Main() int {
	unix.Umask(unix.Umask(0) &^ 0o700)
	outliveReaders()
	console.QuitQuietly()
	if os.Getenv("GOGC") == "" {
		heap.CollectLate()
	}
	root := allCommands
	switch {
	case filepath.Base(os.Args[0]) == hq.Name:
		root = hq.Root
	case len(os.Args) > 1 && os.Args[1] == provision.PilotCommand:
		root = pilotCommands
	}
	return execute(context.Background(), root, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
}

func execute(
	ctx context.Context, commands func(*console.Console) *cobra.Command, arguments []string, in io.Reader, out,
	err io.Writer,
) int {
	printed := &screen.Printed{Out: screen.New(out)}
	c := &console.Console{In: in, Out: printed, Err: screen.New(err)}
	root := commands(c)
	root.SetArgs(arguments)
	root.SetIn(in)
	root.SetOut(c.Out)
	root.SetErr(c.Err)
	root.SetHelpCommand(console.HelpCommand(root))
	console.GroupHelp(root, flagGroups)
	console.ShellsOnly(root)
	c.TextInJSON(root)
	if asksForJSON(arguments) {
		root.SetVersionTemplate(console.JSONText(console.ThisVersion()))
	}
	asked, failed := root.ExecuteContextC(ctx)
	if failed == nil || errors.Is(failed, syscall.EPIPE) && errors.Is(printed.Err, syscall.EPIPE) {
		return exitCode(c, printed)
	}
	if !c.Started {
		c.JSON = c.JSON || asksForJSON(arguments)
		hint := fmt.Sprintf("see `%[1]s help` and `%[1]s help COMMAND`", root.Name())
		if asked.HasParent() {
			hint = fmt.Sprintf("see `%s --help`", asked.CommandPath())
		}
		if known, ok := errors.AsType[*console.Failure](failed); !ok || known.Hint == "" {
			failed = &console.Failure{Code: console.ExitUsage, Err: failed, Hint: hint}
		}
	}
	t := console.Describe(failed)
	c.PrintTrouble(t)
	return t.ExitCode
}

// exitCode is that of a command that did what was asked, if what it printed has
// arrived as far as somebody read it. That of a run says what has become of its jobs, and
// nothing else.
func exitCode(c *console.Console, out *screen.Printed) int {
	if out.Err == nil || errors.Is(out.Err, syscall.EPIPE) {
		return console.ExitOK
	}
	fmt.Fprintf(c.Err, "fairway: what was to be printed is incomplete: standard output: %v\n", out.Err)
	if c.Concluded {
		return console.ExitOK
	}
	return console.ExitFailed
}

// asksForJSON finds the flag where parsing ended before it.
func asksForJSON(arguments []string) bool {
	for _, argument := range arguments {
		if argument == "--json" || argument == "--json=true" {
			return true
		}
		if argument == "--" {
			break
		}
	}
	return false
}

// Commands are all commands, for who documents them.
func Commands() *cobra.Command { return allCommands(new(console.Console)) }

func allCommands(c *console.Console) *cobra.Command { return commandsOf(c).root() }

func pilotCommands(c *console.Console) *cobra.Command { return commandsOf(c).pilotRoot() }

// pilotRoot has the command for pilots alone. Each run starts some, and to make all others takes longer
// than many a job.
func (c *commands) pilotRoot() *cobra.Command {
	root := c.bareRoot()
	root.AddCommand(c.pilotCommand())
	root.SetFlagErrorFunc(console.FlagError)
	return root
}

func (c *commands) bareRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "fairway",
		Short: "Run data-driven workflows",
		Long: strings.TrimSpace(`
Fairway runs workflows whose jobs say ahead of time which files they read and
write. It starts a job when its files are there, keeps files close to the jobs
that need them, and never loses or repeats a result. The order of the jobs never
depends on timing.`),
		Example: `  fairway run workflow.yaml
  fairway run workflow.yaml --set pairs=500 --pilots 4
  fairway explain align/p3
  fairway -C examples/lambda jobs --state failed`,
		Version:       console.VersionText(),
		SilenceUsage:  true,
		SilenceErrors: true,
		PersistentPreRun: func(command *cobra.Command, _ []string) {
			c.Started = true
			c.ChooseMeant(command)
			if command.Name() != provision.PilotCommand { // whose log is for programs, too
				slog.SetDefault(slog.New(console.NewWarnings(c.Announce)))
			}
		},
	}
	flags := root.PersistentFlags()
	flags.StringVarP(&c.Dir, "dir", "C", "", "folder of the run's state and results (default for run: that of FILE; "+
		"for others: this folder, or the nearest one above it that has a .fairway)")
	flags.StringVar(&c.Service, "server", os.Getenv(console.ServerVariable),
		"a server that takes workflows (fairway serve): its "+
			"folder, or a copy of the file .fairway/service in it (default: $"+console.ServerVariable+" where no run is here)")
	flags.Uint32Var(&c.Number, "run", 0, "number of the `run` that is meant, at a server that takes workflows")
	flags.BoolVar(&c.JSON, "json", false, "print one JSON object instead of text")
	_ = root.MarkPersistentFlagDirname("dir")
	return root
}

func (c *commands) root() *cobra.Command {
	root := c.bareRoot()
	root.AddGroup(
		&cobra.Group{ID: "run", Title: "Running:"},
		&cobra.Group{ID: "look", Title: "Looking:"},
		&cobra.Group{ID: "change", Title: "Changing:"},
	)
	grouped := func(group string, commands ...*cobra.Command) {
		for _, command := range commands {
			command.GroupID = group
			root.AddCommand(command)
		}
	}
	grouped("run", c.runCommand())
	grouped("run", console.Marked(console.OpensHere, c.execCommand(), c.mapCommand(), c.openCommand())...)
	grouped("run", c.serveCommand())
	grouped("run", console.Marked(console.AsksServers, c.SubmitCommand())...)
	grouped("run", c.initCommand(), c.checkCommand(), c.GraphCommand(), c.siteCommand(), c.stopCommand(), c.cleanCommand())
	grouped("look", console.Marked(console.AsksServers, c.RunsCommand())...)
	grouped("look", c.WatchCommand(), c.PilotsCommand())
	grouped("look", console.Marked(console.AsksServers, c.SharesCommand())...)
	grouped("run", console.Marked(console.AsksServers, c.LoginCommand())...)
	grouped("look", console.Marked(console.AsksServers, c.WhoamiCommand(), c.AuditCommand())...)
	grouped("change", console.Marked(console.AsksServers, c.TokenCommand())...)
	grouped("look", c.JobsCommand(), c.ShowCommand(), c.ExplainCommand(), c.LogsCommand(), c.WhyCommand())
	grouped("look", c.WhatIfCommand())
	grouped("look", c.ReportCommand(), c.ExportCommand())
	grouped("look", c.FilesCommand(), c.GetCommand(), c.CacheCommand())
	grouped("look", simulate.Command(c.Console), c.CatalogCommand())
	grouped("change", c.cancelCommand(), c.retryCommand(), c.prioritizeCommand(), c.closeCommand())
	grouped("change", console.Marked(console.AsksServers, c.RemoveCommand())...)
	root.AddCommand(c.versionCommand(), c.pilotCommand(), c.taskCommand(), exitCodesTopic())
	root.SetFlagErrorFunc(console.FlagError)
	console.PlainTypes(root)
	root.SetVersionTemplate("fairway {{.Version}}\n")
	return root
}

func exitCodesTopic() *cobra.Command {
	return &cobra.Command{
		Use:   "exit-codes",
		Short: "What the exit codes mean",
		Long:  console.ExitCodeHelp(),
	}
}

// outliveReaders has the process go on when whoever reads what it prints goes away,
// as head does. SIGPIPE is caught and not ignored: what is started would inherit that.
func outliveReaders() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }
