package pilot

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// notFound is how programs say that a file is not there.
var notFound = regexp.MustCompile(`(?m)['"‘]([^'"’\n]+)['"’]: No such file or directory|` +
	`([^\s:][^:\n]*): No such file or directory|No such file or directory: ['"]([^'"\n]+)['"]|` +
	`(?:cannot|could not|can't|failed to) open (?:file )?['"‘]?([^\s:'"‘’]+)`)

type missing struct {
	inputs, outputs []string // as they are named in the sandbox
	folder          string   // the sandbox
	workflow        string   // the folder of the workflow; empty: it is not on this machine
	elsewhere       bool     // paths of the node mean nothing here: the command runs in a container
}

// missingIn says of a failed attempt what is known of a file that its command did not find; empty: nothing.
func (p *pilot) missingIn(a *attempt, said string) string {
	m := missing{folder: a.Slot.Folder, workflow: p.cfg.Workflow, elsewhere: a.Payload.GetContainer() != nil}
	for _, f := range a.GetInputs() {
		m.inputs = append(m.inputs, f.GetFile().GetLfn())
	}
	for _, f := range a.GetOutputs() {
		m.outputs = append(m.outputs, f.GetLfn())
	}
	return m.hint(said)
}

// hint explains what a command said of the first file that it did not find. It says only what is so.
func (m *missing) hint(said string) string {
	match := notFound.FindStringSubmatch(said)
	if match == nil {
		return ""
	}
	written := match[slices.IndexFunc(match[1:], func(s string) bool { return s != "" })+1]
	name := strings.TrimSpace(written)
	words := strings.Fields(name)
	switch {
	case len(words) == 0:
		return ""
	case strings.HasSuffix(written, " "):
		return fmt.Sprintf("the name %q ends with a space", strings.TrimLeft(written, " "))
	case len(words) > 1 && m.areInputs(words):
		return "\"$in\" in quotes is the names of all inputs as one word: write $in where a program takes several"
	case filepath.IsAbs(name) && !m.below(name):
		return m.onNode(name)
	}
	// A shell puts its own name and a line before that of the file.
	last := words[len(words)-1]
	for _, file := range []string{m.relative(name), m.relative(last)} {
		if hint := m.inSandbox(file); hint != "" {
			return hint
		}
	}
	return m.undeclared(m.relative(last))
}

func (m *missing) areInputs(words []string) bool {
	return !slices.ContainsFunc(words, func(w string) bool { return !slices.Contains(m.inputs, m.relative(w)) })
}

func (m *missing) below(name string) bool { return strings.HasPrefix(name, m.folder+"/") }

func (m *missing) relative(name string) string {
	return path.Clean(strings.TrimPrefix(name, m.folder+"/"))
}

func (m *missing) onNode(name string) string {
	if _, err := os.Lstat(name); m.elsewhere || !os.IsNotExist(err) {
		return ""
	}
	return "there is no " + name + " on this node"
}

func (m *missing) inSandbox(name string) string {
	_, err := os.Lstat(filepath.Join(m.folder, name))
	there := err == nil
	switch {
	case slices.Contains(m.inputs, name) && there:
		return "the input " + name + " is in the folder in which the command began, and was looked for elsewhere: " +
			"after cd, write $PWD/… as it was before"
	case slices.Contains(m.inputs, name):
		return "the command itself removed or renamed its input " + name
	case slices.Contains(m.outputs, name) && !there && m.hasFolder(name):
		// Whoever writes a name without a folder finds its folder anywhere.
		before := name + " is an output of this job, and was read before it was written"
		if path.Dir(name) == "." {
			return before
		}
		return before + ", or was to be written elsewhere: after cd, write $PWD/… as it was before"
	case !there && !m.hasFolder(name) && m.isOutput(name):
		return fmt.Sprintf("the folder %s of an output was not made: write mkdir -p %[1]s first", path.Dir(name))
	}
	for _, in := range m.inputs {
		if parts := strings.Fields(in); len(parts) > 1 && slices.Contains(parts, name) {
			return fmt.Sprintf("%s is a part of the name of the input %q: write \"$in\" in quotes", name, in)
		}
	}
	return ""
}

func (m *missing) hasFolder(name string) bool {
	info, err := os.Stat(filepath.Join(m.folder, path.Dir(name)))
	return err == nil && info.IsDir()
}

// isOutput reports whether a name is that of an output, or may fit a pattern of one: what is before
// the first placeholder is the same.
func (m *missing) isOutput(name string) bool {
	return slices.ContainsFunc(m.outputs, func(o string) bool {
		before, _, isPattern := strings.Cut(o, "{")
		return o == name || isPattern && before != "" && strings.HasPrefix(name, before)
	})
}

// undeclared tells of a file that the step does not declare, where it is in the folder of the workflow.
func (m *missing) undeclared(name string) string {
	if m.workflow == "" || !filepath.IsLocal(name) {
		return ""
	}
	if _, err := os.Stat(filepath.Join(m.workflow, name)); err != nil {
		return ""
	}
	return "it found no file " + name + ": a job sees only the files that its step declares in reads, and there is one " +
		"in the folder of the workflow: make it an input and name it in reads; with exec and map, by --reads"
}
