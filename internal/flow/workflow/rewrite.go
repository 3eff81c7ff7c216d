package workflow

import (
	"fmt"
	"slices"

	"fairway/internal/dispatch/rows"
	"fairway/internal/flow/pattern"
)

// Use is an entry of a step by which it reads or writes a rewritten file.
type Use struct {
	Step   *Step
	Entry  *Entry
	Writes bool
}

// Begins reports whether the entry is that of the plain step which makes the first version.
func (u Use) Begins() bool {
	return u.Writes && slices.ContainsFunc(u.Step.Writes, func(e Entry) bool { return e.Pattern == u.Entry.Pattern })
}

// setAside finds the files from which jobs do not take their place in the canonical order, since
// they tell no job of a step from another: a file that all of them read under one name, and the
// first version of a rewritten file. So it makes no difference when such a file comes. It does
// where jobs that use rewritten files come before its own: they could then stand behind a job in
// the order of one file that stands behind them in that of another, and wait for each other.
func setAside(w *Workflow) {
	depends := make([]bool, len(w.Steps)) // by order: on the order of rewritten files
	for i, s := range w.Steps {
		depends[i] = slices.ContainsFunc(s.SharedUses(), func(u Use) bool { return !u.Begins() })
		for _, before := range s.Before() {
			depends[i] = depends[i] || depends[before.Order-1]
		}
	}
	for _, s := range w.Steps {
		for _, entries := range [][]Entry{s.Reads, s.Rewrites} {
			for i := range entries {
				e := &entries[i]
				e.Aside = (e.Shared || len(e.Pattern.Names) == 0) && !slices.ContainsFunc(e.Made, func(m *Maker) bool {
					return m.Step != nil && depends[m.Step.Order-1]
				})
			}
		}
	}
}

// checkRewrites finds the uses of rewritten files, and those whose order the
// steps leave open.
func (p *parser) checkRewrites(w *Workflow, r *routes) {
	for _, s := range w.Steps {
		for i := range s.Rewrites {
			e := &s.Rewrites[i]
			e.Shared = true
			uses := w.usesOf(e.Pattern)
			p.rewrittenSources(w, s, e)
			p.firstWriter(s, e, r, uses)
			for _, u := range uses {
				u.Entry.Shared = true
				p.plainUse(u, uses)
			}
		}
	}
}

func (w *Workflow) usesOf(name *pattern.Pattern) []Use {
	var uses []Use
	for _, s := range w.Steps {
		for i := range s.Reads {
			if s.Reads[i].Pattern.Overlaps(name) {
				uses = append(uses, Use{s, &s.Reads[i], false})
			}
		}
		for i := range s.Rewrites {
			if s.Rewrites[i].Pattern.Overlaps(name) {
				uses = append(uses, Use{s, &s.Rewrites[i], true})
			}
		}
	}
	return uses
}

func (p *parser) rewrittenSources(w *Workflow, s *Step, e *Entry) {
	for _, other := range w.Steps {
		for _, source := range other.Sources() {
			if source.Overlaps(e.Pattern) {
				p.FailAt(source.Line, source.Column, "list it under reads",
					"step %q makes jobs from %q, which step %q rewrites: a rewritten file cannot create jobs", other.Name,
					source.Text, s.Name)
			}
		}
	}
}

// firstWriter allows one writer beside the rewriters: a plain step that comes
// before all of them.
func (p *parser) firstWriter(s *Step, e *Entry, r *routes, uses []Use) {
	for _, m := range r.of(e.Pattern) {
		if m.Step == nil {
			continue
		}
		for i := range m.Step.Writes {
			if m.Step.Writes[i].Pattern == m.Pattern {
				m.Step.Writes[i].Shared = true
			}
		}
		if m.Step.Plain() && !m.Fresh && m.Step.listed < uses[0].Step.listed {
			continue
		}
		p.FailAt(m.Pattern.Line, m.Pattern.Column, "list it under rewrites too, or make it the first step that uses the "+
			"file, without each and merge",
			"step %q writes %q, which step %q rewrites: their order is left open", m.Step.Name, m.Pattern.Text, s.Name)
	}
}

// plainUse places a plain step among steps that use the file for each data:
// before all of them, or after all of them.
func (p *parser) plainUse(u Use, uses []Use) {
	if !u.Step.Plain() {
		return
	}
	before, after := 0, 0
	for _, other := range uses {
		switch {
		case other.Step.Plain():
		case other.Step.listed < u.Step.listed:
			before++
		default:
			after++
		}
	}
	if before > 0 && after > 0 {
		p.FailAt(u.Entry.Pattern.Line, u.Entry.Pattern.Column, "list the step before all others that use the file, or "+
			"after them",
			"step %q uses %q, which other steps before and after it use for each of their data: which version it means is "+
				"left open", u.Step.Name, u.Entry.Pattern.Text)
		return
	}
	if before > 0 {
		for _, other := range uses {
			if other.Step != u.Step && other.Step.listed < u.Step.listed {
				u.Step.comesAfter(other.Step)
			}
		}
	}
}

func (s *Step) comesAfter(other *Step) {
	if slices.Contains(s.Found.After, other) {
		return
	}
	s.Found.After = append(s.Found.After, other)
}

// sortSteps gives steps their canonical order: each after the steps whose
// files it takes, and otherwise as listed. It reports cycles.
func (p *parser) sortSteps(w *Workflow) bool {
	needs := make([][]int, len(w.Steps))
	for i, s := range w.Steps {
		for _, before := range s.Before() {
			needs[i] = append(needs[i], before.listed)
		}
	}
	sorted := rows.Topological(needs)
	if len(sorted) < len(w.Steps) {
		p.cycle(w, needs, sorted)
		return false
	}
	steps := make([]*Step, 0, len(sorted))
	for order, at := range sorted {
		w.Steps[at].Order = order + 1
		steps = append(steps, w.Steps[at])
	}
	w.Steps = steps
	return true
}

func (p *parser) cycle(w *Workflow, needs [][]int, sorted []int) {
	at := 0
	for slices.Contains(sorted, at) {
		at++
	}
	seen := map[int]int{}
	var path []int
	for {
		if first, ok := seen[at]; ok {
			path = path[first:]
			break
		}
		seen[at] = len(path)
		path = append(path, at)
		for _, before := range needs[at] {
			if !slices.Contains(sorted, before) {
				at = before
				break
			}
		}
	}
	text := w.Steps[path[0]].Name
	for i := len(path) - 1; i >= 0; i-- {
		text += " → " + w.Steps[path[i]].Name
	}
	s := w.Steps[path[0]]
	p.FailAt(s.line, 1, "give the outputs names (a folder of their own) that the patterns of earlier steps do not fit",
		"%s", fmt.Sprintf("steps feed each other in a circle: %s", text))
}
