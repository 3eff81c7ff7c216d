package flow

import (
	"fmt"
	"slices"
	"strings"

	"fairway/internal/logical"
	"fairway/internal/shelltext"
	"fairway/internal/taskqueue"
)

// commandSource is what a command is made from.
type commandSource struct {
	w      *Workflow
	step   *step
	values binding
	in     []string
	reads  []string                    // in the order of the step
	writes []string                    // writes, then rewrites
	log    string                      // one of writes, or empty
	access map[string]taskqueue.Access // of what is read; nil: all is linked
}

// maxListBytes bounds the variables `in` and `out`, since the kernel refuses
// long ones. A shell command whose inputs do not fit reads `in` from the list
// that the pilot keeps in a file; then the names are separated by line breaks.
// `out` is then missing; $FAIRWAY_OUTPUTS_FILE names a file with the outputs.
const maxListBytes = 100_000

func (c *commandSource) command(text string) Command {
	interpreter := c.step.runs.interpreter
	made := Command{
		Environment: c.environment(text), Variables: c.step.takenVariables(), Log: c.log, Strict: c.step.needs.strict,
		Worker: c.step.runs.worker,
	}
	if c.access != nil {
		made.InputVariables = c.inputVariables()
	}
	if c.step.runs.worker != "" {
		made.Decisive = c.decisive(made.Environment)
	}
	if c.longURLs() {
		delete(made.Environment, "in")
	}
	if argv := plainWords(text); argv != nil && isShell(interpreter) {
		made.Argv = argv
		return made
	}
	made.Shell, made.Script, made.Interpreter = text, c.step.runs.script, interpreter
	if _, ok := made.Environment["in"]; !ok && isShell(interpreter) && shelltext.Interpreter(text) == nil {
		made.Shell = fmt.Sprintf("in=$(head -n %d \"$FAIRWAY_INPUTS_FILE\");%s", len(c.in), text)
	}
	return made
}

func (c *commandSource) environment(text string) map[string]string {
	env := map[string]string{}
	for _, v := range c.step.runs.variables {
		if !v.taken {
			env[v.name] = v.value
		}
	}
	for _, p := range c.w.Parameters {
		if c.step.runs.script != "" || mentions(text, p.Name) {
			env[p.Name] = p.Value
		}
	}
	for name, value := range c.values {
		if placeholderName.MatchString(name) {
			env[name] = value
		}
	}
	listed(env, "in", c.in)
	listed(env, "out", slices.DeleteFunc(slices.Clone(c.writes), func(lfn string) bool {
		return c.log != "" && lfn == c.log
	}))
	for i, name := range c.step.data.eachNames {
		if name != "" {
			env[name] = logical.Path(c.in[i])
		}
	}
	for i, e := range c.step.reads {
		if e.name != "" {
			env[e.name] = logical.Path(c.reads[i])
		}
	}
	for i, e := range c.step.outputs() {
		if e.name != "" && i < len(c.writes) {
			env[e.name] = logical.Path(c.writes[i])
		}
	}
	return env
}

// decisive are the names of the variables that all jobs of the step have alike, in order.
func (c *commandSource) decisive(given map[string]string) (names []string) {
	for _, v := range c.step.runs.variables {
		names = append(names, v.name)
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

// longURLs reports whether `in` may be too long with URLs in it.
func (c *commandSource) longURLs() bool {
	streamed := 0
	for _, lfn := range c.in {
		if c.access[lfn] == taskqueue.AccessStream {
			streamed++
		}
	}
	return streamed*urlBytes > maxListBytes
}

func (c *commandSource) inputVariables() []InputVariable {
	var all []InputVariable
	add := func(name string, lfns ...string) {
		if name != "" && slices.ContainsFunc(lfns, func(lfn string) bool { return c.access[lfn] == taskqueue.AccessStream }) {
			all = append(all, InputVariable{name, lfns})
		}
	}
	if !c.longURLs() {
		add("in", c.in...)
	}
	for i, name := range c.step.data.eachNames {
		add(name, c.in[i])
	}
	for i, e := range c.step.reads {
		add(e.name, c.reads[i])
	}
	return all
}

// listed sets a variable to the paths of files, if that is not too long.
func listed(env map[string]string, name string, files []string) {
	paths := make([]string, len(files))
	for i, lfn := range files {
		paths[i] = logical.Path(lfn)
	}
	if joined := strings.Join(paths, " "); len(joined) <= maxListBytes {
		env[name] = joined
	}
}

// mentions reports whether a word occurs in a command. A parameter that a
// command does not name is not given to it, so that another value does not
// run it again.
func mentions(text, word string) bool {
	for rest := text; ; {
		at := strings.Index(rest, word)
		if at < 0 {
			return false
		}
		end := at + len(word)
		if (at == 0 || !isWord(rest[at-1])) && (end == len(rest) || !isWord(rest[end])) {
			return true
		}
		rest = rest[at+1:]
	}
}

func isWord(c byte) bool {
	return c == '_' || isDigit(c) || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// Words that mean something else to a shell than the program of that name, if there is one.
var shellWords = strings.Fields(`. : [ alias bg bind break builtin caller case cd command compgen complete compopt continue
	coproc declare dirs disown do done echo elif else enable esac eval exec exit export fc fg fi for function getopts hash
	help history if in jobs kill let local logout mapfile popd printf pushd pwd read readarray readonly return select set
	shift shopt source suspend test then time times trap type typeset ulimit umask unalias unset until wait while`)

// plainWords splits a command that needs no shell, or gives nil.
func plainWords(text string) []string {
	text = strings.TrimSpace(text)
	for i := range len(text) {
		if c := text[i]; !isWord(c) && strings.IndexByte(" _@%+=:,./-", c) < 0 {
			return nil
		}
	}
	words := strings.Fields(text)
	if len(words) == 0 || strings.Contains(words[0], "=") || slices.Contains(shellWords, words[0]) {
		return nil
	}
	return words
}

// Commands that count get the file as their input, since awk takes a name with
// '=' for an assignment, and some print large numbers with an exponent.
var countCommands = map[recordUnit]string{
	recordLines: uncompressed + `awk 'END { printf "%.0f\n", NR }' < "$in"`,
	recordFastq: uncompressed + `awk 'END { if (NR % 4) exit 1; printf "%.0f\n", NR / 4 }' < "$in" || { echo "$in has a number of lines that is no multiple of four: that is no whole FASTQ file" >&2; exit 1; }`,
	recordBytes: `wc -c < "$in"`,
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
