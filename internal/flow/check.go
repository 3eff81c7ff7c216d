package flow

import (
	"fmt"
	"slices"
	"strings"

	"fairway/internal/logical"
	"fairway/internal/taskqueue"
	"fairway/internal/yamlfile"
)

// check finds what is wrong between the parts of a workflow that are right
// for themselves, and fills in what steps know of each other.
func (p *parser) check(w *Workflow) {
	for _, s := range w.steps {
		p.checkPlaceholders(s)
		p.checkNames(s)
		p.checkVariables(s)
	}
	p.checkCommands(w)
	p.checkLimits(w)
	r := newRoutes(w)
	p.checkSources(w, r)
	p.checkWriters(r)
	p.checkRewrites(w, r)
	p.checkNesting(w, r)
	if len(p.Problems) > 0 || !p.sortSteps(w) {
		return
	}
	setAside(w)
	r.connect(w)
	pin(w)
	p.checkGangInputs(w)
}

// checkGangInputs refuses steps of several tasks that read what stays in caches: no cache is that of
// all tasks.
func (p *parser) checkGangInputs(w *Workflow) {
	for _, s := range w.steps {
		for _, m := range s.needed() {
			if s.needs.tasks > 1 && m.step != nil && m.step.needs.storage == taskqueue.StorageCache {
				p.FailAt(s.line, 1, fmt.Sprintf("write storage: temporary in step %q", m.step.name),
					"step %q has %d tasks, and reads what step %q keeps in caches only", s.name, s.needs.tasks, m.step.name)
			}
		}
	}
}

// checkPlaceholders finds which placeholders are bound, and that outputs tell
// the jobs of the step apart.
func (p *parser) checkPlaceholders(s *step) {
	s.found.bound = s.bindings()
	for _, source := range s.sources() {
		p.placeholders(source.line, source.column, source.names)
	}
	for _, e := range s.reads {
		p.undefined(s, e.pattern, "the name of an input must be known before the job runs")
	}
	for _, e := range s.rewrites {
		p.undefined(s, e.pattern, "the name of a rewritten file must be known before the job runs")
	}
	for i := range s.writes {
		if e := &s.writes[i]; e.log {
			p.undefined(s, e.pattern, "the name of a log must be known before the job runs")
		}
		p.checkOutput(s, &s.writes[i])
	}
}

// bindings are the placeholders that have a value before a job of s runs.
func (s *step) bindings() []string {
	var bound []string
	add := func(names ...string) {
		for _, name := range names {
			if !slices.Contains(bound, name) && placeholderName.MatchString(name) {
				bound = append(bound, name)
			}
		}
	}
	if len(s.data.merge) > 0 {
		add(s.data.by...)
		add("merge")
		return bound
	}
	for _, each := range s.data.each {
		add(each.names...)
	}
	if s.data.split != nil {
		add("chunk", "first", "last")
	}
	if s.data.times > 0 {
		add("number")
	}
	return bound
}

func (p *parser) undefined(s *step, used *pattern, why string) {
	for _, name := range used.names {
		switch {
		case !placeholderName.MatchString(name):
			p.FailAt(used.line, used.column, "name the file; to take many files use each or merge",
				"step %q: %q has a wildcard; %s", s.name, used.text, why)
		case slices.Contains(s.found.bound, name):
		case s.mergedAway(name):
			p.FailAt(used.line, used.column, fmt.Sprintf("add `by: [%s]`, or leave it out", name),
				"step %q: {%s} in %q differs between the files of one merge", s.name, name, used.text)
		default:
			p.FailAt(used.line, used.column, s.boundAdvice(name), "step %q: {%s} in %q has no value; %s", s.name, name,
				used.text, why)
		}
	}
}

func (s *step) mergedAway(name string) bool {
	return slices.ContainsFunc(s.data.merge, func(m *pattern) bool { return m.has(name) })
}

func (s *step) boundAdvice(name string) string {
	if len(s.found.bound) == 0 {
		return "bind it under each, or write a fixed name"
	}
	return yamlfile.DidYouMean(name, s.found.bound)
}

