package flow

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/zeebo/blake3"
	"go.yaml.in/yaml/v3"

	"fairway/internal/yamlfile"
)

// The keys of a workflow file, by the place where they may stand. The JSON
// Schema lists the same.
var (
	workflowKeys = []string{"workflow", "about", "parameters", "shell", "storage", "open", "inputs", "steps"}
	inputKeys    = []string{"files", "watch", "url_list", "catalog", "match", "as", "close", "access", "may_be_empty"}
	catalogKeys  = []string{"file", "protocol", "site", "volume"}
	stepKeys     = []string{
		"each", "split", "times", "merge", "files", "size", "max_latency", "by", "reads", "writes", "rewrites",
		"needs", "tools", "retry", "priority", "site", "wait_for_data", "access", "log", "storage", "publish", "may_be_empty", "shell", "command", "script",
	}
	splitKeys = []string{"records", "of", "count"}
	needsKeys = []string{"cpus", "memory", "disk", "time"} // and whatever a site names
	retryKeys = []string{"attempts", "backoff", "exit_codes", "memory_factor"}
)

// maxFileSize bounds a workflow file; a larger one is refused.
const maxFileSize = 16 << 20

// Parse reads a workflow file with the defaults of its parameters. file is
// its name for messages. The error is [yamlfile.Problems].
func Parse(file string, data []byte) (*Workflow, error) {
	return parse(file, data, nil, nil)
}

// With gives the workflow with other values for some parameters. All that
// have no default must be given.
func (w *Workflow) With(parameters map[string]string) (*Workflow, error) {
	if w.fixed != nil {
		if len(parameters) > 0 {
			return nil, errors.New("a trace has no parameters")
		}
		return w, nil
	}
	var names []string
	var wrong error
	for _, p := range w.Parameters {
		names = append(names, p.Name)
		if _, ok := parameters[p.Name]; p.Required && !ok {
			wrong = errors.Join(wrong, fmt.Errorf("%s: the parameter %q has no default; give it with --set %s=VALUE", w.File, p.Name, p.Name))
		}
	}
	for _, name := range sortedKeys(parameters) {
		if !slices.Contains(names, name) {
			wrong = errors.Join(wrong, fmt.Errorf("%s: there is no parameter %q; %s", w.File, name, yamlfile.DidYouMean(name, names)))
		}
	}
	if wrong != nil {
		return nil, wrong
	}
	return parse(w.File, w.data, parameters, w.part)
}

func parse(file string, data []byte, set map[string]string, only *part) (*Workflow, error) {
	p := &parser{
		Reader: yamlfile.Reader{
			File: file, Kind: "workflow", Limit: maxFileSize, Oversize: "generate data as files, not as text of the workflow",
			Begin: "start with `workflow: NAME` and `steps:`",
		},
		data: data, values: map[string]string{},
	}
	w := &Workflow{File: file, data: data, values: p.values, set: set, part: only}
	if root := p.root(data); root != nil {
		p.workflow(w, root, set)
	}
	if only != nil {
		only.restrict(w)
	}
	if len(p.Problems) == 0 {
		p.check(w)
	}
	if err := p.Err(); err != nil {
		return nil, err
	}
	if w.Open() { // what was submitted is of the workflow whatever else its file says
		data, p.values = []byte("open\x00"+w.Name), nil
	}
	w.digest = workflowDigest(data, p.values, only)
	return w, nil
}

func workflowDigest(data []byte, values map[string]string, only *part) string {
	h := blake3.New()
	_, _ = h.Write(data)
	for _, name := range sortedKeys(values) {
		_, _ = fmt.Fprintf(h, "\x00%s\x00%s", name, values[name])
	}
	if only != nil {
		_, _ = fmt.Fprintf(h, "\x00until\x00%s", only.target)
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:16])
}

// root reads the file, with the braces of placeholders as they were written.
func (p *parser) root(data []byte) *yaml.Node {
	if hasHidden(string(data)) {
		p.FailAt(1, 1, "remove them", "the file has characters of the private use area (U+E000 to U+E005)")
		return nil
	}
	root := p.Root(hidePlaceholders(data))
	if root == nil {
		for i := range p.Problems {
			p.Problems[i].What = showPlaceholders.Replace(p.Problems[i].What)
		}
		return nil
	}
	unhide(root)
	return root
}

