package workflow

import (
	"fmt"
	"slices"
	"strings"

	"fairway/internal/flow/pattern"
	"fairway/internal/logical"
	"fairway/internal/taskqueue"
	"fairway/internal/yamlfile"
)

func (p *parser) check(w *Workflow) {
	for _, s := range w.Steps {
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
	for _, s := range w.Steps {
		for _, m := range s.needed() {
			if s.Needs.Tasks > 1 && m.Step != nil && m.Step.Needs.Storage == taskqueue.StorageCache {
				p.FailAt(s.line, 1, fmt.Sprintf("write storage: temporary in step %q", m.Step.Name),
					"step %q has %d tasks, and reads what step %q keeps in caches only", s.Name, s.Needs.Tasks, m.Step.Name)
			}
		}
	}
}

// checkPlaceholders finds which placeholders are bound, and that outputs tell
// the jobs of the step apart.
func (p *parser) checkPlaceholders(s *Step) {
	s.Found.bound = s.bindings()
	for _, source := range s.Sources() {
		p.placeholders(source.Line, source.Column, source.Names)
	}
	for _, e := range s.Reads {
		p.undefined(s, e.Pattern, "the name of an input must be known before the job runs")
	}
	for _, e := range s.Rewrites {
		p.undefined(s, e.Pattern, "the name of a rewritten file must be known before the job runs")
	}
	for i := range s.Writes {
		if e := &s.Writes[i]; e.Log {
			p.undefined(s, e.Pattern, "the name of a log must be known before the job runs")
		}
		p.checkOutput(s, &s.Writes[i])
	}
}

func (s *Step) bindings() []string {
	var bound []string
	add := func(names ...string) {
		for _, name := range names {
			if !slices.Contains(bound, name) && pattern.PlaceholderName.MatchString(name) {
				bound = append(bound, name)
			}
		}
	}
	if len(s.Data.Merge) > 0 {
		add(s.Data.By...)
		add("merge")
		return bound
	}
	for _, each := range s.Data.Each {
		add(each.Names...)
	}
	if s.Data.Split != nil {
		add("chunk", "first", "last")
	}
	if s.Data.Times > 0 {
		add("number")
	}
	return bound
}

func (p *parser) undefined(s *Step, used *pattern.Pattern, why string) {
	for _, name := range used.Names {
		switch {
		case !pattern.PlaceholderName.MatchString(name):
			p.FailAt(used.Line, used.Column, "name the file; to take many files use each or merge",
				"step %q: %q has a wildcard; %s", s.Name, used.Text, why)
		case slices.Contains(s.Found.bound, name):
		case s.mergedAway(name):
			p.FailAt(used.Line, used.Column, fmt.Sprintf("add `by: [%s]`, or leave it out", name),
				"step %q: {%s} in %q differs between the files of one merge", s.Name, name, used.Text)
		default:
			p.FailAt(used.Line, used.Column, s.boundAdvice(name), "step %q: {%s} in %q has no value; %s", s.Name, name,
				used.Text, why)
		}
	}
}

func (s *Step) mergedAway(name string) bool {
	return slices.ContainsFunc(s.Data.Merge, func(m *pattern.Pattern) bool { return m.Has(name) })
}

func (s *Step) boundAdvice(name string) string {
	if len(s.Found.bound) == 0 {
		return "bind it under each, or write a fixed name"
	}
	return yamlfile.DidYouMean(name, s.Found.bound)
}

func (p *parser) checkOutput(s *Step, e *Entry) {
	for _, name := range e.Pattern.Names {
		switch {
		case slices.Contains(s.Found.bound, name):
		case name[0] == '?':
			p.FailAt(e.Pattern.Line, e.Pattern.Column, "use * or a {placeholder}", "step %q: %q has a '?'", s.Name,
				e.Pattern.Text)
		case slices.Contains(boundPlaceholders, name):
			p.FailAt(e.Pattern.Line, e.Pattern.Column, "choose another name", "step %q: {%s} in %q has a value only in steps "+
				"with split (first, last, chunk), times (number) or merge (merge)", s.Name, name, e.Pattern.Text)
		case s.mergedAway(name):
			p.undefined(s, e.Pattern, "")
		default:
			e.fresh = true
			p.placeholders(e.Pattern.Line, e.Pattern.Column, []string{name})
		}
	}
	if e.fresh {
		p.checkTouching(s, e.Pattern)
	}
	if part := e.Pattern.LongPart(); part != "" {
		p.FailAt(e.Pattern.Line, e.Pattern.Column, "choose a shorter name", "step %q: a part of the name %q has %d bytes, "+
			"the limit for outputs is %d", s.Name, e.Pattern.Text, len(part), logical.MaxPart)
	}
	missing := s.missing(e.Pattern)
	if wild := slices.IndexFunc(missing,
		func(name string) bool { return !pattern.PlaceholderName.MatchString(name) }); wild >= 0 {
		p.FailAt(e.Pattern.Line, e.Pattern.Column, "write a {placeholder} under each in place of the wildcard, and put it "+
			"into the name",
			"step %q: two of its jobs would write %q, since a wildcard binds nothing", s.Name, e.Pattern.Text)
		return
	}
	if len(missing) > 0 {
		list := "{" + strings.Join(missing, "}, {") + "}"
		p.FailAt(e.Pattern.Line, e.Pattern.Column,
			fmt.Sprintf("put %s into the name; if each job is meant to replace the file of the one before, list it under "+
				"rewrites instead of writes", list),
			"step %q: two of its jobs would write %q, since nothing in it tells %s apart", s.Name, e.Pattern.Text, list)
	}
}

// checkTouching finds values that could not be told apart in a name that a job
// chooses.
func (p *parser) checkTouching(s *Step, chosen *pattern.Pattern) {
	if a, b := chosen.Touching(s.Found.bound); a != "" {
		p.FailAt(chosen.Line, chosen.Column, "put text between them, or take one placeholder for both",
			"step %q: nothing in %q tells where %s ends and %s begins", s.Name, chosen.Text, a, b)
	}
}

func (s *Step) missing(output *pattern.Pattern) []string {
	var lacks []string
	need := func(names ...string) {
		for _, name := range names {
			if (!pattern.PlaceholderName.MatchString(name) || !output.Has(name)) && !slices.Contains(lacks, name) {
				lacks = append(lacks, name)
			}
		}
	}
	if len(s.Data.Merge) > 0 {
		need(s.Data.By...)
		if s.Data.Limits.Any() {
			need("merge")
		}
		return lacks
	}
	if s.Data.Times > 0 {
		need("number")
	}
	for _, each := range s.Data.Each {
		need(each.Names...)
	}
	if s.Data.Split != nil && !output.Has("chunk") && !output.Has("first") && !output.Has("last") {
		need("chunk")
	}
	return lacks
}

func (p *parser) checkNames(s *Step) {
	for _, e := range append(s.Reads[:len(s.Reads):len(s.Reads)], s.Outputs()...) {
		if e.Name != "" && slices.Contains(s.Found.bound, e.Name) {
			p.FailAt(e.Pattern.Line, e.Pattern.Column, "choose another name",
				"step %q: the file %q has the name of a placeholder", s.Name, e.Name)
		}
	}
	if s.Data.Split == nil {
		return
	}
	for _, name := range s.Data.Each[0].Names {
		if name == "chunk" || name == "first" || name == "last" {
			p.FailAt(s.Data.Each[0].Line, s.Data.Each[0].Column, "choose another name",
				"step %q: split gives {%s} a value of its own",
				s.Name, name)
		}
	}
}
