package experiment

import (
	"iter"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"fairway/internal/yamlfile"
)

// axis is something that an experiment varies.
type axis struct {
	name   string
	levels []level
}

// level is one value of an axis: what it sets, by path.
type level struct {
	name string
	sets []setting
}

type setting struct {
	path  string
	value *yaml.Node
}

// takeAxes cuts axes: out of the tree and finds the values that are swept in
// their own place.
func takeAxes(r *yamlfile.Reader, root *yaml.Node) (axes []axis) {
	if i := keyIndex(root, "axes"); i >= 0 {
		n := root.Content[i+1]
		root.Content = slices.Delete(root.Content, i, i+2)
		for _, a := range r.Mapping(n, "axes") {
			x := axis{name: a.Key.Value}
			for _, l := range r.Mapping(a.Value, yamlfile.Join("axes", x.name)) {
				level := level{name: l.Key.Value}
				for _, s := range r.Mapping(l.Value, "level "+level.name) {
					level.sets = append(level.sets, setting{s.Key.Value, s.Value})
				}
				x.levels = append(x.levels, level)
			}
			if len(x.levels) == 0 {
				r.Fail(a.Value, "write the name of each level and what it sets, as in {slow: {storage.se.delay_factor: 1}}",
					"axis %s has no level", x.name)
			}
			axes = append(axes, x)
		}
	}
	findSweeps(r, root, "", &axes)
	points := 1
	for _, a := range axes {
		if points *= len(a.levels); points > MaxPoints {
			r.Fail(root, "leave out a level", "there are more than %d combinations", MaxPoints)
			break
		}
	}
	return axes
}

// findSweeps turns {sweep: [a, b]} and {from: a, to: b, step: c} into axes
// named by their paths.
func findSweeps(r *yamlfile.Reader, n *yaml.Node, path string, axes *[]axis) {
	switch n.Kind {
	case yaml.MappingNode:
		if keyIndex(n, "sweep") >= 0 || keyIndex(n, "step") >= 0 {
			*axes = append(*axes, sweep(r, n, path))
			return
		}
		for i := 0; i < len(n.Content); i += 2 {
			findSweeps(r, n.Content[i+1], yamlfile.Join(path, n.Content[i].Value), axes)
		}
	case yaml.SequenceNode:
		for i, item := range n.Content {
			findSweeps(r, item, yamlfile.Join(path, yamlfile.ItemName(item, i)), axes)
		}
	}
}

func sweep(r *yamlfile.Reader, n *yaml.Node, path string) axis {
	x := axis{name: path}
	if keyIndex(n, "sweep") >= 0 {
		found := r.Known(n, path, []string{"sweep"}, nil)
		for _, v := range r.Items(found["sweep"], path) {
			x.levels = append(x.levels, level{yamlfile.Follow(v).Value, []setting{{path, v}}})
		}
		return x
	}
	var steps struct {
		From float64 `yaml:"from" negative:"what it sets may be"`
		To   float64 `yaml:"to" negative:"what it sets may be"`
		Step float64 `yaml:"step"`
	}
	r.Decode(n, &steps, path)
	if steps.Step <= 0 || steps.To < steps.From || (steps.To-steps.From)/steps.Step > MaxPoints {
		r.Fail(n, "write a range such as {from: 0, to: 1, step: 0.25}", "from %g to %g in steps of %g is no range",
			steps.From, steps.To, steps.Step)
		return x
	}
	for i := 0; ; i++ {
		value := steps.From + float64(i)*steps.Step
		if value > steps.To+steps.Step*1e-9 {
			return x
		}
		value, _ = strconv.ParseFloat(strconv.FormatFloat(value, 'g', 12, 64), 64) // 0.3, not 0.30000000000000004
		v := &yaml.Node{Kind: yaml.ScalarNode, Value: strconv.FormatFloat(value, 'f', -1, 64), Line: n.Line, Column: n.Column}
		x.levels = append(x.levels, level{v.Value, []setting{{path, v}}})
	}
}

// combinations gives every combination of one level of each axis, the last axis
// changing fastest.
func combinations(axes []axis) iter.Seq[[]level] {
	return func(yield func([]level) bool) {
		points := 1
		for _, a := range axes {
			points *= len(a.levels)
		}
		for p := range points {
			chosen := make([]level, len(axes))
			rest := p
			for i := len(axes) - 1; i >= 0; i-- {
				chosen[i] = axes[i].levels[rest%len(axes[i].levels)]
				rest /= len(axes[i].levels)
			}
			if !yield(chosen) {
				return
			}
		}
	}
}

// keyIndex returns where a key stands in a mapping, or -1.
func keyIndex(n *yaml.Node, key string) int {
	if n.Kind != yaml.MappingNode {
		return -1
	}
	for i := 0; i < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return i
		}
	}
	return -1
}

// set puts a value at a path and reports whether it could. The last key may be
// new; what leads to it must be there, or be made by it as a mapping.
func set(n *yaml.Node, path string, value *yaml.Node) bool {
	key, rest, deeper := strings.Cut(path, ".")
	c := yamlfile.Child(n, key)
	switch {
	case c == nil && n.Kind != yaml.MappingNode:
		return false
	case c == nil:
		c = &yaml.Node{Kind: yaml.MappingNode, Line: value.Line, Column: value.Column}
		n.Content = append(n.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: key, Line: value.Line, Column: value.Column},
			c)
	case c.Kind == yaml.AliasNode: // of something that other places share
		*c = *clone(yamlfile.Follow(c))
	}
	if deeper {
		return set(c, rest, value)
	}
	*c = *clone(value)
	return true
}

func clone(n *yaml.Node) *yaml.Node {
	c := *n
	c.Content = make([]*yaml.Node, len(n.Content))
	for i, child := range n.Content {
		c.Content[i] = clone(child)
	}
	return &c
}