func (p *parser) checkOutput(s *step, e *entry) {
	for _, name := range e.pattern.names {
		switch {
		case slices.Contains(s.found.bound, name):
		case name[0] == '?':
			p.FailAt(e.pattern.line, e.pattern.column, "use * or a {placeholder}", "step %q: %q has a '?'", s.name,
				e.pattern.text)
		case slices.Contains(boundPlaceholders, name):
			p.FailAt(e.pattern.line, e.pattern.column, "choose another name", "step %q: {%s} in %q has a value only in steps "+
				"with split (first, last, chunk), times (number) or merge (merge)", s.name, name, e.pattern.text)
		case s.mergedAway(name):
			p.undefined(s, e.pattern, "")
		default:
			e.fresh = true
			p.placeholders(e.pattern.line, e.pattern.column, []string{name})
		}
	}
	if e.fresh {
		p.checkTouching(s, e.pattern)
	}
	if part := e.pattern.longPart(); part != "" {
		p.FailAt(e.pattern.line, e.pattern.column, "choose a shorter name", "step %q: a part of the name %q has %d bytes, "+
			"the limit for outputs is %d", s.name, e.pattern.text, len(part), logical.MaxPart)
	}
	missing := s.missing(e.pattern)
	if wild := slices.IndexFunc(missing, func(name string) bool { return !placeholderName.MatchString(name) }); wild >= 0 {
		p.FailAt(e.pattern.line, e.pattern.column, "write a {placeholder} under each in place of the wildcard, and put it "+
			"into the name",
			"step %q: two of its jobs would write %q, since a wildcard binds nothing", s.name, e.pattern.text)
		return
	}
	if len(missing) > 0 {
		list := "{" + strings.Join(missing, "}, {") + "}"
		p.FailAt(e.pattern.line, e.pattern.column,
			fmt.Sprintf("put %s into the name; if each job is meant to replace the file of the one before, list it under "+
				"rewrites instead of writes", list),
			"step %q: two of its jobs would write %q, since nothing in it tells %s apart", s.name, e.pattern.text, list)
	}
}

// checkTouching finds values that could not be told apart in a name that a job
// chooses.
func (p *parser) checkTouching(s *step, chosen *pattern) {
	if a, b := chosen.touching(s.found.bound); a != "" {
		p.FailAt(chosen.line, chosen.column, "put text between them, or take one placeholder for both",
			"step %q: nothing in %q tells where %s ends and %s begins", s.name, chosen.text, a, b)
	}
}

// missing are the placeholders that an output lacks to differ between any two
// jobs of s.
func (s *step) missing(output *pattern) []string {
	var lacks []string
	need := func(names ...string) {
		for _, name := range names {
			if (!placeholderName.MatchString(name) || !output.has(name)) && !slices.Contains(lacks, name) {
				lacks = append(lacks, name)
			}
		}
	}
	if len(s.data.merge) > 0 {
		need(s.data.by...)
		if s.data.limits.any() {
			need("merge")
		}
		return lacks
	}
	if s.data.times > 0 {
		need("number")
	}
	for _, each := range s.data.each {
		need(each.names...)
	}
	if s.data.split != nil && !output.has("chunk") && !output.has("first") && !output.has("last") {
		need("chunk")
	}
	return lacks
}

// checkNames finds a named file with the name of a placeholder.
func (p *parser) checkNames(s *step) {
	for _, e := range append(s.reads[:len(s.reads):len(s.reads)], s.outputs()...) {
		if e.name != "" && slices.Contains(s.found.bound, e.name) {
			p.FailAt(e.pattern.line, e.pattern.column, "choose another name",
				"step %q: the file %q has the name of a placeholder", s.name, e.name)
		}
	}
	if s.data.split == nil {
		return
	}
	for _, name := range s.data.each[0].names {
		if name == "chunk" || name == "first" || name == "last" {
			p.FailAt(s.data.each[0].line, s.data.each[0].column, "choose another name",
				"step %q: split gives {%s} a value of its own",
				s.name, name)
		}
	}
}
