package workflow

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"fairway/internal/flow/pattern"
	"fairway/internal/shelltext"
	"fairway/internal/yamlfile"
)

type writtenCommand struct {
	step *Step
	n    *yaml.Node
	key  string // command or count
}

func (p *parser) checkCommands(w *Workflow) {
	for _, c := range p.commands {
		if c.key == "command" && !IsShell(c.step.Runs.Interpreter) || shelltext.Interpreter(c.n.Value) != nil {
			continue
		}
		p.checkCommand(c, w)
		p.checkAccess(c)
	}
}

func (p *parser) checkCommand(c writtenCommand, w *Workflow) {
	text := shelltext.Read(c.n.Value)
	known := c.variables(w)
	for _, m := range text.Expected() {
		line, column := p.place(c, m)
		switch {
		case slices.Contains(known, m.Name) || mayBeInherited(m.Name):
		case m.Name[0] <= '9':
			p.FailAt(line, column, "put a program for awk or sed into single quotes, so that the shell leaves its $ alone",
				"step %q: the %s uses %s, but it has no arguments", c.step.Name, c.key, m.Text)
		default:
			p.FailAt(line, column, variableAdvice(m.Name, known), "step %q: the %s uses the variable %q, which nothing sets",
				c.step.Name, c.key, m.Name)
			if meant := cmp.Or(yamlfile.Surely(m.Name, known), variableHabits[m.Name]); meant != "" {
				p.MendAt(line, column, m.Text, strings.Replace(m.Text, m.Name, meant, 1))
			}
		}
	}
	for _, m := range text.Braces() {
		if meant := meantByBraces(m, known); meant != "" {
			line, column := p.place(c, m)
			p.FailAt(line, column, fmt.Sprintf("write %q", "$"+meant),
				"step %q: %s in the %s stays as it is, since a command has its values as variables", c.step.Name, m.Text, c.key)
			p.MendAt(line, column, m.Text, c.variable(m, meant))
		}
	}
}

func (c writtenCommand) variable(m shelltext.Mention, name string) string {
	if inWord.MatchString(c.n.Value[m.Offset+len(m.Text):]) {
		return "${" + name + "}"
	}
	return "$" + name
}

var inWord = regexp.MustCompile(`^\w`)

func (c writtenCommand) variables(w *Workflow) []string {
	known := []string{"in"}
	for _, e := range c.step.Reads {
		known = append(known, e.Name)
	}
	if c.key == "command" {
		known = append(known, "out")
		for _, e := range c.step.Outputs() {
			known = append(known, e.Name)
		}
		known = append(known, c.step.Found.bound...)
	}
	known = append(known, c.step.Data.EachNames...)
	for _, each := range c.step.Data.Each {
		known = append(known, each.Names...)
	}
	for _, parameter := range w.Parameters {
		known = append(known, parameter.Name)
	}
	for _, v := range c.step.Runs.Variables {
		known = append(known, v.Name)
	}
	known = append(known, commandVariables...)
	return slices.DeleteFunc(known, func(name string) bool { return !pattern.PlaceholderName.MatchString(name) })
}

// commandVariables are those that pilots give to every command.
var commandVariables = []string{
	"FAIRWAY_JOB", "FAIRWAY_NAME", "FAIRWAY_STEP", "FAIRWAY_ATTEMPT", "FAIRWAY_TRY", "FAIRWAY_PILOT", "FAIRWAY_SANDBOX",
	"FAIRWAY_CPUS", "FAIRWAY_MEMORY", "FAIRWAY_DEADLINE", "FAIRWAY_TIME_LEFT", "FAIRWAY_CHECKPOINT",
	"FAIRWAY_TASKS", "FAIRWAY_TASK", "FAIRWAY_GANG", "FAIRWAY_HOSTFILE", "FAIRWAY_RSH",
	"FAIRWAY_GPU_SHARE",
	"FAIRWAY_INPUTS_FILE", "FAIRWAY_OUTPUTS_FILE", "FAIRWAY_CATALOG", "FAIRWAY_REPORT",
}

// mayBeInherited reports whether a command may have a variable from the
// environment of its pilot. By custom these have no small letters.
func mayBeInherited(name string) bool {
	if name[0] <= '9' || strings.HasPrefix(name, "FAIRWAY_") {
		return false
	}
	return !strings.ContainsAny(name, "abcdefghijklmnopqrstuvwxyz") || strings.HasSuffix(name, "_proxy")
}

// Names that other workflow systems give to what commands have here.
var variableHabits = map[string]string{
	"input": "in", "infile": "in", "output": "out", "outfile": "out",
	"threads": "FAIRWAY_CPUS", "cpus": "FAIRWAY_CPUS", "cores": "FAIRWAY_CPUS", "mem": "FAIRWAY_MEMORY",
	"memory": "FAIRWAY_MEMORY",
}

func variableAdvice(name string, known []string) string {
	meant := yamlfile.Closest(name, known)
	if meant == "" {
		meant = variableHabits[name]
	}
	if meant != "" {
		return fmt.Sprintf("did you mean %q?", meant)
	}
	return fmt.Sprintf("set it, or declare a parameter of this name; if the environment may have it, write ${%s:-}", name)
}

// meantByBraces gives the variable that somebody meant by {name}, or "" where
// the braces may be right.
func meantByBraces(m shelltext.Mention, known []string) string {
	member := strings.Trim(strings.TrimPrefix(m.Text, "{"+m.Name), ".[]}")
	switch {
	case member != "" && (m.Name == "wildcards" || m.Name == "params" || m.Name == "input" || m.Name == "output"):
		return member
	case m.Name == "wildcards" || m.Name == "params" || member != "":
		return ""
	case slices.Contains(known, m.Name):
		return m.Name
	}
	return variableHabits[m.Name]
}

// place finds where in the file a part of a command stands: as often as its
// text comes before it in the command, so often it comes before it in the file.
func (p *parser) place(c writtenCommand, m shelltext.Mention) (line, column int) {
	before := strings.Count(c.n.Value[:m.Offset], m.Text)
	rest := string(p.data)
	for range c.n.Line - 1 {
		_, rest, _ = strings.Cut(rest, "\n")
	}
	runes := []rune(rest[:strings.IndexByte(rest+"\n", '\n')])
	start := len(string(runes[:min(len(runes), c.n.Column-1)]))
	at := start
	for ; ; before-- {
		next := strings.Index(rest[at:], m.Text)
		if next < 0 {
			return c.n.Line, c.n.Column
		}
		if at += next; before == 0 {
			break
		}
		at += len(m.Text)
	}
	above := rest[:at]
	return c.n.Line + strings.Count(above, "\n"), len([]rune(above[strings.LastIndexByte(above, '\n')+1:])) + 1
}
