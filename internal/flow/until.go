package flow

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// part is what is left of a workflow when it is run only up to a target: names
// of steps and of inputs.
type part struct {
	target string
	steps  map[string]bool
	inputs map[string]bool
}

// Until gives the workflow with nothing but one step and the steps and inputs
// that this one needs. The target is the name of the step, or that of a file that
// it writes. A target that no step makes is an error.
func (w *Workflow) Until(target string) (*Workflow, error) {
	if w.recorded != nil {
		return nil, errors.New("a trace is replayed as a whole: it cannot be run until a step or file")
	}
	goal := w.stepMaking(target)
	if goal == nil {
		return nil, fmt.Errorf("no step is called %q, and none writes a file of that name; the steps are %s", target,
			strings.Join(w.Steps(), ", "))
	}
	p := &part{target: target, steps: map[string]bool{}, inputs: map[string]bool{}}
	p.need(w, goal)
	return w.read(w.set, p)
}

func (w *Workflow) stepMaking(target string) *step {
	for _, s := range w.steps {
		if s.name == target {
			return s
		}
	}
	for _, s := range w.steps {
		for _, e := range s.outputs() {
			if e.pattern.fits(target) || e.pattern.fits(target+"/") {
				return s
			}
		}
	}
	return nil
}

// need adds a step with all that it depends on. The versions of a rewritten file
// depend on all steps that rewrite it.
func (p *part) need(w *Workflow, s *step) {
	if p.steps[s.name] {
		return
	}
	p.steps[s.name] = true
	for _, m := range s.needed() {
		if m.input != nil {
			p.inputs[m.input.Name] = true
		}
	}
	for _, before := range s.before() {
		p.need(w, before)
	}
	for _, mine := range s.sharedUses() {
		for _, other := range w.steps {
			if slices.ContainsFunc(other.sharedUses(),
				func(u use) bool { return u.writes && u.entry.pattern.overlaps(mine.entry.pattern) }) {
				p.need(w, other)
			}
		}
		for _, in := range w.Inputs {
			if slices.ContainsFunc(in.names, mine.entry.pattern.overlaps) {
				p.inputs[in.Name] = true
			}
		}
	}
}

// restrict leaves out of a workflow that was read, and not yet checked, what is not
// of the part.
func (p *part) restrict(w *Workflow) {
	w.steps = slices.DeleteFunc(w.steps, func(s *step) bool { return !p.steps[s.name] })
	for i, s := range w.steps {
		s.listed = i
	}
	w.Inputs = slices.DeleteFunc(w.Inputs, func(in *DeclaredInput) bool { return !p.inputs[in.Name] })
}

// Target is what the workflow is run up to, or "" if it is run whole.
func (w *Workflow) Target() string {
	if w.part == nil {
		return ""
	}
	return w.part.target
}
