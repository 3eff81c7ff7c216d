package flow

import (
	"fmt"
	"slices"

	"fairway/internal/flow/pattern"
	"fairway/internal/flow/workflow"
	"fairway/internal/logical"
	"fairway/internal/shelltext"
	"fairway/internal/taskqueue"
)

type commandSource struct {
	w      *workflow.Workflow
	step   *workflow.Step
	values pattern.Binding
	in     []string
	reads  []string                    // in the order of the step
	writes []string                    // writes, then rewrites
	log    string                      // one of writes, or empty
	access map[string]taskqueue.Access // of what is read; nil: all is linked
}

func (c *commandSource) command(text string) workflow.Command {
	interpreter := c.step.Runs.Interpreter
	made := workflow.Command{
		Environment: c.environment(text), Variables: c.step.TakenVariables(), Log: c.log, Strict: c.step.Needs.Strict,
		Worker: c.step.Runs.Worker,
	}
	if c.access != nil {
		made.InputVariables = c.inputVariables()
	}
	if c.step.Runs.Worker != "" {
		made.Decisive = c.decisive(made.Environment)
	}
	if c.longURLs() {
		delete(made.Environment, "in")
	}
	if argv := workflow.PlainWords(text); argv != nil && workflow.IsShell(interpreter) {
		made.Argv = argv
		return made
	}
	made.Shell, made.Script, made.Interpreter = text, c.step.Runs.Script, interpreter
	if _, ok := made.Environment["in"]; !ok && workflow.IsShell(interpreter) && shelltext.Interpreter(text) == nil {
		made.Shell = fmt.Sprintf("in=$(head -n %d \"$FAIRWAY_INPUTS_FILE\");%s", len(c.in), text)
	}
	return made
}

func (c *commandSource) environment(text string) map[string]string {
	env := map[string]string{}
	for _, v := range c.step.Runs.Variables {
		if !v.Taken {
			env[v.Name] = v.Value
		}
	}
	for _, p := range c.w.Parameters {
		if c.step.Runs.Script != "" || workflow.Mentions(text, p.Name) {
			env[p.Name] = p.Value
		}
	}
	for name, value := range c.values {
		if pattern.PlaceholderName.MatchString(name) {
			env[name] = value
		}
	}
	workflow.Listed(env, "in", c.in)
	workflow.Listed(env, "out", slices.DeleteFunc(slices.Clone(c.writes), func(lfn string) bool {
		return c.log != "" && lfn == c.log
	}))
	for i, name := range c.step.Data.EachNames {
		if name != "" {
			env[name] = logical.Path(c.in[i])
		}
	}
	for i, e := range c.step.Reads {
		if e.Name != "" {
			env[e.Name] = logical.Path(c.reads[i])
		}
	}
	for i, e := range c.step.Outputs() {
		if e.Name != "" && i < len(c.writes) {
			env[e.Name] = logical.Path(c.writes[i])
		}
	}
	return env
}

// decisive are the names of the variables that all jobs of the step have alike, in order.
func (c *commandSource) decisive(given map[string]string) (names []string) {
	for _, v := range c.step.Runs.Variables {
		names = append(names, v.Name)
	}
	for _, p := range c.w.Parameters {
		if _, ok := given[p.Name]; ok {
			names = append(names, p.Name)
		}
	}
	slices.Sort(names)
	return names
}

// urlBytes is what a URL in the variable `in` is taken to need.
const urlBytes = 1024

func (c *commandSource) longURLs() bool {
	streamed := 0
	for _, lfn := range c.in {
		if c.access[lfn] == taskqueue.AccessStream {
			streamed++
		}
	}
	return streamed*urlBytes > workflow.MaxListBytes
}

func (c *commandSource) inputVariables() []workflow.InputVariable {
	var all []workflow.InputVariable
	add := func(name string, lfns ...string) {
		if name != "" && slices.ContainsFunc(lfns, func(lfn string) bool { return c.access[lfn] == taskqueue.AccessStream }) {
			all = append(all, workflow.InputVariable{Name: name, LFNs: lfns})
		}
	}
	if !c.longURLs() {
		add("in", c.in...)
	}
	for i, name := range c.step.Data.EachNames {
		add(name, c.in[i])
	}
	for i, e := range c.step.Reads {
		add(e.Name, c.reads[i])
	}
	return all
}

// Commands that count get the file as their input, since awk takes a name with
// '=' for an assignment, and some print large numbers with an exponent.
var countCommands = map[workflow.RecordUnit]string{
	workflow.RecordLines: uncompressed + `awk 'END { printf "%.0f\n", NR }' < "$in"`,
	workflow.RecordFastq: uncompressed + `awk 'END { if (NR % 4) exit 1; printf "%.0f\n", NR / 4 }' < "$in" || { echo "$in has a number of lines that is no multiple of four: that is no whole FASTQ file" >&2; exit 1; }`,
	workflow.RecordBytes: `wc -c < "$in"`,
}

// uncompressed fails for files of gzip, bzip2, xz and zstd, known by their first
// bytes. Their line breaks are there by chance, and would be counted.
const uncompressed = `case $(od -An -tx1 -N6 < "$in") in
(' 1f 8b'* | ' 42 5a 68 3'?' 31 41' | ' fd 37 7a 58 5a 00' | ' 28 b5 2f fd'*)
	echo "$in is compressed, and its lines cannot be counted: split what a step before decompresses, or give count: COMMAND" >&2
	exit 1 ;;
esac
`

// countScript takes the one word that a command prints as the name of an empty
// file. Shells read 0020 as another number, and awk 2^63 as a third one: it
// stays text until [quantity.Whole] reads it.
const countScript = `n=$(%s
)
set -f -- $n
case $#/${1-} in
1/*[!0-9]* | 1/ | [!1]/* | ??*/*)
	printf 'the number of records must be one whole number, not "%%s"\n' "$n" >&2
	exit 1 ;;
esac
mkdir -p "$out"
: > "$out/$1"
`
