package flow

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"fairway/internal/flow/workflow"
)

func TestFilesUnderEachByName(t *testing.T) {
	x := newWorld(t, commandFrame(`command: paste "$one" "$two" > "$out"`), nil)
	x.arrive("b", "b/1")
	x.arrive("raw", "raw/1")
	c := x.jobs["s/1"].Command
	if got := fmt.Sprint(c.Environment); got != "map[in:raw/1 b/1 one:raw/1 out:s/1 sample:1 two:b/1]" {
		t.Error(got)
	}
	for text, want := range map[string]string{
		"each: {sample: 'raw/{sample}'}":                       `the file "sample" has the name of a placeholder`,
		"each: {one: 'raw/{sample}'}\n    reads: {one: 'b/1'}": `two files have the name "one"`,
		"each: {in: 'raw/{sample}'}":                           `the name "in" would hide`,
		"each: {column: 'raw/{sample}'}":                       `has the name of a parameter`,
		"merge: {one: 'raw/{sample}'}":                         "merge takes patterns without names",
	} {
		_, err := workflow.Parse("t.yaml", []byte(strings.Replace(commandFrame("command: 'true'"),
			"each: {one: 'raw/{sample}', "+
				"two: 'b/{sample}'}", text, 1)))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\ngot  %v\nwant %s", text, err, want)
		}
	}
}

// $in has the files under each in the order of their patterns, whichever came
// first, and those of a merge in the canonical order.
func TestOrderOfInputsIsThatOfThePatterns(t *testing.T) {
	x := newWorld(t, `
workflow: w
inputs: {a: {files: 'a/{n}', as: 'a/{n}'}, b: {files: 'b/{n}', as: 'b/{n}'}}
steps:
  s: {each: ['b/{n}', 'a/{n}'], writes: 's/{n}', command: 'cat $in > $out'}
  m: {merge: ['b/{n}', 'a/{n}'], writes: 'm', command: 'cat $in > $out'}
`, nil)
	x.arrive("a", "a/1", "a/2")
	x.arrive("b", "b/1", "b/2")
	x.close("a")
	x.close("b")
	for job, want := range map[string]string{"s/1": "b/1 a/1", "s/2": "b/2 a/2", "m": "a/1 a/2 b/1 b/2"} {
		if got := x.jobs[job].Command.Environment["in"]; got != want {
			t.Errorf("%s: $in is %q, want %q", job, got, want)
		}
	}
}

func TestInterpreterOfCommands(t *testing.T) {
	text := "workflow: w\nshell: %s\nsteps:\n  a: {writes: a, command: 'echo $out > $out'}\n  b: {writes: b, shell: " +
		"python3 -u, command: 'print(1)'}\n  c: {writes: c, shell: sh, command: touch c}\n"
	for shell, want := range map[string]string{"bash": "bash", "sh": "sh", "Rscript": "Rscript"} {
		x := newWorld(t, fmt.Sprintf(text, shell), nil)
		x.step(Tick{})
		if got := x.jobs["a"].Command; got.Interpreter != want || got.Shell == "" {
			t.Errorf("%+v", got)
		}
		if got := x.jobs["b"].Command; got.Interpreter != "python3 -u" || got.Shell != "print(1)" {
			t.Errorf("%+v", got)
		}
		if got := x.jobs["c"].Command; !slices.Equal(got.Argv, []string{"touch", "c"}) || got.Interpreter != "" {
			t.Errorf("%+v", got)
		}
	}
	for text, want := range map[string]string{
		"shell: cat $in":                 "has a shell and no command; write the command under command",
		"shell: cat $in\n    command: x": `"cat $in" is no interpreter`,
		"command: x\n    script: y":      "has a command and a script",
		"script: 'y/{n}'":                "has a placeholder or a wildcard",
		"command: ''":                    "the command must be a text",
		"command: \"a\\0\"":              "zero byte",
	} {
		_, err := workflow.Parse("t.yaml", []byte("workflow: w\nsteps:\n  s:\n    writes: s\n    "+text+"\n"))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\ngot  %v\nwant %s", text, err, want)
		}
	}
}

