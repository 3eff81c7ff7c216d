package pilot

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"fairway/internal/logical"
	"fairway/internal/pilot/process"
	"fairway/internal/pilot/stage"
	"fairway/internal/wire"
)

func interpreter(words string) func(*wire.Assignment) {
	return payload(func(p *wire.Payload) { p.Interpreter = words })
}

// asScript has the attempt run a file that it reads.
func asScript(t *testing.T, lfn, text string) func(*wire.Assignment) {
	return func(a *wire.Assignment) {
		reads(lfn, 1, int64(len(text)), writeFile(t, text))(a)
		payload(func(p *wire.Payload) { p.Script = lfn })(a)
	}
}

// A failure anywhere in a command ends it, and its outputs are not taken.
func TestCommandsDoNotFailInSilence(t *testing.T) {
	q := newTaskQueue(t)
	q.start(q.config("p1"))
	write(t, q.folder+"/whole.gz", "gzip -c </etc/services")
	write(t, q.folder+"/cut.gz", "gzip -c </etc/services | head -c 500")
	for command, code := range map[string]int32{
		`nosuchprogram --x | sort > out`:             127,
		`zcat ` + q.folder + `/cut.gz | sort > out`:  1,
		`cat $inn > out`:                             1,
		`x=$(false; echo 1); echo $x > out`:          1,
		`true > out; false; true`:                    1,
		`f() { false; true; }; f; true > out`:        1,
		`if true; then false | true; fi; true > out`: 1,
		`(exit 5) | head -1 > out`:                   5,
	} {
		r := q.run("p1", shell(command, writes("out")))
		expect(t, r, wire.Outcome_OUTCOME_EXITED, "")
		if r.GetExitCode() != code {
			t.Errorf("%s: exit code %d, want %d", command, r.GetExitCode(), code)
		}
	}
	for _, command := range []string{
		`zcat ` + q.folder + `/whole.gz | head -1 > out`,
		`first=$(zcat ` + q.folder + `/whole.gz | head -1) && echo "$first" > out`,
		`grep nothing /dev/null || true > out`,
		`set +e; false; set -e; true > out`,
		`set +u; echo "$nothing" > out`,
	} {
		expect(t, q.run("p1", shell(command, writes("out"))), wire.Outcome_OUTCOME_SUCCEEDED, "")
	}
}