var wordName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]*$`)

func (p *parser) workflow(w *Workflow, root *yaml.Node, set map[string]string) {
	top := p.Known(root, "the workflow", workflowKeys, workflowHabits)
	if n := top["parameters"]; n != nil {
		p.parameters(w, n, set)
	}
	if n := top["workflow"]; n != nil {
		w.Name, _ = p.text(n, "workflow")
		if !wordName.MatchString(w.Name) {
			p.Fail(n, "use letters, digits, '_', '-' and '.'", "%q is no name for a workflow", w.Name)
		}
	} else {
		p.Fail(root, "add the line `workflow: NAME`", "the workflow has no name")
	}
	if n := top["about"]; n != nil {
		w.About, _ = p.text(n, "about")
	}
	if n := top["shell"]; n != nil {
		p.shell = p.interpreter(n, "shell")
	}
	if n := top["storage"]; n != nil {
		p.temporary = scalar(p, n, "storage", func(text string) (bool, error) {
			if text != "element" && text != "temporary" {
				return false, fmt.Errorf("%q is no storage for all steps; write element or temporary, or storage: cache in a step", text)
			}
			return text == "temporary", nil
		})
	}
	if n := top["inputs"]; n != nil {
		p.inputs(w, n)
	}
	switch open, steps := top["open"], top["steps"]; {
	case open != nil && scalar(p, open, "open", parseFlag):
		p.open(w, top)
	case steps != nil:
		p.steps(w, steps)
		p.scriptInputs(w)
	default:
		p.Fail(root, "add `steps:` with at least one step, or `open: true` for jobs that programs submit", "the workflow has no steps")
	}
}

// open declares the input by which jobs come that programs submit.
func (p *parser) open(w *Workflow, top map[string]*yaml.Node) {
	for _, key := range []string{"inputs", "steps"} {
		if n := top[key]; n != nil {
			p.Fail(n, "leave it out, or leave out `open: true`", "an open workflow has no %s: whoever submits a job says what it reads and does", key)
		}
	}
	w.Inputs = []*DeclaredInput{{Name: SubmittedJobs, Submitted: true, MayBeEmpty: true, Close: CloseRule{Manual: true}}}
}

func (p *parser) parameters(w *Workflow, n *yaml.Node, set map[string]string) {
	for _, f := range p.Mapping(n, "parameters") {
		name := f.Key.Value
		p.variable(f.Key.Line, f.Key.Column, name, "parameter")
		value := yamlfile.Follow(f.Value)
		parameter := Parameter{Name: name, Value: value.Value, Required: value.Tag == "!!null"}
		if parameter.Required {
			parameter.Value = "1"
		}
		if value.Kind != yaml.ScalarNode {
			p.Fail(value, "write a text or a number, or null if it must be given", "the parameter %q must be one value, not %s", name, yamlfile.KindName(value))
		}
		if given, ok := set[name]; ok {
			parameter.Value, parameter.Required = given, false
		}
		if hasHidden(parameter.Value) {
			p.Fail(value, "remove them", "the parameter %q has characters of the private use area (U+E000 to U+E005)", name)
		}
		if size := len(parameter.Value); size > maxListBytes {
			p.Fail(value, "put it into a file, and name that under reads", "the parameter %q has %d bytes, the limit is %d", name, size, maxListBytes)
		}
		p.values[name] = parameter.Value
		w.Parameters = append(w.Parameters, parameter)
	}
}

// Variables that a command has anyhow, that its shell sets or takes orders
// from, and those by which the loader of programs does.
var (
	reservedVariables = strings.Fields(`in out _ PATH HOME TMPDIR IFS SHELL PWD OLDPWD ENV PS4 CDPATH GLOBIGNORE GLIBC_TUNABLES
		SHELLOPTS POSIXLY_CORRECT UID EUID PPID GROUPS DIRSTACK FUNCNAME RANDOM SRANDOM SECONDS EPOCHSECONDS EPOCHREALTIME LINENO
		PIPESTATUS REPLY OPTIND OPTARG OPTERR SHLVL TIMEFORMAT`)
	reservedPrefixes = []string{"FAIRWAY_", "LD_", "BASH", "COMP_"}
)

func isReserved(name string) bool {
	return slices.Contains(reservedVariables, name) || slices.Contains(boundPlaceholders, name) ||
		slices.ContainsFunc(reservedPrefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// The placeholders that splitting, repeating and merging bind.
var boundPlaceholders = []string{"first", "last", "chunk", "number", "merge"}

// variable checks a name that becomes a variable of commands.
func (p *parser) variable(line, column int, name, kind string) {
	_, ok := p.values[name]
	switch {
	case !placeholderName.MatchString(name):
		p.FailAt(line, column, "use letters, digits and '_', and no digit first", "%q is no name for a %s: it becomes a variable of the command", name, kind)
	case isReserved(name):
		p.FailAt(line, column, "choose another name", "the %s %q would hide a variable that commands have anyhow", kind, name)
	case ok && kind != "parameter":
		p.FailAt(line, column, "choose another name", "the %s %q has the name of a parameter", kind, name)
	}
}
