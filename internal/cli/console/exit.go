package console

import (
	"errors"
	"fmt"
	"strings"

	"fairway/internal/yamlfile"
)

// What a command ends with.
const (
	ExitOK          = 0
	ExitFailed      = 1
	ExitUsage       = 2
	ExitBadFile     = 3
	ExitRunning     = 4
	ExitNoState     = 5
	ExitNotFound    = 6
	ExitHungUp      = 129
	ExitInterrupted = 130
	ExitQuit        = 131
	ExitTerminated  = 143
)

// ExitCodes says what each means.
var ExitCodes = []struct {
	Code    int
	Meaning string
}{
	{ExitOK, "success; for run: every job is done"},
	{ExitFailed, "for run: jobs failed, were cancelled, wait for files that will not come, or were left when `fairway stop` ended the run; for other commands: something outside failed (disk, permissions)"},
	{ExitUsage, "unknown command, flag or argument, or a server refuses a submission"},
	{ExitBadFile, "the workflow or experiment file has an error, or a parameter or input is missing"},
	{ExitRunning, "another process runs this workflow (watch it with --follow)"},
	{ExitNoState, "this folder has no run, or the command needs a run that is under way"},
	{ExitNotFound, "there is no such job, step, file, attempt, input or site, or a catalogue has no rule for a name"},
	{ExitHungUp, "the terminal was closed (SIGHUP; --detach, nohup or tmux prevent that); the next run goes on from here"},
	{ExitInterrupted, "interrupted (Ctrl-C); the next run goes on from here"},
	{ExitQuit, "ended at once (Ctrl-\\); the next run goes on from here"},
	{ExitTerminated, "ended by SIGTERM; the next run goes on from here"},
}

// ExitCodeHelp is the page that lists them.
func ExitCodeHelp() string {
	var text strings.Builder
	text.WriteString("Exit codes of every command:\n\n")
	for _, e := range ExitCodes {
		fmt.Fprintf(&text, "  %3d  %s\n", e.Code, e.Meaning)
	}
	return text.String()
}

// Failure is an error that knows its exit code and what a person can do.
type Failure struct {
	Code int
	Err  error
	Hint string // what to do; empty where the error says it
}

func (f *Failure) Error() string {
	if f.Err == nil {
		return ""
	}
	return f.Err.Error()
}

func (f *Failure) Unwrap() error { return f.Err }

// Fail is an error with an exit code, and what a person can do; no hint where the error says that.
func Fail(code int, hint, format string, values ...any) error {
	return &Failure{Code: code, Err: fmt.Errorf(format, values...), Hint: hint}
}

// Quietly ends the program with a code without a message: what is to be said
// was said before.
func Quietly(code int) error {
	if code == ExitOK {
		return nil
	}
	return &Failure{Code: code}
}

// trouble is what is told about an error.
type trouble struct {
	Error    string            `json:"error"`
	Hint     string            `json:"hint"`
	Problems yamlfile.Problems `json:"problems"` // of a file
	ExitCode int               `json:"exit_code"`
}

// Describe finds out what to tell about an error. An empty message means that
// all was told before.
func Describe(err error) trouble {
	t := trouble{Error: err.Error(), Problems: yamlfile.Problems{}, ExitCode: ExitFailed}
	if f, ok := errors.AsType[*Failure](err); ok {
		t.ExitCode, t.Hint = f.Code, f.Hint
	}
	if problems, ok := errors.AsType[yamlfile.Problems](err); ok {
		t.ExitCode, t.Problems = ExitBadFile, problems
	}
	return t
}
