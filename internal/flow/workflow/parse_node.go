package workflow

import (
	"fmt"
	"regexp"
	"sort"

	"go.yaml.in/yaml/v3"

	"fairway/internal/flow/pattern"
	"fairway/internal/logical"
	"fairway/internal/yamlfile"
)

// parser reads one workflow file.
type parser struct {
	yamlfile.Reader
	data      []byte
	values    map[string]string // of parameters
	shell     string            // of the workflow
	variables []variable        // of all steps
	strict    bool              // sandboxes are, where their step does not say otherwise
	temporary bool              // outputs are, where their step does not say otherwise
	commands  []writtenCommand
	scripts   []namedScript

	environments []*Step // that make environments
}

var parameterUse = regexp.MustCompile(`\$\{([^}]*)\}`)

func (p *parser) text(n *yaml.Node, what string) (string, bool) {
	return p.textWith(n, what, func(value string) string { return value })
}

// patternText is text for newPattern: what parameters give stands for itself.
func (p *parser) patternText(n *yaml.Node, what string) (string, bool) {
	return p.textWith(n, what, pattern.HideLiteral.Replace)
}

func (p *parser) textWith(n *yaml.Node, what string, shown func(value string) string) (string, bool) {
	raw, ok := p.Text(n, what)
	if !ok {
		return "", false
	}
	n = yamlfile.Follow(n)
	s := parameterUse.ReplaceAllStringFunc(raw, func(use string) string {
		name := use[2 : len(use)-1]
		value, exists := p.values[name]
		if !exists {
			p.Fail(n, p.parameterAdvice(name), "%s uses the parameter %q, which does not exist", what, name)
			ok = false
		}
		return shown(value)
	})
	return s, ok
}

func (p *parser) parameterAdvice(name string) string {
	known := sortedKeys(p.values)
	if len(known) == 0 {
		return fmt.Sprintf("declare it: `parameters: {%s: VALUE}`", name)
	}
	return yamlfile.DidYouMean(name, known)
}

func (p *parser) texts(n *yaml.Node, what string) ([]string, []*yaml.Node) {
	return p.textsWith(n, what, p.text)
}

func (p *parser) patternTexts(n *yaml.Node, what string) ([]string, []*yaml.Node) {
	return p.textsWith(n, what, p.patternText)
}

func (p *parser) textsWith(
	n *yaml.Node, what string, text func(*yaml.Node, string) (string, bool),
) ([]string, []*yaml.Node) {
	var texts []string
	var nodes []*yaml.Node
	for _, item := range p.Items(n, what) {
		if s, ok := text(item, what); ok {
			texts, nodes = append(texts, s), append(nodes, yamlfile.Follow(item))
		}
	}
	return texts, nodes
}

func (p *parser) integer(n *yaml.Node, what string, least int64) int64 {
	s, ok := p.text(n, what)
	if !ok {
		return 0
	}
	return p.Integer(n, s, what, least)
}

func scalar[T any](p *parser, n *yaml.Node, what string, parse func(string) (T, error)) (value T) {
	s, ok := p.text(n, what)
	if !ok {
		return value
	}
	return yamlfile.Scalar(&p.Reader, n, s, what, parse)
}

func (p *parser) pattern(n *yaml.Node, text, what string) *pattern.Pattern {
	made, err := pattern.NewPattern(text)
	if err != nil {
		p.Fail(n, "write a name such as parts/{part}.txt", "%s: %v", what, err)
		return nil
	}
	if why := logical.WhyNot(made.Text); why != "" {
		p.Fail(n, "write a relative name such as parts/{part}.txt", "%s: %q is no name of a file, it %s", what,
			made.Text, why)
		return nil
	}
	made.Line, made.Column = n.Line, n.Column
	return made
}

func (p *parser) patterns(n *yaml.Node, what string) []*pattern.Pattern {
	var all []*pattern.Pattern
	texts, nodes := p.patternTexts(n, what)
	for i, text := range texts {
		if made := p.pattern(nodes[i], text, what); made != nil {
			all = append(all, made)
		}
	}
	return all
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}
