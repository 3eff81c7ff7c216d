package flow

import "fairway/internal/dispatch"

// Demand is what the jobs of a step ask of the pilot that runs them.
type Demand struct {
	Step  string
	Line  int // of the step, for messages
	Site  string
	Needs dispatch.Resources
	Tools []string
}

// Demands tells what the steps ask of pilots, in the order of the file, so
// that whoever runs the workflow can tell before it begins that it never could.
func (w *Workflow) Demands() []Demand {
	demands := make([]Demand, len(w.steps))
	for _, s := range w.steps {
		demands[s.listed] = Demand{Step: s.name, Line: s.line, Site: s.site, Needs: s.needs, Tools: s.tools}
	}
	return demands
}
