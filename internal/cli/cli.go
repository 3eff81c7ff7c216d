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
	"sync/atomic"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"fairway/internal/heap"
	"fairway/lib/sched"
)

// Main runs the program with the arguments of the process and returns its
// exit code.
//
// A umask that takes from the owner is ignored, in jobs too: whoever makes a folder
// must be able to make files in it.
func Main() int {
	unix.Umask(unix.Umask(0) &^ 0o700)
	outliveReaders()
	quitQuietly()
	if os.Getenv("GOGC") == "" {
		heap.CollectLate()
	}
	root := (*console).root
	switch {
	case filepath.Base(os.Args[0]) == hqName:
		root = (*console).hqRoot
	case len(os.Args) > 1 && os.Args[1] == pilotName:
		root = (*console).pilotRoot
	}
	return execute(context.Background(), root, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
}

func execute(
	ctx context.Context, commands func(*console) *cobra.Command, arguments []string, in io.Reader, out, err io.Writer,
) int {
	printed := &printed{out: newScreen(out)}
	c := &console{in: in, out: printed, err: newScreen(err)}
	root := commands(c)
	root.SetArgs(arguments)
	root.SetIn(in)
	root.SetOut(c.out)
	root.SetErr(c.err)
	root.SetHelpCommand(helpCommand(root))
	shellsOnly(root)
	c.textInJSON(root)
	if asksForJSON(arguments) {
		root.SetVersionTemplate(jsonText(thisVersion()))
	}
	failed := root.ExecuteContext(ctx)
	if failed == nil || errors.Is(failed, syscall.EPIPE) && errors.Is(printed.err, syscall.EPIPE) {
		return c.exitCode(printed)
	}
	if !c.started {
		c.json = c.json || asksForJSON(arguments)
		hint := fmt.Sprintf("see `%[1]s help` and `%[1]s help COMMAND`", root.Name())
		failed = &failure{code: exitUsage, err: failed, hint: hint}
	}
	t := describe(failed)
	c.printTrouble(t)
	return t.ExitCode
}

// exitCode is that of a command that did what was asked, if what it printed has
// arrived as far as somebody read it. That of a run says what has become of its jobs, and
// nothing else.
func (c *console) exitCode(out *printed) int {
	if out.err == nil || errors.Is(out.err, syscall.EPIPE) {
		return exitOK
	}
	fmt.Fprintf(c.err, "fairway: what was to be printed is incomplete: standard output: %v\n", out.err)
	if c.concluded {
		return exitOK
	}
	return exitFailed
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
func Commands() *cobra.Command { return new(console).root() }

// pilotName is the command by which pilots are started.
const pilotName = "pilot"

// pilotRoot has the command for pilots alone. Each run starts some, and to make all others takes longer
// than many a job.
func (c *console) pilotRoot() *cobra.Command {
	root := c.bareRoot()
	root.AddCommand(c.pilotCommand())
	root.SetFlagErrorFunc(flagError)
	return root
}

// bareRoot is the root without commands.
func (c *console) bareRoot() *cobra.Command {
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
		Version:       versionText(),
		SilenceUsage:  true,
		SilenceErrors: true,
		PersistentPreRun: func(command *cobra.Command, _ []string) {
			c.started = true
			c.chooseMeant(command)
			if command.Name() != pilotName { // whose log is for programs, too
				slog.SetDefault(slog.New(newWarnings(c.announce)))
			}
		},
	}
	flags := root.PersistentFlags()
	flags.StringVarP(&c.dir, "dir", "C", "", "folder of the run's state and results (default for run: that of FILE; "+
		"for others: this folder, or the nearest one above it that has a .fairway)")
	flags.StringVar(&c.service, "server", os.Getenv(serverVariable), "a server that takes workflows (fairway serve): its "+
		"folder, or a copy of the file .fairway/service in it (default: $"+serverVariable+" where no run is here)")
	flags.Uint32Var(&c.number, "run", 0, "number of the `run` that is meant, at a server that takes workflows")
	flags.BoolVar(&c.json, "json", false, "print one JSON object instead of text")
	_ = root.MarkPersistentFlagDirname("dir")
	return root
}

func (c *console) root() *cobra.Command {
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
	grouped("run", marked(opensHere, c.execCommand(), c.mapCommand(), c.openCommand())...)
	grouped("run", c.serveCommand())
	grouped("run", marked(asksServers, c.submitCommand())...)
	grouped("run", c.initCommand(), c.checkCommand(), c.graphCommand(), c.siteCommand(), c.stopCommand(), c.cleanCommand())
	grouped("look", marked(asksServers, c.runsCommand())...)
	grouped("look", c.watchCommand(), c.pilotsCommand())
	grouped("look", marked(asksServers, c.sharesCommand())...)
	grouped("run", marked(asksServers, c.loginCommand())...)
	grouped("look", marked(asksServers, c.whoamiCommand(), c.auditCommand())...)
	grouped("change", marked(asksServers, c.tokenCommand())...)
	grouped("look", c.jobsCommand(), c.showCommand(), c.explainCommand(), c.logsCommand(), c.whyCommand())
	grouped("look", c.whatIfCommand())
	grouped("look", c.reportCommand(), c.exportCommand())
	grouped("look", c.filesCommand(), c.getCommand(), c.cacheCommand())
	grouped("look", c.simCommand(), c.catalogCommand())
	grouped("change", c.cancelCommand(), c.retryCommand(), c.prioritizeCommand(), c.closeCommand())
	grouped("change", marked(asksServers, c.removeCommand())...)
	root.AddCommand(c.versionCommand(), c.pilotCommand(), c.taskCommand(), exitCodesTopic())
	root.SetFlagErrorFunc(flagError)
	plainTypes(root)
	root.SetVersionTemplate("fairway {{.Version}}\n")
	return root
}

func exitCodesTopic() *cobra.Command {
	return &cobra.Command{
		Use:   "exit-codes",
		Short: "What the exit codes mean",
		Long:  exitCodeHelp(),
	}
}

// outliveReaders has the process go on when whoever reads what it prints goes away,
// as head does. SIGPIPE is caught and not ignored: what is started would inherit that.
func outliveReaders() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }

