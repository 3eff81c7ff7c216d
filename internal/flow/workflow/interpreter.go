package workflow

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"fairway/internal/flow/pattern"
	"fairway/internal/yamlfile"
)

// interpreters whose commands are text for a shell, which is run strictly.
const (
	anyShell = ""
	bash     = "bash"
	posix    = "sh"
)

// IsShell reports whether the words of a program are those of a shell; empty are.
func IsShell(interpreter string) bool {
	return interpreter == anyShell || interpreter == bash || interpreter == posix
}

func (p *parser) interpreter(n *yaml.Node, what string) string {
	text, ok := p.text(n, what)
	if ok && (PlainWords(text) == nil || len(text) > MaxListBytes) {
		p.Fail(yamlfile.Follow(n), "write bash, sh, or a program such as python3; what is to be run stands under command",
			"%s: %q is no interpreter", what, text)
	}
	return strings.Join(strings.Fields(text), " ")
}

func parseWorker(text string) (string, error) {
	if PlainWords(text) == nil || len(text) > MaxListBytes {
		return "", fmt.Errorf("%q is no worker; write python with modules that it imports, R with packages, or the words "+
			"of a program, such as python3 worker.py", text)
	}
	return strings.Join(strings.Fields(text), " "), nil
}

func (p *parser) command(s *Step, f yamlfile.Field, keys map[string]*yaml.Node, what string) {
	s.Runs.Interpreter = p.shell
	if n := keys["shell"]; n != nil {
		if keys["command"] == nil && keys["script"] == nil {
			p.Fail(n, "write the command under command; shell names its interpreter, as in `shell: python3`",
				"%s has a shell and no command", what)
			return
		}
		s.Runs.Interpreter = p.interpreter(n, what+": shell")
	}
	n, script := keys["command"], keys["script"]
	switch {
	case n != nil && script != nil:
		p.Fail(script, "keep one of the two; a command can run the file itself, if it stands under reads",
			"%s has a command and a script", what)
	case script != nil:
		p.script(s, script, what+": script")
	case n == nil:
		p.Fail(f.Key, "add command: COMMAND, or script: FILE", "%s has no command", what)
	default:
		s.Runs.Command = p.commandText(s, n, what, "command")
	}
}

func (p *parser) commandText(s *Step, n *yaml.Node, what, key string) string {
	n = yamlfile.Follow(n)
	if n.Kind != yaml.ScalarNode || strings.TrimSpace(n.Value) == "" {
		p.Fail(n, fmt.Sprintf("write it in one line, or after `%s: |`", key), "%s: the %s must be a text, not %s", what, key,
			yamlfile.KindName(n))
		return ""
	}
	if strings.ContainsRune(n.Value, 0) {
		p.Fail(n, "remove it", "%s: the %s has a zero byte", what, key)
	}
	p.commands = append(p.commands, writtenCommand{s, n, key})
	return n.Value
}

// script reads the name of a file that is the command. If no input and no step
// makes it, it is a file beside the workflow, and an input of its own.
func (p *parser) script(s *Step, n *yaml.Node, what string) {
	s.Runs.Script = p.hiddenInput(s, n, what, "script")
}

// namedScript is a script, or another file that is no declared input, as a step names it.
type namedScript struct {
	line      int
	kind      string
	file, lfn *pattern.Pattern
}

// scriptInputs declares the files under script that nothing else provides.
func (p *parser) scriptInputs(w *Workflow) {
	for _, s := range p.scripts {
		if w.provides(s.lfn) { // also the same file, which another step names
			continue
		}
		w.Inputs = append(w.Inputs, &DeclaredInput{
			Name: s.kind + " " + s.file.Text, Line: s.line, renamed: true,
			Patterns: []string{s.file.Text}, Globs: []string{s.file.Glob()},
			Paths: []*pattern.Pattern{s.file}, Names: []*pattern.Pattern{s.lfn},
		})
	}
}

func (w *Workflow) provides(name *pattern.Pattern) bool {
	return slices.ContainsFunc(w.Inputs,
		func(in *DeclaredInput) bool { return slices.ContainsFunc(in.Names, name.Overlaps) }) ||
		slices.ContainsFunc(w.Steps, func(s *Step) bool {
			return slices.ContainsFunc(s.Outputs(), func(e Entry) bool { return e.Pattern.Overlaps(name) })
		})
}
