package cli

import (
	"errors"
	"fmt"
	"strings"

	"fairway/internal/yamlfile"
)

// What a command ends with.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitBadFile     = 3
	exitRunning     = 4
	exitNoState     = 5
	exitNotFound    = 6
	exitHungUp      = 129
	exitInterrupted = 130
	exitQuit        = 131
	exitTerminated  = 143
)

var exitCodes = []struct {
	code    int
	meaning string
}{
	{exitOK, "success; for run: every job is done"},
	{exitFailed, "for run: jobs failed, were cancelled, wait for files that will not come, or were left when `fairway stop` ended the run; for other commands: something outside failed (disk, permissions)"},
	{exitUsage, "unknown command, flag or argument, or a server refuses a submission"},
	{exitBadFile, "the workflow or experiment file has an error, or a parameter or input is missing"},
	{exitRunning, "another process runs this workflow (watch it with --follow)"},
	{exitNoState, "this folder has no run, or the command needs a run that is under way"},
	{exitNotFound, "there is no such job, step, file, attempt, input or site, or a catalogue has no rule for a name"},
	{exitHungUp, "the terminal was closed (SIGHUP; --detach, nohup or tmux prevent that); the next run goes on from here"},
	{exitInterrupted, "interrupted (Ctrl-C); the next run goes on from here"},
	{exitQuit, "ended at once (Ctrl-\\); the next run goes on from here"},
	{exitTerminated, "ended by SIGTERM; the next run goes on from here"},
}

func exitCodeHelp() string {
	var text strings.Builder
	text.WriteString("Exit codes of every command:\n\n")
	for _, e := range exitCodes {
		fmt.Fprintf(&text, "  %3d  %s\n", e.code, e.meaning)
	}
	return text.String()
}

// failure is an error that knows its exit code and what a person can do.
type failure struct {
	code int
	err  error
	hint string // what to do; empty where the error says it
}

func (f *failure) Error() string {
	if f.err == nil {
		return ""
	}
	return f.err.Error()
}

func (f *failure) Unwrap() error { return f.err }

func fail(code int, hint, format string, values ...any) error {
	return &failure{code: code, err: fmt.Errorf(format, values...), hint: hint}
}

// quietly ends the program with a code without a message: what is to be said
// was said before.
func quietly(code int) error {
	if code == exitOK {
		return nil
	}
	return &failure{code: code}
}

// trouble is what is told about an error.
type trouble struct {
	Error    string            `json:"error"`
	Hint     string            `json:"hint"`
	Problems yamlfile.Problems `json:"problems"` // of a file
	ExitCode int               `json:"exit_code"`
}

// describe finds out what to tell about an error. An empty message means that
// all was told before.
func describe(err error) trouble {
	t := trouble{Error: err.Error(), Problems: yamlfile.Problems{}, ExitCode: exitFailed}
	if f, ok := errors.AsType[*failure](err); ok {
		t.ExitCode, t.Hint = f.code, f.hint
	}
	if problems, ok := errors.AsType[yamlfile.Problems](err); ok {
		t.ExitCode, t.Problems = exitBadFile, problems
	}
	return t
}
