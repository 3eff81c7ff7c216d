package experiment

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Plan is an experiment file: its points, one for each combination of the
// levels of its axes.
type Plan struct {
	File   string
	Within string // arguments of fairway sim that run the plan with others; empty: those of File alone
	Name   string
	About  string
	Axes   []string
	Points []Point
}

// Point is one combination of levels, in the order of Plan.Axes.
type Point struct {
	Levels     []string
	Experiment Experiment
}

// MaxPoints bounds the combinations of an experiment file.
const MaxPoints = 10_000

// ParseFile reads an experiment file.
func ParseFile(file string) (*Plan, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the experiment: %w", err)
	}
	return Parse(file, data)
}

// Parse reads an experiment. Every key must be known. Paths of traces
// and workflow files count from the folder of file. An error names file and line.
func Parse(file string, data []byte) (*Plan, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return nil, inFile(file, err)
	}
	if len(doc.Content) == 0 || doc.Content[0].Kind != yaml.MappingNode {
		return nil, fmt.Errorf("%s:1: an experiment file is a mapping that begins with experiment: NAME", file)
	}
	root := doc.Content[0]
	axes, err := takeAxes(root)
	if err != nil {
		return nil, inFile(file, err)
	}
	plan := &Plan{File: file}
	for _, a := range axes {
		plan.Axes = append(plan.Axes, a.name)
	}
	err = eachCombination(axes, func(chosen []level) error { return plan.addPoint(root, chosen) })
	if err != nil {
		return nil, inFile(file, err)
	}
	if len(axes) == 0 {
		plan.Points[0].Experiment.Timeline = true // there is nothing else to draw
	}
	plan.Name, plan.About = plan.Points[0].Experiment.Name, plan.Points[0].Experiment.About
	return plan, nil
}

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
func takeAxes(root *yaml.Node) ([]axis, error) {
	var axes []axis
	if i := keyIndex(root, "axes"); i >= 0 {
		n := root.Content[i+1]
		root.Content = slices.Delete(root.Content, i, i+2)
		if n.Kind != yaml.MappingNode {
			return nil, fmt.Errorf("line %d: axes: maps each axis to its levels", n.Line)
		}
		for a := 0; a < len(n.Content); a += 2 {
			x := axis{name: n.Content[a].Value}
			if err := x.read(n.Content[a+1]); err != nil {
				return nil, err
			}
			axes = append(axes, x)
		}
	}
	err := findSweeps(root, "", &axes)
	return axes, err
}

func (x *axis) read(n *yaml.Node) error {
	if n.Kind != yaml.MappingNode || len(n.Content) == 0 {
		return fmt.Errorf("line %d: axis %s: maps the name of each level to what it sets", n.Line, x.name)
	}
	for i := 0; i < len(n.Content); i += 2 {
		l := level{name: n.Content[i].Value}
		sets := n.Content[i+1]
		if sets.Kind != yaml.MappingNode {
			return fmt.Errorf("line %d: level %s: maps paths such as storage.se.delay_factor to values", sets.Line, l.name)
		}
		for k := 0; k < len(sets.Content); k += 2 {
			l.sets = append(l.sets, setting{sets.Content[k].Value, sets.Content[k+1]})
		}
		x.levels = append(x.levels, l)
	}
	return nil
}

// findSweeps turns {sweep: [a, b]} and {from: a, to: b, step: c} into axes
// named by their paths.
func findSweeps(n *yaml.Node, path string, axes *[]axis) error {
	switch n.Kind {
	case yaml.MappingNode:
		if keyIndex(n, "sweep") >= 0 || keyIndex(n, "step") >= 0 {
			x, err := sweepAxis(n, path)
			*axes = append(*axes, x)
			return err
		}
		for i := 0; i < len(n.Content); i += 2 {
			if err := findSweeps(n.Content[i+1], join(path, n.Content[i].Value), axes); err != nil {
				return err
			}
		}
	case yaml.SequenceNode:
		for i, item := range n.Content {
			if err := findSweeps(item, join(path, itemName(item, i)), axes); err != nil {
				return err
			}
		}
	}
	return nil
}

func sweepAxis(n *yaml.Node, path string) (axis, error) {
	x := axis{name: path}
	if i := keyIndex(n, "sweep"); i >= 0 {
		for _, v := range n.Content[i+1].Content {
			x.levels = append(x.levels, level{v.Value, []setting{{path, v}}})
		}
		if len(x.levels) == 0 {
			return x, fmt.Errorf("line %d: sweep: needs a list of values", n.Line)
		}
		return x, knownKeys(n, "sweep")
	}
	var r struct{ From, To, Step float64 }
	if err := n.Decode(&r); err != nil {
		return x, lineError(n, err)
	}
	if r.Step <= 0 || r.To < r.From || (r.To-r.From)/r.Step > MaxPoints {
		return x, fmt.Errorf("line %d: from %g to %g in steps of %g is no range", n.Line, r.From, r.To, r.Step)
	}
	for i := 0; r.From+float64(i)*r.Step <= r.To+r.Step*1e-9; i++ {
		text := strconv.FormatFloat(r.From+float64(i)*r.Step, 'g', 12, 64)
		v := &yaml.Node{Kind: yaml.ScalarNode, Value: text, Line: n.Line}
		x.levels = append(x.levels, level{text, []setting{{path, v}}})
	}
	return x, knownKeys(n, "from", "to", "step")
}

