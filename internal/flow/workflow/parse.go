package workflow

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/zeebo/blake3"
	"go.yaml.in/yaml/v3"

	"fairway/internal/flow/pattern"
	"fairway/internal/yamlfile"
)

// maxFileSize bounds a workflow file; a larger one is refused.
const maxFileSize = 16 << 20

// Parse reads a workflow file with the defaults of its parameters. file is
// its name for messages. The error is [yamlfile.Problems].
func Parse(file string, data []byte) (*Workflow, error) {
	return (&Workflow{File: file, data: data}).read(nil, nil)
}

// With gives the workflow with other values for some parameters, which it is bound to. All that
// have no default must be given. The file is not read again.
func (w *Workflow) With(parameters map[string]string) (*Workflow, error) {
	if w.RecordedJobs != nil {
		if len(parameters) > 0 {
			return nil, errors.New("a trace has no parameters")
		}
		return w, nil
	}
	var names []string
	for _, p := range w.Parameters {
		names = append(names, p.Name)
	}
	var wrong error
	for _, name := range sortedKeys(parameters) {
		if !slices.Contains(names, name) {
			wrong = errors.Join(wrong, fmt.Errorf("%s: there is no parameter %q; %s", w.File, name,
				yamlfile.DidYouMean(name, names)))
		}
	}
	bound := w
	if wrong == nil && !maps.Equal(parameters, w.set) {
		var err error
		if bound, err = w.read(parameters, w.part); err != nil {
			return nil, err
		}
	}
	if wrong = errors.Join(wrong, bound.Unbound()); wrong != nil {
		return nil, wrong
	}
	return bound, nil
}

// read makes a workflow of the text of w with these values, and with no other part.
func (w *Workflow) read(set map[string]string, only *part) (*Workflow, error) {
	p := &parser{
		Reader: yamlfile.Reader{
			File: w.File, Kind: "workflow", Limit: maxFileSize, Oversize: "generate data as files, not as text of the workflow",
			Begin: "start with `workflow: NAME` and `steps:`",
		},
		data: w.data, values: map[string]string{},
	}
	w = &Workflow{File: w.File, data: w.data, root: w.root, values: p.values, set: set, part: only}
	if w.root == nil {
		w.root = p.root(w.data)
	}
	if w.root != nil {
		p.workflow(w, w.root)
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
	if w.Open() { // what was submitted belongs to it whatever else its file says
		w.digest = workflowDigest([]byte("open\x00"+w.Name), nil, only)
	} else {
		w.digest = workflowDigest(w.data, p.values, only)
	}
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

func (p *parser) root(data []byte) *yaml.Node {
	if hasHidden(string(data)) {
		p.FailAt(1, 1, "remove them", "the file has characters of the private use area (U+E000 to U+E005)")
		return nil
	}
	root := p.Root(hidePlaceholders(data))
	if root == nil {
		for i := range p.Problems {
			problem := &p.Problems[i]
			problem.What = showPlaceholders.Replace(problem.What)
			problem.Fix.Old = showPlaceholders.Replace(problem.Fix.Old)
			problem.Fix.New = showPlaceholders.Replace(problem.Fix.New)
		}
		return nil
	}
	unhide(root)
	return root
}

var wordName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]*$`)

func (p *parser) workflow(w *Workflow, root *yaml.Node) {
	keys := known(p, root, "the workflow", workflowKeys, workflowHabits)
	for _, k := range workflowKeys {
		if n := keys[k.name]; n != nil {
			k.read(p, w, n, field{keys, "the workflow", k.name})
		}
	}
	if keys["workflow"] == nil {
		p.Fail(root, "add the line `workflow: NAME`", "the workflow has no name")
	}
	if keys["steps"] == nil && !w.Open() {
		p.Fail(root, "add `steps:` with at least one step, or `open: true` for jobs that programs submit",
			"the workflow has no steps")
	}
}

// open declares the input by which jobs come that programs submit.
func (p *parser) open(w *Workflow, n *yaml.Node, at field) {
	if !scalar(p, n, at.what, parseFlag) {
		return
	}
	for _, key := range []string{"inputs", "steps", "variables"} {
		if n := at.keys[key]; n != nil {
			p.Fail(n, "leave it out, or leave out `open: true`", "an open workflow has no %s: whoever submits a job says what "+
				"it reads and does", key)
		}
	}
	w.Inputs = []*DeclaredInput{{Name: SubmittedJobs, Submitted: true, MayBeEmpty: true, Close: CloseRule{Manual: true}}}
}

func (p *parser) workflowName(w *Workflow, n *yaml.Node, at field) {
	w.Name, _ = p.text(n, at.what)
	if !wordName.MatchString(w.Name) {
		p.Fail(n, "use letters, digits, '_', '-' and '.'", "%q is no name for a workflow", w.Name)
	}
}

func (p *parser) workflowShell(_ *Workflow, n *yaml.Node, at field) {
	p.shell = p.interpreter(n, at.what)
}

func (p *parser) workflowStorage(_ *Workflow, n *yaml.Node, at field) {
	p.temporary = scalar(p, n, at.what, func(text string) (bool, error) {
		if text != "element" && text != "temporary" {
			return false,
				fmt.Errorf("%q is no storage for all steps; write element or temporary, or storage: cache in a step", text)
		}
		return text == "temporary", nil
	})
}

func (p *parser) parameters(w *Workflow, n *yaml.Node, _ field) {
	for _, f := range p.Mapping(n, "parameters") {
		name := f.Key.Value
		p.variable(f.Key.Line, f.Key.Column, name, "parameter")
		value := yamlfile.Follow(f.Value)
		parameter := Parameter{Name: name, Value: value.Value, Required: value.Tag == "!!null"}
		if parameter.Required {
			parameter.Value = "1"
		}
		if value.Kind != yaml.ScalarNode {
			p.Fail(value, "write a text or a number, or null if it must be given", "the parameter %q must be one value, not %s",
				name, yamlfile.KindName(value))
		}
		if given, ok := w.set[name]; ok {
			parameter.Value, parameter.Required = given, false
		}
		if hasHidden(parameter.Value) {
			p.Fail(value, "remove them", "the parameter %q has characters of the private use area (U+E000 to U+E005)", name)
		}
		if size := len(parameter.Value); size > MaxListBytes {
			p.Fail(value, "put it into a file, and name that under reads", "the parameter %q has %d bytes, the limit is %d",
				name, size, MaxListBytes)
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
	case !pattern.PlaceholderName.MatchString(name):
		p.FailAt(line, column, "use letters, digits and '_', and no digit first",
			"%q is no name for a %s: it becomes a variable of the command", name, kind)
	case isReserved(name):
		p.FailAt(line, column, "choose another name", "the %s %q would hide a variable that commands have anyhow", kind, name)
	case ok && kind != "parameter":
		p.FailAt(line, column, "choose another name", "the %s %q has the name of a parameter", kind, name)
	}
}