func write(t *testing.T, path, command string) {
	t.Helper()
	out, err := exec.Command("sh", "-c", command).Output()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, out, 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestInterpreters(t *testing.T) {
	q := newTaskQueue(t)
	q.start(q.config("p1"))
	long := "# " + strings.Repeat("x", 200_000) + "\n"
	for name, c := range map[string]struct {
		assignment *wire.Assignment
		prints     string
	}{
		"bash by default":  {shell("echo ${BASH_VERSION:+bash}"), "bash\n"},
		"bash":             {shell("a=(x y); echo ${a[1]}", interpreter("bash")), "y\n"},
		"sh":               {shell("echo \"${BASH_VERSION:-none} $-\"; readlink /proc/$$/exe | grep -c dash || :", interpreter("sh")), ""},
		"another program":  {shell(`BEGIN { getline < "n"; print $1 + 1 }`, interpreter("awk -f"), reads("n", 1, 2, writeFile(t, "41"))), "42\n"},
		"first line":       {shell("#!/usr/bin/awk -f\nBEGIN { print 6 * 7 }"), "42\n"},
		"over shell":       {shell("#!/usr/bin/env -S awk -f\nBEGIN { print 6 * 7 }", interpreter("sh")), "42\n"},
		"long":             {shell(long + "echo ${BASH_VERSION:+bash}"), "bash\n"},
		"long sh":          {shell(long+"echo yes", interpreter("sh")), "yes\n"},
		"script":           {shell("", asScript(t, "bin/run", "seq 100000 | head -1; echo ${BASH_VERSION:+bash}")), "1\nbash\n"},
		"script, prefixed": {shell("n=7;", asScript(t, "bin/run", "echo $n")), "7\n"},
		"script of awk":    {shell("", asScript(t, "-run", "#!/usr/bin/awk -f\nBEGIN { print 1 }")), "1\n"},
		"script for awk":   {shell("", asScript(t, "run.awk", "BEGIN { print 2 }"), interpreter("awk -f")), "2\n"},
	} {
		t.Run(name, func(t *testing.T) {
			expect(t, q.run("p1", c.assignment), wire.Outcome_OUTCOME_SUCCEEDED, "")
			if c.prints == "" {
				return
			}
			if got := contents(t, q.log(c.assignment, "out")); got != c.prints {
				t.Errorf("printed %q, want %q", got, c.prints)
			}
		})
	}
	for name, c := range map[string]struct {
		assignment *wire.Assignment
		message    string
	}{
		"no program":         {shell("x", interpreter("nosuchprogram")), "nosuchprogram is not in PATH"},
		"first line, nobody": {shell("#!/no/such/program\nx"), "/no/such/program"},
		"empty script":       {shell("", asScript(t, "run", "")), "script run: it is empty"},
		"strict script":      {shell("", asScript(t, "run", "echo $nothing")), "unbound variable"},
		"strict sh":          {shell("false; true", interpreter("sh")), ""},
		"unset in sh":        {shell("echo $nothing", interpreter("sh")), "nothing"},
		"syntax":             {shell("if true; then"), "syntax error"},
	} {
		t.Run(name, func(t *testing.T) {
			expect(t, q.run("p1", c.assignment), wire.Outcome_OUTCOME_EXITED, c.message)
		})
	}
}

// Where there is no bash, sh is as strict as it can be, and a person is told
// once.
func TestNodeWithoutBash(t *testing.T) {
	folder := t.TempDir()
	for _, program := range []string{"cat", "sort", "sh"} {
		path, err := exec.LookPath(program)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(path, filepath.Join(folder, program)); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", folder)
	q := newTaskQueue(t)
	q.start(q.config("p1"))
	expect(t, q.run("p1", shell("cat $nothing")), wire.Outcome_OUTCOME_EXITED, "")
	expect(t, q.run("p1", shell("false; cat /dev/null")), wire.Outcome_OUTCOME_EXITED, "")
	expect(t, q.run("p1", shell("true", interpreter("bash"))), wire.Outcome_OUTCOME_EXITED, "bash is not in PATH")
	var notes []string
	for range 2 {
		r := q.run("p1", shell("cat /dev/null | sort"))
		expect(t, r, wire.Outcome_OUTCOME_SUCCEEDED, "")
		notes = append(notes, r.GetNotes()...)
	}
	if len(notes) != 1 || !strings.Contains(notes[0], "has no bash") {
		t.Errorf("notes %q", notes)
	}
}

// All variables of Fairway have a value, so that `set -u` takes no offence, and
// stand in the documentation.
func TestVariablesOfFairwayAreSetAndDocumented(t *testing.T) {
	q := newTaskQueue(t)
	cfg := q.config("p1")
	cfg.MilliCPUs, cfg.Memory = 2000, 300e6
	q.start(cfg)
	documented := contents(t, "../../docs/commands-of-steps.md")
	names := []string{
		JobVariable, NameVariable, StepVariable, process.AttemptVariable, TryVariable, process.PilotVariable, SandboxVariable,
		CPUsVariable, MemoryVariable,
		DeadlineVariable, TimeVariable, stage.InputsVariable, stage.OutputsVariable, stage.CatalogVariable,
		stage.ReportVariable,
	}
	for _, name := range names {
		if !strings.Contains(documented, "`"+name+"`") {
			t.Errorf("docs/commands-of-steps.md has no %s", name)
		}
		expect(t, q.run("p1", shell(": $"+name)), wire.Outcome_OUTCOME_SUCCEEDED, "")
	}
	for want, a := range map[string]*wire.Assignment{
		"2 300000000\n": shell("echo $FAIRWAY_CPUS $FAIRWAY_MEMORY"),
		"1 300000000\n": shell("echo $FAIRWAY_CPUS $FAIRWAY_MEMORY", needs(&wire.Resources{MilliCpus: 500})),
		"2 50000000\n":  shell("echo $FAIRWAY_CPUS $FAIRWAY_MEMORY", needs(&wire.Resources{MilliCpus: 2000, MemoryBytes: 50e6})),
	} {
		expect(t, q.run("p1", a), wire.Outcome_OUTCOME_SUCCEEDED, "")
		if got := contents(t, q.log(a, "out")); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// A command that wrote nothing and said something may have failed without
// knowing.
func TestNoteOfEmptyOutputs(t *testing.T) {
	q := newTaskQueue(t)
	q.start(q.config("p1"))
	for command, want := range map[string]string{
		`echo "no reads found" >&2; : > out; : > more`:      "it wrote nothing into out and said: no reads found",
		`echo "no reads found" >&2; : > out; echo x > more`: "",
		`: > out; : > more`: "",
		`echo "all is well" >&2; echo x > out; echo x > more`: "",
	} {
		r := q.run("p1", shell(command, writes("out", "more")))
		expect(t, r, wire.Outcome_OUTCOME_SUCCEEDED, "")
		if got := strings.Join(r.GetNotes(), "\n"); got != want {
			t.Errorf("%s: notes %q, want %q", command, got, want)
		}
	}
}

// The number of records is the name of a file that is always empty.
func TestCountingLeavesNoNoteOfAnEmptyOutput(t *testing.T) {
	q := newTaskQueue(t)
	q.start(q.config("p1"))
	const out = logical.CountFolder + "job/"
	r := q.run("p1", shell(`echo "counting" >&2; mkdir -p `+out+`; : > `+out+"3", writes(out+"*")))
	expect(t, r, wire.Outcome_OUTCOME_SUCCEEDED, "")
	if len(r.GetNotes()) != 0 {
		t.Errorf("notes %q", r.GetNotes())
	}
}

// A name that storage could not hold fails once, with the reason.
func TestTooLongNamesChosenByContent(t *testing.T) {
	q := newTaskQueue(t)
	q.start(q.config("p1"))
	long := strings.Repeat("x", 201)
	expect(t, q.run("p1", shell(": > out/"+long, writes("out/*"))), wire.Outcome_OUTCOME_MISSING_OUTPUT,
		"part of 201 bytes, the limit is 200")
	expect(t, q.run("p1", shell(": > out/"+long[1:], writes("out/*"))), wire.Outcome_OUTCOME_SUCCEEDED, "")
}