// eachCombination calls do for every combination, the last axis changing
// fastest.
func eachCombination(axes []axis, do func([]level) error) error {
	points := 1
	for _, a := range axes {
		if points *= len(a.levels); points > MaxPoints {
			return fmt.Errorf("more than %d combinations: leave out a level", MaxPoints)
		}
	}
	for p := range points {
		chosen := make([]level, len(axes))
		rest := p
		for i := len(axes) - 1; i >= 0; i-- {
			chosen[i] = axes[i].levels[rest%len(axes[i].levels)]
			rest /= len(axes[i].levels)
		}
		if err := do(chosen); err != nil {
			return err
		}
	}
	return nil
}

func (p *Plan) addPoint(root *yaml.Node, chosen []level) error {
	tree := clone(root)
	point := Point{}
	for _, l := range chosen {
		point.Levels = append(point.Levels, l.name)
		for _, s := range l.sets {
			if err := set(tree, s.path, s.value); err != nil {
				return err
			}
		}
	}
	if err := checkKeys(tree, reflect.TypeFor[Experiment]()); err != nil {
		return err
	}
	e := &point.Experiment
	if err := tree.Decode(e); err != nil {
		return err
	}
	e.Defaults()
	for _, path := range []*string{&e.Workflow.Trace, &e.Workflow.File} {
		if *path != "" && !filepath.IsAbs(*path) {
			*path = filepath.Join(filepath.Dir(p.File), *path)
		}
	}
	if err := checkReasons(tree); err != nil {
		return err
	}
	p.Points = append(p.Points, point)
	return p.located(tree, e.check())
}

// located finds the line of an error of Experiment.check.
func (p *Plan) located(tree *yaml.Node, err error) error {
	var at *pathError
	if !errors.As(err, &at) {
		return err
	}
	path := at.path
	for path != "" {
		if n := find(tree, path); n != nil {
			return lineError(n, err)
		}
		path = path[:max(strings.LastIndexByte(path, '.'), 0)]
	}
	return lineError(tree, err)
}

// checkReasons refuses a reason for something that the file does not set.
func checkReasons(tree *yaml.Node) error {
	i := keyIndex(tree, "because")
	if i < 0 {
		return nil
	}
	for k := 0; k < len(tree.Content[i+1].Content); k += 2 {
		key, reason := tree.Content[i+1].Content[k], tree.Content[i+1].Content[k+1]
		if find(tree, key.Value) == nil {
			return fmt.Errorf("line %d: because: nothing is set at %s", key.Line, key.Value)
		}
		if strings.TrimSpace(reason.Value) == "" {
			return fmt.Errorf("line %d: because: %s has no reason", key.Line, key.Value)
		}
	}
	return nil
}

// Repeat sets the repetitions of every point, unless n is 0.
func (p *Plan) Repeat(n int) error {
	if n < 0 || n > MaxRepetitions {
		return fmt.Errorf("%d repetitions: from 1 to %d are possible", n, MaxRepetitions)
	}
	for i := range p.Points {
		if n > 0 {
			p.Points[i].Experiment.Repetitions = n
		}
	}
	return nil
}

// Reseed sets the seed of every point, unless it is 0. It refuses a plan whose
// points differ in their seeds: they would all become the same.
func (p *Plan) Reseed(seed uint64) error {
	if seed == 0 {
		return nil
	}
	for i := range p.Points {
		if p.Points[i].Experiment.Seed != p.Points[0].Experiment.Seed {
			return fmt.Errorf("%s: its points differ in their seeds, which --seed would make the same: leave --seed out, or give the file one seed", p.File)
		}
	}
	for i := range p.Points {
		p.Points[i].Experiment.Seed = seed
	}
	return nil
}

// Runs counts the runs of all points together.
func (p *Plan) Runs() int {
	n := 0
	for _, point := range p.Points {
		n += point.Experiment.Repetitions
	}
	return n
}

// Label names a point for a person.
func (p *Plan) Label(point int) string {
	text := p.Name
	for i, l := range p.Points[point].Levels {
		text += fmt.Sprintf(" %s=%s", p.Axes[i], l)
	}
	return text
}
