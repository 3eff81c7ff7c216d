package flow

import (
	"fmt"
	"slices"

	"fairway/internal/dispatch/rows"
)

// use is an entry of a step by which it reads or writes a rewritten file.
type use struct {
	step   *step
	entry  *entry
	writes bool
}

// begins reports whether the entry is that of the plain step which makes the first version.
func (u use) begins() bool {
	return u.writes && slices.ContainsFunc(u.step.writes, func(e entry) bool { return e.pattern == u.entry.pattern })
}

// setAside finds the files from which jobs do not take their place in the canonical order, since
// they tell no job of a step from another: a file that all of them read under one name, and the
// first version of a rewritten file. So it makes no difference when such a file comes. It does
// where jobs that use rewritten files come before its own: they could then stand behind a job in
// the order of one file that stands behind them in that of another, and wait for each other.
func setAside(w *Workflow) {
	depends := make([]bool, len(w.steps)) // by order: on the order of rewritten files
	for i, s := range w.steps {
		depends[i] = slices.ContainsFunc(s.sharedUses(), func(u use) bool { return !u.begins() })
		for _, before := range s.before() {
			depends[i] = depends[i] || depends[before.order-1]
		}
	}
	for _, s := range w.steps {
		for _, entries := range [][]entry{s.reads, s.rewrites} {
			for i := range entries {
				e := &entries[i]
				e.aside = (e.shared || len(e.pattern.names) == 0) && !slices.ContainsFunc(e.made, func(m *maker) bool {
					return m.step != nil && depends[m.step.order-1]
				})
			}
		}
	}
}

// checkRewrites finds the uses of rewritten files, and those whose order the
// steps leave open.
func (p *parser) checkRewrites(w *Workflow, r *routes) {
	for _, s := range w.steps {
		for i := range s.rewrites {
			e := &s.rewrites[i]
			e.shared = true
			uses := w.usesOf(e.pattern)
			p.rewrittenSources(w, s, e)
			p.firstWriter(s, e, r, uses)
			for _, u := range uses {
				u.entry.shared = true
				p.plainUse(u, uses)
			}
		}
	}
}

// usesOf finds the readers and rewriters of names that fit, in the order of
// the file.
func (w *Workflow) usesOf(name *pattern) []use {
	var uses []use
	for _, s := range w.steps {
		for i := range s.reads {
			if s.reads[i].pattern.overlaps(name) {
				uses = append(uses, use{s, &s.reads[i], false})
			}
		}
		for i := range s.rewrites {
			if s.rewrites[i].pattern.overlaps(name) {
				uses = append(uses, use{s, &s.rewrites[i], true})
			}
		}
	}
	return uses
}

func (p *parser) rewrittenSources(w *Workflow, s *step, e *entry) {
	for _, other := range w.steps {
		for _, source := range other.sources() {
			if source.overlaps(e.pattern) {
				p.FailAt(source.line, source.column, "list it under reads",
					"step %q makes jobs from %q, which step %q rewrites: a rewritten file cannot create jobs", other.name,
					source.text, s.name)
			}
		}
	}
}

// firstWriter allows one writer beside the rewriters: a plain step that comes
// before all of them.
func (p *parser) firstWriter(s *step, e *entry, r *routes, uses []use) {
	for _, m := range r.of(e.pattern) {
		if m.step == nil {
			continue
		}
		for i := range m.step.writes {
			if m.step.writes[i].pattern == m.pattern {
				m.step.writes[i].shared = true
			}
		}
		if m.step.plain() && !m.fresh && m.step.listed < uses[0].step.listed {
			continue
		}
		p.FailAt(m.pattern.line, m.pattern.column, "list it under rewrites too, or make it the first step that uses the "+
			"file, without each and merge",
			"step %q writes %q, which step %q rewrites: their order is left open", m.step.name, m.pattern.text, s.name)
	}
}

// plainUse places a plain step among steps that use the file for each data:
// before all of them, or after all of them.
func (p *parser) plainUse(u use, uses []use) {
	if !u.step.plain() {
		return
	}
	before, after := 0, 0
	for _, other := range uses {
		switch {
		case other.step.plain():
		case other.step.listed < u.step.listed:
			before++
		default:
			after++
		}
	}
	if before > 0 && after > 0 {
		p.FailAt(u.entry.pattern.line, u.entry.pattern.column, "list the step before all others that use the file, or "+
			"after them",
			"step %q uses %q, which other steps before and after it use for each of their data: which version it means is "+
				"left open", u.step.name, u.entry.pattern.text)
		return
	}
	if before > 0 {
		for _, other := range uses {
			if other.step != u.step && other.step.listed < u.step.listed {
				u.step.comesAfter(other.step)
			}
		}
	}
}

func (s *step) comesAfter(other *step) {
	if slices.Contains(s.found.after, other) {
		return
	}
	s.found.after = append(s.found.after, other)
}

// sortSteps gives steps their canonical order: each after the steps whose
// files it takes, and otherwise as listed. It reports cycles.
func (p *parser) sortSteps(w *Workflow) bool {
	needs := make([][]int, len(w.steps))
	for i, s := range w.steps {
		for _, before := range s.before() {
			needs[i] = append(needs[i], before.listed)
		}
	}
	sorted := rows.Topological(needs)
	if len(sorted) < len(w.steps) {
		p.cycle(w, needs, sorted)
		return false
	}
	steps := make([]*step, 0, len(sorted))
	for order, at := range sorted {
		w.steps[at].order = order + 1
		steps = append(steps, w.steps[at])
	}
	w.steps = steps
	return true
}

// cycle names one cycle among the steps that wait for each other.
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
	text := w.steps[path[0]].name
	for i := len(path) - 1; i >= 0; i-- {
		text += " → " + w.steps[path[i]].name
	}
	s := w.steps[path[0]]
	p.FailAt(s.line, 1, "give the outputs names (a folder of their own) that the patterns of earlier steps do not fit",
		"%s", fmt.Sprintf("steps feed each other in a circle: %s", text))
}