// quitQuietly has Ctrl-\ end the process without a word, unless signalled attends to it. Go would
// print all goroutines; SIGABRT still has it do so.
func quitQuietly() {
	quits := make(chan os.Signal, 1)
	signal.Notify(quits, syscall.SIGQUIT)
	go func() {
		for range quits {
			if attending.Load() == 0 {
				os.Exit(exitQuit)
			}
		}
	}()
}

// attending counts the calls of signalled that have not ended.
var attending atomic.Int32

// signalled calls each of its functions at the next signal that asks the program to
// end, in order, the last one from then on. The returned function ends that.
//
// A terminal that is closed sends SIGHUP more than once: its shell does, and the kernel when the
// shell ends. What ends a session may send SIGTERM besides. So SIGHUP asks only where nothing has
// asked before, and what comes after it is no repetition. Ctrl-\ (SIGQUIT) wants what a repetition
// does.
func signalled(actions ...func(os.Signal)) (stop func()) {
	asked := []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGQUIT}
	if !signal.Ignored(syscall.SIGHUP) { // by nohup
		asked = append(asked, syscall.SIGHUP)
	}
	signals := sched.Default().Signals(asked...)
	attending.Add(1)
	go func() {
		var a asks
		for {
			s, err := signals.Wait(context.Background())
			if err != nil {
				return // closed
			}
			if i := a.next(s); i >= 0 {
				actions[min(i, len(actions)-1)](s)
			}
		}
	}()
	return func() {
		attending.Add(-1)
		signals.Close()
	}
}

// asks are the wishes that signals have brought.
type asks struct {
	n    int  // how many there were
	hung bool // the first was that the terminal is closed, and nothing was asked since then
}

// next is the number of the wish that a signal is, from 0, or -1 where it is none.
func (a *asks) next(s os.Signal) int {
	switch {
	case s == syscall.SIGHUP && a.n > 0:
		return -1
	case s == syscall.SIGHUP:
		a.hung = true
	case s == syscall.SIGQUIT:
		a.n, a.hung = max(a.n, 1), false
	case a.hung:
		a.hung = false
		return -1
	}
	a.n++
	return a.n - 1
}
