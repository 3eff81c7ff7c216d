package flow

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"fairway/internal/yamlfile"
)

// variable is one of the environment that the commands of a step get beside those that Fairway
// gives them.
type variable struct {
	name         string
	value        string
	taken        bool // its value is that which whoever runs the workflow has, and stands in no record
	line, column int
}

// readVariables reads names of variables that are taken, and NAME=value.
func (p *parser) readVariables(n *yaml.Node, what string) (all []variable) {
	if followed := yamlfile.Follow(n); followed.Kind == yaml.MappingNode {
		p.Fail(followed, "write a list: [NAME, NAME=value]", "%s must be a list, not a mapping", what)
		return nil
	}
	texts, nodes := p.texts(n, what)
	for i, text := range texts {
		name, value, fixed := strings.Cut(text, "=")
		v := variable{name: name, value: value, taken: !fixed, line: nodes[i].Line, column: nodes[i].Column}
		p.variable(v.line, v.column, name, "variable")
		if size := len(value); size > maxListBytes {
			p.Fail(nodes[i], "put it into a file, and name that under reads",
				"%s: the variable %q has %d bytes, the limit is %d", what, name, size, maxListBytes)
		}
		if indexOf(all, name) >= 0 {
			p.Fail(nodes[i], "name it once", "%s names %q twice", what, name)
		}
		all = append(all, v)
	}
	return all
}

// stepVariables are those of the workflow and of the step, whose own come in place of others of the
// same name.
func (p *parser) stepVariables(s *step, n *yaml.Node, at field) {
	own := p.readVariables(n, at.what)
	s.runs.variables = slices.Concat(slices.DeleteFunc(slices.Clone(p.variables),
		func(v variable) bool { return indexOf(own, v.name) >= 0 }), own)
}

func indexOf(variables []variable, name string) int {
	return slices.IndexFunc(variables, func(v variable) bool { return v.name == name })
}

// takenVariables are the names of those whose values whoever runs the workflow has, in order.
func (s *step) takenVariables() (names []string) {
	for _, v := range s.runs.variables {
		if v.taken {
			names = append(names, v.name)
		}
	}
	slices.Sort(names)
	return names
}

// checkVariables finds variables that have the name of a file or of a placeholder of the step.
func (p *parser) checkVariables(s *step) {
	files := map[string]bool{}
	for _, name := range s.data.eachNames {
		files[name] = true
	}
	for _, e := range slices.Concat(s.reads, s.outputs()) {
		files[e.name] = true
	}
	for _, v := range s.runs.variables {
		kind := ""
		switch {
		case files[v.name]:
			kind = "file"
		case slices.Contains(s.found.bound, v.name):
			kind = "placeholder"
		default:
			continue
		}
		p.FailAt(v.line, v.column, fmt.Sprintf("choose another name for the %s", kind),
			"step %q: the variable %q has the name of a %s", s.name, v.name, kind)
	}
}