// A script is an input: its jobs run again when it changes. It has all
// parameters, as its text is not known here.
func TestScriptIsAnInput(t *testing.T) {
	const text = `
workflow: w
parameters: {p: 1, q: 2}
inputs: {raw: {files: 'raw/{n}', as: 'raw/{n}'}}
steps:
  gen: {writes: made.sh, command: 'echo > $out'}
  a: {each: 'raw/{n}', split: {records: 2, of: bytes=1}, writes: 'a/{n}.{chunk}', script: bin/run.py, shell: python3}
  b: {reads: raw/1, writes: b, script: made.sh}
  c: {writes: c, script: ../other/tool.sh}
  d: {writes: d, script: bin/./run.py}
`
	x := newWorld(t, text, nil)
	var names []string
	for _, in := range x.flow.Inputs() {
		names = append(names, in.Name)
	}
	if want := []string{"raw", "script bin/run.py", "script ../other/tool.sh"}; !slices.Equal(names, want) {
		t.Fatalf("inputs %q, want %q", names, want)
	}
	in := x.flow.Inputs()[2]
	if lfn, fits, err := in.LFN("../other/tool.sh"); lfn != "tool.sh" || !fits || err != nil ||
		in.Globs[0] != "../other/tool.sh" {
		t.Error(lfn, fits, err, in.Globs)
	}
	files := filesOf("raw/1")
	files[0].Size = 2
	x.step(Arrived{Input: "raw", Files: files})
	x.arrive("script bin/run.py", "bin/run.py")
	x.arrive("script ../other/tool.sh", "tool.sh")
	for job, want := range map[string]string{
		"a/1/1": "[raw/1 bin/run.py] raw/1",
		"b":     "[raw/1 made.sh] raw/1",
		"c":     "[tool.sh] ",
		"d":     "[bin/run.py] ",
	} {
		j := x.jobs[job]
		if got := fmt.Sprint(j.Job.Reads, " ", j.Command.Environment["in"]); got != want {
			t.Errorf("%s reads %s, want %s", job, got, want)
		}
		if j.Command.Script == "" || j.Command.Environment["p"] != "1" || j.Command.Environment["q"] != "2" {
			t.Errorf("%s: %+v", job, j.Command)
		}
	}
}

// The digest is of all that decides what is executed.
func TestDigestIsOfInterpreterAndScript(t *testing.T) {
	seen := map[string]string{}
	for _, text := range []string{
		"command: 'echo x > s'", "command: 'echo x > s'\n    shell: sh", "command: 'echo x > s'\n    shell: bash",
		"script: a", "script: b", "script: a\n    shell: sh",
	} {
		x := newWorld(t, "workflow: w\ninputs: {a: {files: a}, b: {files: b}}\nsteps:\n  s:\n    writes: s\n    "+text+"\n",
			nil)
		x.arrive("a", "a")
		x.arrive("b", "b")
		digest := x.jobs["s"].Job.Digest
		if other := seen[digest]; other != "" {
			t.Errorf("%s and %s have the same digest", text, other)
		}
		seen[digest] = text
	}
}

// Text of commands belongs to the shell, also that of count.
func TestParametersAreNotPutIntoCount(t *testing.T) {
	x := newWorld(t, `
workflow: w
parameters: {column: 3}
inputs: {raw: {files: 'raw/{n}', as: 'raw/{n}'}}
steps:
  s: {each: {data: 'raw/{n}'}, split: {records: 1, count: 'cut -f${column} "$data" | wc -l'}, writes: 's/{n}.{chunk}',
	command: 'true $chunk'}
`, nil)
	x.arrive("raw", "raw/1")
	c := x.jobs["s/1/records"].Command
	if !strings.Contains(c.Shell, "cut -f${column}") || c.Environment["column"] != "3" ||
		c.Environment["data"] != "raw/1" {
		t.Errorf("%+v", c)
	}
}

// The file under log is an output that is not in $out.
func TestLogIsAnOutput(t *testing.T) {
	const frame = "workflow: w\ninputs: {raw: {files: 'raw/{n}', as: 'raw/{n}'}}\nsteps:\n  s: {each: 'raw/{n}', " +
		"writes: 's/{n}', log: %s, command: 'run $in > $out 2> \"$log\"'}\n"
	x := newWorld(t, fmt.Sprintf(frame, "logs/{n}.txt"), nil)
	x.arrive("raw", "raw/1")
	j := x.jobs["s/1"]
	if got := fmt.Sprint(j.Job.Writes, j.Command.Log, j.Command.Environment); got != "[{s/1 false 0 false true} "+
		"{logs/1.txt false 0 false true}]logs/1.txtmap[in:raw/1 log:logs/1.txt n:1 out:s/1]" {
		t.Error(got)
	}
	for log, want := range map[string]string{
		"logs/all.txt":  `two of its jobs would write "logs/all.txt"`,
		"'logs/{m}{n}'": `{m} in "logs/{m}{n}" has no value`,
		"'logs/{n}.*'":  "has a wildcard",
		"'s/{n}'":       "stands twice among what it writes",
		"[a, b]":        "must be a text, not a list",
	} {
		if _, err := workflow.Parse("t.yaml", []byte(fmt.Sprintf(frame, log))); err == nil || !strings.Contains(err.Error(),
			want) {
			t.Errorf("%s\ngot  %v\nwant %s", log, err, want)
		}
	}
	if _, err := workflow.Parse("t.yaml", []byte("parameters: {log: 1}\n"+fmt.Sprintf(frame, "'logs/{n}'"))); err == nil ||
		!strings.Contains(err.Error(), "has the name of a parameter") {
		t.Error(err)
	}
}

func commandFrame(text string) string {
	return "workflow: w\nparameters: {column: 1}\ninputs: {raw: {files: 'raw/{sample}', as: 'raw/{sample}'}, b: {files: " +
		"'b/{sample}', as: 'b/{sample}'}}\nsteps:\n  s:\n    each: {one: 'raw/{sample}', two: 'b/{sample}'}\n    writes: " +
		"s/{sample}\n    " + text + "\n"
}
