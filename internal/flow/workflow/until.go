package workflow

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
	if w.RecordedJobs != nil {
		return nil, errors.New("a trace is replayed as a whole: it cannot be run until a step or file")
	}
	goal := w.stepMaking(target)
	if goal == nil {
		return nil, fmt.Errorf("no step is called %q, and none writes a file of that name; the steps are %s", target,
			strings.Join(w.StepNames(), ", "))
	}
	p := &part{target: target, steps: map[string]bool{}, inputs: map[string]bool{}}
	p.need(w, goal)
	return w.read(w.set, p)
}

func (w *Workflow) stepMaking(target string) *Step {
	for _, s := range w.Steps {
		if s.Name == target {
			return s
		}
	}
	for _, s := range w.Steps {
		for _, e := range s.Outputs() {
			if e.Pattern.Fits(target) || e.Pattern.Fits(target+"/") {
				return s
			}
		}
	}
	return nil
}

func (p *part) need(w *Workflow, s *Step) {
	if p.steps[s.Name] {
		return
	}
	p.steps[s.Name] = true
	for _, m := range s.needed() {
		if m.Input != nil {
			p.inputs[m.Input.Name] = true
		}
	}
	for _, before := range s.Before() {
		p.need(w, before)
	}
	for _, mine := range s.SharedUses() {
		for _, other := range w.Steps {
			if slices.ContainsFunc(other.SharedUses(),
				func(u Use) bool { return u.Writes && u.Entry.Pattern.Overlaps(mine.Entry.Pattern) }) {
				p.need(w, other)
			}
		}
		for _, in := range w.Inputs {
			if slices.ContainsFunc(in.Names, mine.Entry.Pattern.Overlaps) {
				p.inputs[in.Name] = true
			}
		}
	}
}

// restrict leaves out of a workflow that was read, and not yet checked, what is not
// of the part.
func (p *part) restrict(w *Workflow) {
	w.Steps = slices.DeleteFunc(w.Steps, func(s *Step) bool { return !p.steps[s.Name] })
	for i, s := range w.Steps {
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
