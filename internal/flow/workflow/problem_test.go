package workflow

import (
	"errors"
	"strings"
	"testing"

	"fairway/internal/yamlfile"
)

// frame puts steps behind one input, raw/{n}; the first step is in line 6.
func frame(steps string) string {
	return "workflow: w\nparameters: {p: 1}\ninputs:\n  raw: {files: 'raw/{n}.txt', as: 'raw/{n}'}\nsteps:\n" + steps
}

// problemCase is a workflow with what its author must be told.
type problemCase struct {
	name, text string
	want       []string // of each problem, in order: a part of its line
}

var problemCases = []problemCase{
	{"unknown keys", "worklow: w\nsteps:\n  a: {write: x, command: 'true', needs: {cpu: 1}, retry: {atempts: 2}}\n",
		[]string{
			`t.yaml:1:1: unknown key "worklow" in the workflow; did you mean "workflow"?`,
			`t.yaml:1:1: the workflow has no name; add the line`,
			`t.yaml:3:3: step "a" writes nothing; add writes`,
			`t.yaml:3:7: unknown key "write" in step "a"; did you mean "writes"?`,
			`t.yaml:3:42: unknown key "cpu" in step "a": needs; did you mean "cpus"?`,
			`t.yaml:3:59: unknown key "atempts" in step "a": retry; did you mean "attempts"?`,
		}},
	{"variables", frame("  a: {writes: '{n}.b', each: {f: 'raw/{n}'}, command: 'true', variables: [p, PATH, 1x, A, A=1, " +
		"in=2]}\n  b: {writes: c, command: 'true', variables: {A: 1}, env: [A]}\n"), []string{
		`the variable "p" has the name of a parameter`, `the variable "PATH" would hide`, `"1x" is no name for a variable`,
		`step "a": variables names "A" twice`, `the variable "in" would hide`,
		`step "b": variables must be a list, not a mapping; write a list: [NAME, NAME=value]`,
		`unknown key "env" in step "b"; write`,
	}},
	{"variables like files", frame("  a: {writes: '{n}.b', each: {f: 'raw/{n}'}, command: 'true', " +
		"variables: [f, n, A]}\n"), []string{
		`step "a": the variable "f" has the name of a file`, `step "a": the variable "n" has the name of a placeholder`,
	}},
	{"GPUs", "workflow: w\nsteps:\n  a: {writes: x, command: 'true', needs: {gpu: 1.5}}\n" +
		"  b: {writes: y, command: 'true', needs: {gpu: half}}\n" +
		"  c: {writes: z, command: 'true', needs: {gpu: {count: 0}}}\n" +
		"  d: {writes: u, command: 'true', needs: {gpu: 0.0001}}\n", []string{
		`t.yaml:3:48: step "a": needs: gpu: 1.5 GPUs are whole ones and a share, and a share is of one GPU; write a whole`,
		`step "b": needs: gpu: "half" is no number of GPUs; write a number such as 1, or 0.5 for a share of one`,
		`step "c": needs: gpu: no GPU is asked for; write a number above 0`,
		`0.0001 of a GPU is less than the smallest share; write 0.001 or more`,
	}},
	{"merge keys",
		"workflow: w\nsteps:\n  a: &a {writes: x, command: 'true'}\n  b: {<<: *a, writes: y, command: 'true'}\n", []string{
			`t.yaml:4:7: step "b" has a merge key, <<, which a workflow cannot have; repeat its keys here`,
		}},
	{"priorities", "workflow: w\nsteps:\n  a: {writes: x, command: 'true', priority: 2147483648}\n  b: {writes: y, " +
		"command: 'true', priority: -2147483649}\n  c: {writes: z, command: 'true', priority: 2147483647}\n", []string{
		`t.yaml:3:45: step "a": priority is 2147483648; write a whole number up to 2147483647`,
		`t.yaml:4:45: step "b": priority: "-2147483649" is no such number; write a whole number from -2147483648`,
	}},
	{"texts for keys", "workflow: w\ninputs: {i: {files: '/d/{x}', as: '{x}'}}\nsteps:\n" +
		"  a:\n    writes: x\n    command: 'true'\n    retry: 3\n    needs: 4GB\n" +
		"  b:\n    writes: y\n    command: 'true'\n    retry: 30s\n    needs: 2\n" +
		"  c:\n    each: '{x}'\n    split: 100\n    writes: z/{x}\n    command: 'true'\n    needs: 90m\n", []string{
		`t.yaml:7:12: step "a": retry must be a mapping, not "3"; write {attempts: 3}`,
		`t.yaml:8:12: step "a": needs must be a mapping, not "4GB"; write {memory: 4GB}`,
		`t.yaml:12:12: step "b": retry must be a mapping, not "30s"; write {backoff: 30s}`,
		`t.yaml:13:12: step "b": needs must be a mapping, not "2"; write {cpus: 2}`,
		`t.yaml:16:12: step "c": split must be a mapping, not "100"; write {of: lines, records: 100}`,
		`t.yaml:19:12: step "c": needs must be a mapping, not "90m"; write {time: 90m}`,
	}},
	{"no YAML", "workflow: [w\n", []string{"t.yaml:1:1: this is no YAML"}},
	{"where YAML ends", "workflow: w\nsteps:\n  a:\n    writes: x\n   command: y\n", []string{"t.yaml:5:1: this is no YAML: did not find expected key"}},
	{"tabs", "workflow: w\nsteps:\n\ta: x\n", []string{"t.yaml:3:1: this is no YAML"}},
	{"empty", "", []string{"the file is empty; start with"}},
	{"duplicates", frame("  a: {writes: x, command: 'true'}\n  a: {writes: y, command: 'true'}\n"), []string{`7:3: steps has "a" twice, first in line 6`}},
	{"sizes and times", frame("  a:\n    merge: raw/{n}\n    size: 5XB\n    max_latency: soon\n    writes: " +
		"'m/{merge}'\n    command: 'true'\n    needs: {memory: -1, time: 10 min, cpus: two}\n    retry: {attempts: 0, " +
		"backoff: 5, exit_codes: [0], memory_factor: 0.5}\n"), []string{
		`8:11: step "a": size: "5XB" is no size; write a number with B, KB`,
		`9:18: step "a": max_latency: "soon" is no duration; write a number with ms, s, m, h or d`,
		`needs: memory: "-1" is no size`, `needs: time: "10 min" is no duration`, `needs: cpus: "two" is no number of processors`,
		`retry: attempts: "0" is no such number; write a whole number from 1`, `retry: backoff: "5" is no duration`,
		`exit_codes: "0" is no exit code of a failure`, `memory_factor: "0.5" is no factor`,
	}},
	{"missing input", frame("  a: {each: 'row/{n}', writes: 'a/{n}', command: 'true'}\n"), []string{
		`6:13: missing input: step "a" takes "row/{n}", but no input and no step makes such a file; did you mean "raw/{n}"?`,
	}},
	{"path instead of name", "workflow: w\ninputs:\n  raw: {files: 'raw/{n}.txt'}\nsteps:\n  a: {each: 'raw/{n}.txt', " +
		"writes: 'a/{n}', command: 'true'}\n", []string{
		`5:13: missing input: step "a" takes "raw/{n}.txt", but no input and no step makes such a file; the input "raw" gives these files the names "{n}.txt": take that, or add as: "raw/{n}.txt" to the input`,
	}},
	{"undefined placeholder", frame("  a: {each: 'raw/{n}', reads: 'raw/{m}', writes: 'a/{n}', command: 'true'}\n"),
		[]string{
			`6:31: step "a": {m} in "raw/{m}" has no value`,
		}},
	{"undefined parameter", frame("  a: {each: 'raw/{n}', writes: '${q}/{n}', command: 'true'}\n"), []string{
		`6:32: step "a": writes uses the parameter "q", which does not exist; did you mean "p"?`,
	}},
	{"shared output", frame("  a: {each: 'raw/{n}', writes: 'a/it', command: 'true'}\n"), []string{
		`6:32: step "a": two of its jobs would write "a/it", since nothing in it tells {n} apart; put {n} into the name; if each job is meant to replace the file of the one before, list it under rewrites`,
	}},
	{"wildcard", frame("  a: {each: 'raw/*', writes: 'a/it', command: 'true'}\n"), []string{
		`two of its jobs would write "a/it", since a wildcard binds nothing; write a {placeholder} under each`,
	}},
	{"shared chunk", frame("  a: {each: 'raw/{n}', split: {records: 2, of: lines}, writes: 'a/{n}', command: 'true'}\n"), []string{`nothing in it tells {chunk} apart`}},
	{"shared merge", frame("  a: {merge: 'raw/{n}', files: 2, writes: 'a', command: 'true'}\n"), []string{`nothing in it tells {merge} apart`}},
	{"shared number", frame("  a: {times: 2, writes: a, command: 'true'}\n"), []string{`nothing in it tells {number} apart`}},
	{"times with data", frame("  a: {each: 'raw/{n}', times: 2, writes: 'a/{n}.{number}', command: 'true'}\n"), []string{`step "a" has times beside each or merge`}},
	{"times zero", frame("  a: {times: 0, writes: 'a/{number}', command: 'true'}\n"), []string{`times: "0" is no such number`}},
	{"too many times", frame("  a: {times: 1000001, writes: 'a/{number}', command: 'true'}\n"), []string{`times is 1000001, the limit is 1000000`}},
	{"number without times", frame("  a: {writes: 'a/{number}', command: 'true'}\n"), []string{`{number} in "a/{number}" has a value only in steps with`}},
	{"two writers", frame("  a: {each: 'raw/{n}', writes: 'a/{n}', command: 'true'}\n  b: {each: 'raw/{n}', writes: " +
		"'a/{n}', command: 'true'}\n"), []string{
		`7:32: step "a" and step "b" both write "a/{n}", and nothing orders them; choose another name in one of them; if one is meant to replace`,
	}},
	{"two writers by pattern", frame("  a: {each: 'raw/{n}', writes: 'a/{n}', command: 'true'}\n  b: {merge: 'raw/{n}', " +
		"writes: 'a/all', command: 'true'}\n"), []string{
		`both write one file, since "a/{n}" and "a/all" can be the same name`,
	}},
	{"input overwritten", frame("  a: {each: 'raw/{n}', writes: 'raw/{n}', command: 'true'}\n"), []string{
		`step "a" writes "raw/{n}", and a file of the input "raw" can have that name by "raw/{n}": whether`,
	}},
	{"input without a folder", "workflow: w\ninputs: {d: {files: 'in/{x}.txt'}}\nsteps:\n  a: {merge: '{x}.txt', " +
		"writes: all.txt, command: 'true'}\n", []string{
		`a file of the input "d" can have that name by "{x}.txt": whether a reader gets what was there before is left open; ` +
			"choose another name, or give the input a folder of its own with `as: d/{x}.txt`;",
	}},
	{"reader and rewriter", frame("  a: {each: 'raw/{n}', rewrites: c, command: 'true'}\n  b: {reads: c, writes: b, " +
		"command: 'true'}\n  d: {each: 'raw/{n}', reads: c, writes: 'd/{n}', command: 'true'}\n"), []string{
		`7:14: step "b" uses "c", which other steps before and after it use for each of their data: which version it means is left open`,
	}},
	{"writer and rewriter", frame("  a: {each: 'raw/{n}', rewrites: c, command: 'true'}\n  b: {writes: c, command: " +
		"'true'}\n"), []string{
		`7:15: step "b" writes "c", which step "a" rewrites: their order is left open`,
	}},
	{"jobs from a rewritten file", frame("  a: {each: 'raw/{n}', rewrites: c, command: 'true'}\n  b: {each: c, writes: " +
		"b, command: 'true'}\n"), []string{
		`a rewritten file cannot create jobs`,
	}},
	{"circle", frame("  a: {each: 'x/{n}', writes: 'y/{n}', command: 'true'}\n  b: {each: 'y/{n}', writes: 'x/{n}', " +
		"command: 'true'}\n"), []string{
		`6:1: steps feed each other in a circle: a → b → a`,
	}},
	{"a folder of an output", frame("  a: {each: 'raw/{n}', writes: ['a/{n}', 'a/{n}/b.txt'], command: 'true'}\n"),
		[]string{
			`step "a" makes a file "a/{n}", and step "a" one in a folder of that name, "a/{n}/b.txt"`,
		}},
	{"a folder of another step's output", frame("  a: {writes: a, command: 'true'}\n  b: {each: 'raw/{n}', writes: " +
		"'a/{n}/x', command: 'true'}\n"), []string{
		`7:32: step "a" makes a file "a", and step "b" one in a folder of that name, "a/{n}/x"`,
	}},
	{"a folder of an input", frame("  a: {each: 'raw/{n}', writes: 'raw/{n}/it', command: 'true'}\n"), []string{
		`the input "raw" makes a file "raw/{n}", and step "a" one in a folder of that name, "raw/{n}/it"`,
	}},
	{"a folder of a rewritten file", frame("  a: {each: 'raw/{n}', rewrites: c, writes: 'c/{n}', command: 'true'}\n"),
		[]string{
			`makes a file "c", and step "a" one in a folder of that name, "c/{n}"`,
		}},
	{"a placeholder that means something else", frame("  a: {each: 'raw/{n}', writes: 'a/{n}_{m}', command: 'true'}\n  " +
		"b: {each: 'a/{m}_{n}', writes: 'b/{n}/{m}', command: 'true'}\n"), []string{
		`step "b" takes files of step "a": "a/{m}_{n}" fits "a/{n}_{m}" as text, but only where {m}, {n} is not what it is there; take "a/{n}_{m}"`,
	}},
	{"two readings of every name", frame("  a: {each: 'raw/{n}', writes: 'a/{n}_{m}_{k}', command: 'true'}\n  b: {each: " +
		"'a/{x}_{y}', writes: 'b/{x}/{y}', command: 'true'}\n"), []string{
		`"a/{x}_{y}" fits "a/{n}_{m}_{k}" in two ways, as x={n}, y={m}_{k} and as x={n}_{m}, y={k}; take "a/{n}_{m}_{k}"`,
	}},
	{"placeholders that touch", "workflow: w\ninputs:\n  a: {files: 'x/{n}{m}'}\nsteps:\n  s: {each: '{n}{m}', writes: " +
		"'s/{n}/{m}', command: 'true'}\n", []string{
		`nothing in "x/{n}{m}" tells where {n} ends and {m} begins`,
	}},
	{"chosen placeholders that touch", frame("  s: {each: 'raw/{n}', writes: 's/{n}{k}*', command: 'true'}\n"), []string{
		`nothing in "s/{n}{k}*" tells where {k} ends and * begins`,
	}},
	{"a second document", frame("  a: {each: 'raw/{n}', writes: 'a/{n}', command: x}\n") + "---\nworkflow: v\n", []string{
		`7:1: a second YAML document begins here`,
	}},
	{"merged away", frame("  a: {merge: 'raw/{n}', writes: 'a/{n}', command: 'true'}\n"), []string{
		`{n} in "a/{n}" differs between the files of one merge`,
	}},
	{"by", frame("  a: {merge: 'raw/{n}', by: m, writes: 'a/{m}', command: 'true'}\n"), []string{`by names "m", which "raw/{n}" does not bind`}},
	{"chosen by content", frame("  a: {each: 'raw/{n}', writes: 'a/{n}.{part}', command: 'true'}\n  b: {reads: a/1.x, " +
		"writes: b, command: 'true'}\n"), []string{
		`step "b" reads "a/1.x", but step "a" chooses the names of these files by content; list`,
	}},
	{"names", frame("  'a b': {each: 'raw/{n}', writes: {PATH: 'a/{n}', p: 'b/{n}'}, command: 'true'}\n"), []string{
		`"a b" is no name for a step`, `the name "PATH" would hide a variable`, `the name "p" has the name of a parameter`,
	}},
	{"legal names", frame("  a: {each: 'raw/{n}', writes: ['/a/{n}', '../{n}', 'a//{n}', 'a/{n'], command: 'true'}\n"),
		[]string{
			`it starts with '/'`, `it has the part ".."`, `it has the part ""`, `has a '{' that starts no placeholder`,
		}},
	{"split", frame("  a: {merge: 'raw/{n}', split: {of: paragraphs}, writes: a, command: 'true'}\n"), []string{
		`split needs the one file`, `does not say how many records`, `"paragraphs" is no kind of record`,
	}},
	{"inputs", "workflow: w\ninputs:\n  a: {files: x, watch: y}\n  b: {files: x, close: manual}\n  c: {watch: 'x/{n}', " +
		"as: '{m}', close: at noon}\nsteps:\n  s: {writes: s, command: 'true'}\n", []string{
		`3:3: the input "a" must say where its files are, once`, `close is for inputs that stay open`, "`as` uses {m}", `"at noon" is no rule`,
	}},
	{"commands", frame("  a: {each: 'raw/{n}', writes: 'a/{n}'}\n  b: {each: 'raw/{n}', writes: 'b/{n}', command: ''}\n"),
		[]string{
			`step "a" has no command`, `the command must be a text`,
		}},
	{"cached and published", frame("  a: {each: 'raw/{n}', writes: 'a/{n}', command: 'true', storage: cache, publish: " +
		"true}\n"), []string{
		`what stays in caches cannot be published`,
	}},
	{"temporary and published", frame("  a: {each: 'raw/{n}', writes: 'a/{n}', command: 'true', storage: temporary, " +
		"publish: true}\n"), []string{
		`what is removed when it has been read cannot be published`,
	}},
	{"cached by default", "workflow: w\nstorage: cache\nsteps:\n  a: {writes: a, command: 'true'}\n", []string{
		`"cache" is no storage for all steps; write element or temporary`,
	}},
	{"tasks that begin together", "workflow: w\nsteps:\n" +
		"  a: {tasks: 2, writes: a, command: 'true', storage: cache}\n" +
		"  b: {nodes: 2, once: true, writes: b, command: 'true', container: i.sif}\n" +
		"  c: {tasks: 2, writes: c, command: 'true', needs: {gpu: 0.5}}\n" +
		"  d: {tasks: 2, writes: d, command: 'true', worker: python json}\n" +
		"  e: {tasks: 1, writes: e, command: 'true', storage: cache}\n" +
		"  f: {tasks: 2, writes: f, command: 'true', storage: temporary, needs: {gpu: 1}}\n" +
		"  g: {tasks: [2], writes: g, command: 'true'}\n", []string{
		`step "a" has 2 tasks, and what it writes would stay in caches only; write storage: temporary`,
		`step "b" runs its command once, and what that starts on other nodes would run in no container; run`,
		`step "c" has 2 tasks that share a GPU, and those that begin together need whole ones; write gpu: 1`,
		`step "d" has a worker, which cannot begin jobs of 2 tasks; remove it`,
		`step "g": tasks must be`,
	}},
	{"checkpoints", "workflow: w\nsteps:\n  a: {writes: [state/a, b], checkpoint: state/, command: 'true'}\n", []string{
		`step "a": state/a lies in its checkpoint state/; give the state a folder of its own`,
	}},
	{"keys of merges", frame("  a: {each: 'raw/{n}', by: n, writes: 'a/{n}', command: 'true'}\n" +
		"  b: {each: 'raw/{n}', files: 2, writes: 'b/{n}', command: 'true'}\n"), []string{
		`by is for steps with merge; add merge: PATTERN, or remove it`, `files is for steps with merge; add`,
	}},
	{"limits and exit codes", "workflow: w\nlimits: {licence: 1, seat: 0}\nsteps:\n" +
		"  a: {writes: a, command: 'true', needs: {licence: 1}, retry: {exit_codes: [1, 255]}}\n" +
		"  b: {writes: b, command: 'true', needs: {licence: 2}, retry: {exit_codes: [256]}}\n", []string{
		`limits: seat: "0" is no such number`, `exit_codes: "256" is no exit code`,
	}},
	{"sandboxes and braces", "workflow: w\nsteps:\n  a: {writes: 'a}', command: 'true'}\n" +
		"  b: {writes: b, sandbox: closed, command: 'true'}\n  c: {writes: c, sandbox: open, command: 'true'}\n", []string{
		`"a}" has a '}' without a '{'`, `"closed" is no sandbox; write strict or open`,
	}},
	{"one name of two inputs", "workflow: w\ninputs:\n  a: {files: /d/x}\n  b: {files: /e/x}\nsteps:\n" +
		"  s: {reads: x, writes: s, command: 'true'}\n", []string{
		`the input "a" and the input "b" both provide "x"; give one of them another name with`,
	}},
	{"values that are cut where nothing stands", frame("  a: {each: 'raw/{n}', writes: 'a/{n}', command: 'true'}\n" +
		"  b: {each: 'a/{k}{l}.x', writes: 'b/{k}/{l}', command: 'true'}\n"), []string{
		`nothing in "a/{k}{l}.x" tells where {k} ends and {l} begins; put text between them`,
	}},
}

func TestProblems(t *testing.T) {
	for _, c := range problemCases {
		t.Run(c.name, func(t *testing.T) {
			_, err := Parse("t.yaml", []byte(c.text))
			var problems yamlfile.Problems
			if !errors.As(err, &problems) {
				t.Fatalf("got %v, want problems", err)
			}
			if len(problems) != len(c.want) {
				t.Fatalf("got %d problems, want %d:\n%v", len(problems), len(c.want), err)
			}
			for i, want := range c.want {
				if !strings.Contains(problems[i].String(), want) {
					t.Errorf("got  %s\nwant %s", problems[i], want)
				}
				if problems[i].Line == 0 || problems[i].Instead == "" {
					t.Errorf("no line or no advice: %+v", problems[i])
				}
			}
		})
	}
}

// Every example is a right workflow.
func TestExamplesParse(t *testing.T) {
	for file, data := range texts(t) {
		if _, err := Parse(file, data); err != nil {
			t.Error(err)
		}
	}
}
