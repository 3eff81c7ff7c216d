package experiment

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"

	"fairway/internal/yamlfile"
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

// Limits of an experiment file: its combinations, and its bytes.
const (
	MaxPoints = 10_000
	maxSize   = 16 << 20
)

// ParseFile reads an experiment file.
func ParseFile(file string) (*Plan, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the experiment: %w", err)
	}
	return Parse(file, data)
}

// Parse reads an experiment. Every key must be known. Paths of traces and
// workflow files count from the folder of file. The error is
// [yamlfile.Problems]: all that is wrong, at any point.
func Parse(file string, data []byte) (*Plan, error) {
	r := yamlfile.Reader{
		File: file, Kind: "experiment", Limit: maxSize,
		Oversize: "leave out values that it does not need", Begin: "start with `experiment: NAME`",
	}
	plan := &Plan{File: file}
	if root := r.Root(data); root != nil {
		plan.read(&r, root)
	}
	if err := r.Err(); err != nil {
		return nil, err
	}
	if len(plan.Axes) == 0 {
		plan.Points[0].Experiment.Timeline = true // there is nothing else to draw
	}
	plan.Name, plan.About = plan.Points[0].Experiment.Name, plan.Points[0].Experiment.About
	return plan, nil
}

func (p *Plan) read(r *yamlfile.Reader, root *yaml.Node) {
	if r.Mapping(root, "the experiment"); len(r.Problems) > 0 {
		return
	}
	axes := takeAxes(r, root)
	if len(r.Problems) > 0 {
		return
	}
	for _, a := range axes {
		p.Axes = append(p.Axes, a.name)
	}
	for chosen := range combinations(axes) {
		at := reader{Reader: yamlfile.Reader{File: r.File, Kind: r.Kind}, tree: clone(root)}
		p.Points = append(p.Points, at.point(chosen))
		r.Problems = append(r.Problems, at.Problems...)
		if r.Problems = r.Problems.Sorted(); len(r.Problems) == yamlfile.MaxProblems {
			return
		}
	}
}

// reader reads one point of an experiment file.
type reader struct {
	yamlfile.Reader
	tree *yaml.Node // of the file, with the levels of the point put in
}

// wrong adds a problem of what stands at a path.
func (r *reader) wrong(path, instead, what string, args ...any) {
	r.FailIn(r.tree, path, instead, what, args...)
}

func (r *reader) point(chosen []level) (p Point) {
	for _, l := range chosen {
		p.Levels = append(p.Levels, l.name)
		for _, s := range l.sets {
			if !set(r.tree, s.path, s.value) {
				r.Fail(s.value, "write a path such as storage.se.delay_factor; an item of a list goes by its name",
					"there is nothing at %s to set", s.path)
			}
		}
	}
	e := &p.Experiment
	r.Decode(r.tree, e, "")
	e.Defaults()
	for _, path := range []*string{&e.Workflow.Trace, &e.Workflow.File} {
		if *path != "" && !filepath.IsAbs(*path) {
			*path = filepath.Join(filepath.Dir(r.File), *path)
		}
	}
	r.checkReasons()
	if len(r.Problems) == 0 {
		r.check(e)
	}
	return p
}

// checkReasons refuses a reason for something that the file does not set.
func (r *reader) checkReasons() {
	because := yamlfile.Find(r.tree, "because")
	if because == nil {
		return
	}
	for _, f := range r.Mapping(because, "because") {
		if yamlfile.Find(r.tree, f.Key.Value) == nil {
			r.Fail(f.Key, "set it, or remove its reason", "because: nothing is set at %s", f.Key.Value)
		} else if strings.TrimSpace(f.Value.Value) == "" {
			r.Fail(f.Value, "write why it has its value", "because: %s has no reason", f.Key.Value)
		}
	}
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
			return fmt.Errorf("%s: its points differ in their seeds, which --seed would make the same: leave --seed out, or "+
				"give the file one seed", p.File)
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
