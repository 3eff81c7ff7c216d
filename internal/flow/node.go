package flow

import (
	"fmt"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"fairway/internal/quantity"
)

// parser collects the problems of one file while it is read.
type parser struct {
	file     string
	data     []byte
	values   map[string]string // of parameters
	shell    string            // of the workflow
	commands []commandPlace
	scripts  []scriptPlace
	problems Problems
}

func (p *parser) fail(n *yaml.Node, instead, what string, args ...any) {
	p.failAt(n.Line, n.Column, instead, what, args...)
}

func (p *parser) failAt(line, column int, instead, what string, args ...any) {
	p.problems = append(p.problems, Problem{
		File: p.file, Line: line, Column: column, What: fmt.Sprintf(what, args...), Instead: instead,
	})
}

// field is one key of a mapping with its value.
type field struct {
	key   *yaml.Node
	value *yaml.Node
}

func follow(n *yaml.Node) *yaml.Node {
	for range 8 {
		if n.Kind != yaml.AliasNode {
			break
		}
		n = n.Alias
	}
	return n
}

// mapping gives the fields of n, in order, each key once. what names n in
// messages.
func (p *parser) mapping(n *yaml.Node, what string) []field {
	n = follow(n)
	if n.Kind != yaml.MappingNode {
		p.fail(n, "write it as lines of `key: value`", "%s must be a mapping, not %s", what, kindName(n))
		return nil
	}
	var fields []field
	lines := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if key.Kind != yaml.ScalarNode {
			p.fail(key, "write a word", "a key of %s must be a word, not %s", what, kindName(key))
			continue
		}
		if key.Value == "<<" {
			p.fail(key, "repeat its keys here; single values can be shared, as in needs: &small {cpus: 1} and needs: *small", "%s has a merge key, <<, which a workflow cannot have", what)
			continue
		}
		if line := lines[key.Value]; line != 0 {
			p.fail(key, "give it another name, or remove one of the two", "%s has %q twice, first in line %d", what, key.Value, line)
			continue
		}
		lines[key.Value] = key.Line
		fields = append(fields, field{key, n.Content[i+1]})
	}
	return fields
}

// known gives the fields of n by key and reports the keys that are not in
// keys. habits advise those who come from other workflow systems.
func (p *parser) known(n *yaml.Node, what string, keys []string, habits map[string]string) map[string]*yaml.Node {
	found := map[string]*yaml.Node{}
	for _, f := range p.mapping(n, what) {
		if !slices.Contains(keys, f.key.Value) {
			instead := habits[f.key.Value]
			if instead == "" {
				instead = didYouMean(f.key.Value, keys)
			}
			p.fail(f.key, instead, "unknown key %q in %s", f.key.Value, what)
			continue
		}
		found[f.key.Value] = f.value
	}
	return found
}

func kindName(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "a mapping"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.Tag == "!!null":
		return "nothing"
	}
	return strconv.Quote(n.Value)
}

var parameterUse = regexp.MustCompile(`\$\{([^}]*)\}`)

// text gives the scalar n with parameters put in.
func (p *parser) text(n *yaml.Node, what string) (string, bool) {
	return p.textWith(n, what, func(value string) string { return value })
}

// patternText is text for newPattern: what parameters give stands for itself.
func (p *parser) patternText(n *yaml.Node, what string) (string, bool) {
	return p.textWith(n, what, hideLiteral.Replace)
}

func (p *parser) textWith(n *yaml.Node, what string, shown func(value string) string) (string, bool) {
	n = follow(n)
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		p.fail(n, "write a text", "%s must be a text, not %s", what, kindName(n))
		return "", false
	}
	ok := true
	s := parameterUse.ReplaceAllStringFunc(n.Value, func(use string) string {
		name := use[2 : len(use)-1]
		value, known := p.values[name]
		if !known {
			p.fail(n, p.parameterAdvice(name), "%s uses the parameter %q, which does not exist", what, name)
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
	return didYouMean(name, known)
}

// texts gives a scalar as a list of one, or a list of scalars with their
// nodes.
func (p *parser) texts(n *yaml.Node, what string) ([]string, []*yaml.Node) {
	return p.textsWith(n, what, p.text)
}

func (p *parser) patternTexts(n *yaml.Node, what string) ([]string, []*yaml.Node) {
	return p.textsWith(n, what, p.patternText)
}

func (p *parser) textsWith(n *yaml.Node, what string, text func(*yaml.Node, string) (string, bool)) ([]string, []*yaml.Node) {
	n = follow(n)
	items := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode {
		items = n.Content
		if len(items) == 0 {
			p.fail(n, "name at least one, or remove the key", "%s is an empty list", what)
		}
	}
	var texts []string
	var nodes []*yaml.Node
	for _, item := range items {
		if s, ok := text(item, what); ok {
			texts, nodes = append(texts, s), append(nodes, follow(item))
		}
	}
	return texts, nodes
}

func (p *parser) integer(n *yaml.Node, what string, least int64) int64 {
	s, ok := p.text(n, what)
	if !ok {
		return 0
	}
	digits, negative := strings.CutPrefix(strings.TrimSpace(s), "-")
	value, err := quantity.Whole(digits)
	if negative {
		value = -value
	}
	if err != nil || value < least {
		p.fail(follow(n), fmt.Sprintf("write a whole number from %d", least), "%s: %q is no such number", what, s)
		return 0
	}
	return value
}

// scalar reads a text with parse, whose error says what to write instead.
func scalar[T any](p *parser, n *yaml.Node, what string, parse func(string) (T, error)) (value T) {
	s, ok := p.text(n, what)
	if !ok {
		return value
	}
	value, err := parse(s)
	if err != nil {
		says, instead, _ := strings.Cut(err.Error(), "; ")
		p.fail(follow(n), instead, "%s: %s", what, says)
	}
	return value
}

// pattern reads a pattern of LFNs.
func (p *parser) pattern(n *yaml.Node, text, what string) *pattern {
	made, err := newPattern(text)
	if err != nil {
		p.fail(n, "write a name such as parts/{part}.txt", "%s: %v", what, err)
		return nil
	}
	if why := legalLFN(made.text); why != "" {
		p.fail(n, "write a relative name such as parts/{part}.txt", "%s: %q is no name of a file, it %s", what, made.text, why)
		return nil
	}
	made.line, made.column = n.Line, n.Column
	return made
}

func (p *parser) patterns(n *yaml.Node, what string) []*pattern {
	var all []*pattern
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
