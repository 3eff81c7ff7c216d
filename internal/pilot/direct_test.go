package pilot

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"fairway/internal/pilot/stage"
	"fairway/internal/wire"
)

// numbered are the variables that differ between two attempts.
var numbered = regexp.MustCompile(`^(PWD|FAIRWAY_[A-Z_]*)=`)

// A command that needs no shell is started without one, and finds what it would find behind one.
func TestSimpleCommandsNeedNoShell(t *testing.T) {
	q := newTaskQueue(t)
	q.start(q.config("p1"))
	env := payload(func(p *wire.Payload) { p.Environment = map[string]string{"in": "a b*", "other": "$in"} })
	printed := func(command string) (lines []string) {
		t.Helper()
		a := shell(command, env)
		expect(t, q.run("p1", a), wire.Outcome_OUTCOME_SUCCEEDED, "")
		lines = slices.DeleteFunc(strings.Split(contents(t, q.log(a, "out")), "\n"), numbered.MatchString)
		slices.Sort(lines)
		return lines
	}
	if direct, behind := printed("env"), printed("env;"); !slices.Equal(direct, behind) {
		t.Errorf("the environment is %q, and behind bash %q", direct, behind)
	}
	if got := printed(`basename "$in.x" .x`); !slices.Equal(got, []string{"", "a b*"}) {
		t.Errorf("it prints %q", got)
	}
}

// Bash does what only bash can find out.
func TestWhatNeedsAShell(t *testing.T) {
	q := newTaskQueue(t)
	q.start(q.config("p1"))
	bin := filepath.Join(q.folder, "bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(bin, "noline"), []byte("echo by the shell\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	a := shell("noline", func(a *wire.Assignment) {
		payload(func(p *wire.Payload) { p.Environment = map[string]string{"PATH": bin + ":" + os.Getenv("PATH")} })(a)
	})
	expect(t, q.run("p1", a), wire.Outcome_OUTCOME_SUCCEEDED, "")
	if got := contents(t, q.log(a, "out")); got != "by the shell\n" {
		t.Error(got)
	}
	for command, code := range map[string]int32{"nosuchprogram x": 127, `cat "$unset"`: 1} {
		r := q.run("p1", shell(command))
		expect(t, r, wire.Outcome_OUTCOME_EXITED, "")
		if r.GetExitCode() != code {
			t.Errorf("%s: exit code %d, want %d", command, r.GetExitCode(), code)
		}
	}
	startup := writeFile(t, "cp() { echo by the function; }\n")
	a = shell("cp x y", func(a *wire.Assignment) {
		payload(func(p *wire.Payload) { p.Environment = map[string]string{"BASH_ENV": startup} })(a)
	})
	expect(t, q.run("p1", a), wire.Outcome_OUTCOME_SUCCEEDED, "")
	if got := contents(t, q.log(a, "out")); got != "by the function\n" {
		t.Error(got)
	}
}

func TestDirectCommands(t *testing.T) {
	b, err := newBase(nil)
	if err != nil {
		t.Fatal(err)
	}
	for command, want := range map[string]string{
		`cat "$in" b`:         "cat|a *b|b",
		"#!/bin/sh\ncat b":    "",
		`cat "$other"`:        "",
		`cat "$in" > "$out"`:  "",
		`nosuchprogram "$in"`: "",
		`./cat "$in"`:         "",
	} {
		a := &attempt{Execution: stage.Execution{
			Assignment: shell(command), Payload: &wire.Payload{Environment: map[string]string{"in": "a *b"}},
		}}
		a.In = stage.NewInputs(nil, &a.Execution)
		p := &pilot{means: means{base: b}}
		if got := strings.Join(p.direct(a, command), "|"); got != want {
			t.Errorf("%s: %q, want %q", command, got, want)
		}
		a.Payload.Environment["BASH_FUNC_cat%%"] = "() { :; }"
		if p.direct(a, command) != nil {
			t.Errorf("%s: a function may stand for the program", command)
		}
	}
}
