package flow

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// What a command can never have is told before it runs, with its place.
func TestUnknownVariablesOfCommandsAreTold(t *testing.T) {
	for text, want := range map[string]string{
		"command: cat $inn > \"$out\"":                                             `9:18: step "s": the command uses the variable "inn", which nothing sets; did you mean "in"?`,
		"command: \"cat $in $in $inn > $out\"":                                     `9:27: step "s": the command uses the variable "inn"`,
		"command: |\n      cat \"$in\" |\n      sort -k $collumn > \"$out\"":       `11:15: step "s": the command uses the variable "collumn", which nothing sets; did you mean "column"?`,
		"command: >-\n      cat \"$in\"\n      $x > \"$out\"":                      `11:7: step "s": the command uses the variable "x", which nothing sets; set it, or`,
		"command: run -t $threads $in > $out":                                      `did you mean "FAIRWAY_CPUS"?`,
		"command: cp $in $output":                                                  `did you mean "out"?`,
		"command: cat $FAIRWAY_INPUT_FILE":                                         `did you mean "FAIRWAY_INPUTS_FILE"?`,
		"command: awk \"{ print $1 }\" $in > $out":                                 `9:27: step "s": the command uses $1, but it has no arguments; put a program`,
		"command: sort {in} > $out":                                                `9:19: step "s": {in} in the command stays as it is, since a command has its values as variables; write "$in"`,
		"command: sort {input} > {output}":                                         `write "$in"`,
		"command: echo {sample} > $out":                                            `write "$sample"`,
		"command: echo {wildcards.sample} {params.column} > $out":                  `write "$sample"`,
		"split: {records: 1, count: 'wc -l < $inn'}\n    command: \"true $chunk\"": `9:41: step "s": the count uses the variable "inn"`,
		"shell: sh\n    command: cat $inn > $out":                                  `"inn"`,
	} {
		out := "s/{sample}"
		if strings.Contains(text, "split") {
			out += ".{chunk}"
		}
		_, err := Parse("t.yaml", []byte("workflow: w\nparameters:\n  column: 1\ninputs: {raw: {files: 'raw/{sample}', as: "+
			"'raw/{sample}'}}\nsteps:\n  s:\n    each: raw/{sample}\n    writes: "+out+"\n    "+text+"\n"))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\ngot  %v\nwant %s", text, err, want)
		}
	}
}

// What a command sets itself, or may find in its environment, is no error; nor
// is what no shell reads.
func TestVariablesThatMayBeThereAreNotTold(t *testing.T) {
	for _, text := range []string{
		`x=1; echo $x > $out`, `echo $HOME $OMP_NUM_THREADS $https_proxy > $out`, `echo ${x:-} > $out`, `for f in $in; do cat $f; done > $out`,
		`awk '{ print $1, $NF, x }' $in > $out`, `. ./settings; echo $x > $out`, `echo $sample $column $one $two $FAIRWAY_CPUS > $out`, `echo "no end $x`,
	} {
		if _, err := Parse("t.yaml", []byte(commandFrame("command: "+yamlText(text)))); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, text := range []string{
		"shell: python3\n    command: print(f'{sample} $x')", "shell: /bin/bash\n    command: echo $x",
		"command: |\n      #!/usr/bin/perl\n      print $x;",
	} {
		if _, err := Parse("t.yaml", []byte(commandFrame(text))); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func yamlText(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

func commandFrame(text string) string {
	return "workflow: w\nparameters: {column: 1}\ninputs: {raw: {files: 'raw/{sample}', as: 'raw/{sample}'}, b: {files: " +
		"'b/{sample}', as: 'b/{sample}'}}\nsteps:\n  s:\n    each: {one: 'raw/{sample}', two: 'b/{sample}'}\n    writes: " +
		"s/{sample}\n    " + text + "\n"
}

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
		_, err := Parse("t.yaml", []byte(strings.Replace(commandFrame("command: 'true'"), "each: {one: 'raw/{sample}', "+
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
		_, err := Parse("t.yaml", []byte("workflow: w\nsteps:\n  s:\n    writes: s\n    "+text+"\n"))
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
  s: {each: {data: 'raw/{n}'}, split: {records: 1, count: 'cut -f${column} "$data" | wc -l'}, writes: 's/{n}.{chunk}', command: 'true $chunk'}
`, nil)
	x.arrive("raw", "raw/1")
	c := x.jobs["s/1/records"].Command
	if !strings.Contains(c.Shell, "cut -f${column}") || c.Environment["column"] != "3" ||
		c.Environment["data"] != "raw/1" {
		t.Errorf("%+v", c)
	}
}

// Names that mean something to the loader, to the shell or to Fairway are none
// for values.
func TestReservedVariables(t *testing.T) {
	for _, name := range []string{
		"LD_AUDIT", "LD_PRELOAD", "LD_DEBUG", "BASH_ENV", "BASHOPTS", "SHELLOPTS", "UID", "RANDOM", "SECONDS", "PS4", "_",
		"GLIBC_TUNABLES", "FAIRWAY_X", "PATH", "in", "CDPATH", "OPTIND",
	} {
		_,
			err := Parse("t.yaml", []byte("workflow: w\nparameters: {"+name+": 1}\nsteps: {s: {writes: s, command: 'true'}}\n"))
		if err == nil || !strings.Contains(err.Error(), "would hide") {
			t.Errorf("%s: %v", name, err)
		}
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
		if _, err := Parse("t.yaml", []byte(fmt.Sprintf(frame, log))); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\ngot  %v\nwant %s", log, err, want)
		}
	}
	if _, err := Parse("t.yaml", []byte("parameters: {log: 1}\n"+fmt.Sprintf(frame, "'logs/{n}'"))); err == nil ||
		!strings.Contains(err.Error(), "has the name of a parameter") {
		t.Error(err)
	}
}
