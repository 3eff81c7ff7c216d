package workflow

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
	Name         string
	Value        string
	Taken        bool // its value is that which whoever runs the workflow has, and stands in no record
	line, column int
}

func (p *parser) readVariables(n *yaml.Node, what string) (all []variable) {
	if followed := yamlfile.Follow(n); followed.Kind == yaml.MappingNode {
		p.Fail(followed, "write a list: [NAME, NAME=value]", "%s must be a list, not a mapping", what)
		return nil
	}
	texts, nodes := p.texts(n, what)
	for i, text := range texts {
		name, value, fixed := strings.Cut(text, "=")
		v := variable{Name: name, Value: value, Taken: !fixed, line: nodes[i].Line, column: nodes[i].Column}
		p.variable(v.line, v.column, name, "variable")
		if size := len(value); size > MaxListBytes {
			p.Fail(nodes[i], "put it into a file, and name that under reads",
				"%s: the variable %q has %d bytes, the limit is %d", what, name, size, MaxListBytes)
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
func (p *parser) stepVariables(s *Step, n *yaml.Node, at field) {
	own := p.readVariables(n, at.what)
	s.Runs.Variables = slices.Concat(slices.DeleteFunc(slices.Clone(p.variables),
		func(v variable) bool { return indexOf(own, v.Name) >= 0 }), own)
}

func indexOf(variables []variable, name string) int {
	return slices.IndexFunc(variables, func(v variable) bool { return v.Name == name })
}

// TakenVariables are the names of those whose values whoever runs the workflow has, in order.
func (s *Step) TakenVariables() (names []string) {
	for _, v := range s.Runs.Variables {
		if v.Taken {
			names = append(names, v.Name)
		}
	}
	slices.Sort(names)
	return names
}

func (p *parser) checkVariables(s *Step) {
	files := map[string]bool{}
	for _, name := range s.Data.EachNames {
		files[name] = true
	}
	for _, e := range slices.Concat(s.Reads, s.Outputs()) {
		files[e.Name] = true
	}
	for _, v := range s.Runs.Variables {
		kind := ""
		switch {
		case files[v.Name]:
			kind = "file"
		case slices.Contains(s.Found.bound, v.Name):
			kind = "placeholder"
		default:
			continue
		}
		p.FailAt(v.line, v.column, fmt.Sprintf("choose another name for the %s", kind),
			"step %q: the variable %q has the name of a %s", s.Name, v.Name, kind)
	}
}
