package flow

import (
	"fmt"
	"slices"
	"strings"

	"fairway/internal/logical"
	"fairway/internal/yamlfile"
)

// maker is a pattern of files that come into being: by an input or by the
// jobs of a step.
type maker struct {
	pattern   *pattern
	input     *DeclaredInput
	step      *step
	fresh     bool
	consumers []consumer // who takes such files under each or merge
	named     []consumer // who reads them by their names
	read      bool       // some step reads such files
	pins      *pinned    // where the placeholders come from, if they name one file of an input
}

// consumer is a pattern of a step by which it reads files.
type consumer struct {
	step   *step
	source int // under each or merge
	taking taking
}

func (m *maker) owner() string {
	if m.input != nil {
		return fmt.Sprintf("the input %q", m.input.Name)
	}
	return fmt.Sprintf("step %q", m.step.name)
}

// routes finds makers by the names that they make. Makers are grouped by
// their first path element as far as that is literal, since long workflows
// give each step a folder.
type routes struct {
	makers  []*maker
	folders map[string][]*maker // by first element
	open    []*maker            // whose first element has placeholders
}

func newRoutes(w *Workflow) *routes {
	r := &routes{folders: map[string][]*maker{}}
	for _, in := range w.Inputs {
		for _, name := range in.names {
			m := &maker{pattern: name, input: in}
			in.makers = append(in.makers, m)
			r.add(m)
		}
	}
	for _, s := range w.steps {
		for _, e := range s.writes {
			m := &maker{pattern: e.pattern, step: s, fresh: e.fresh}
			s.found.makers = append(s.found.makers, m)
			r.add(m)
		}
	}
	return r
}

func (r *routes) add(m *maker) {
	r.makers = append(r.makers, m)
	if folder, ok := firstElement(m.pattern); ok {
		r.folders[folder] = append(r.folders[folder], m)
	} else {
		r.open = append(r.open, m)
	}
}

// firstElement is the first path element of p, if it has no placeholder.
func firstElement(p *pattern) (string, bool) {
	folder, _, ok := strings.Cut(p.prefix(), "/")
	return folder, ok || len(p.names) == 0
}

// of gives the makers whose files may fit p, in the order of the file.
func (r *routes) of(p *pattern) []*maker {
	candidates := r.makers
	if folder, ok := firstElement(p); ok {
		candidates = append(r.folders[folder][:len(r.folders[folder]):len(r.folders[folder])], r.open...)
	}
	var found []*maker
	for _, m := range candidates {
		if m.pattern.overlaps(p) {
			found = append(found, m)
		}
	}
	return found
}

// checkSources finds patterns and names that nothing makes.
func (p *parser) checkSources(w *Workflow, r *routes) {
	for _, s := range w.steps {
		s.found.feeds = nil
		for _, source := range s.sources() {
			found := r.of(source)
			if len(found) == 0 && !rewritten(w, source) {
				p.nobodyMakes(s, source, r)
			}
			for _, m := range found {
				m.read = true
				p.checkTaking(s, m, source)
			}
			s.found.feeds = append(s.found.feeds, found)
		}
		for i := range s.reads {
			p.checkRead(w, s, &s.reads[i], r)
		}
		for i := range s.rewrites {
			s.rewrites[i].made = r.of(s.rewrites[i].pattern)
		}
	}
}

// checkTaking finds files whose values a step cannot know.
func (p *parser) checkTaking(s *step, m *maker, source *pattern) {
	t := newTaking(m.pattern, source)
	if what, instead := t.problem(); what != "" {
		p.FailAt(source.line, source.column, instead, "step %q takes files of %s: %s", s.name, m.owner(), what)
	}
}

func (p *parser) checkRead(w *Workflow, s *step, e *entry, r *routes) {
	found := r.of(e.pattern)
	e.made = found
	known := 0
	for _, m := range found {
		m.read = true
		if !m.fresh {
			known++
		}
		if t := newTaking(m.pattern, e.pattern); !t.whole && !t.canMeet(false) {
			p.checkTaking(s, m, e.pattern)
		}
	}
	switch {
	case known > 0 || rewritten(w, e.pattern):
	case len(found) > 0:
		p.FailAt(e.pattern.line, e.pattern.column, fmt.Sprintf("list %q under each, or under merge", found[0].pattern.text),
			"step %q reads %q, but %s chooses the names of these files by content", s.name, e.pattern.text, found[0].owner())
	default:
		p.nobodyMakes(s, e.pattern, r)
	}
}

func rewritten(w *Workflow, name *pattern) bool {
	return slices.ContainsFunc(w.steps, func(s *step) bool {
		return slices.ContainsFunc(s.rewrites, func(e entry) bool { return e.pattern.overlaps(name) })
	})
}

func (p *parser) nobodyMakes(s *step, used *pattern, r *routes) {
	var known []string
	for _, m := range r.makers {
		known = append(known, m.pattern.text)
	}
	instead := "declare it under inputs, or write it in a step"
	if advice := r.folderAdvice(used); advice != "" {
		instead = advice
	} else if in, name := r.inputAt(used); in != nil {
		instead = fmt.Sprintf("the input %q gives these files the names %q: take that, or add as: %q to the input", in.Name,
			name.text, used.text)
	} else if meant := yamlfile.Closest(used.text, known); meant != "" {
		instead = fmt.Sprintf("did you mean %q?", meant)
	}
	p.FailAt(used.line, used.column, instead,
		"missing input: step %q takes %q, but no input and no step makes such a file", s.name, used.text)
}

// folderAdvice is for a name that does not say what it stands for: a file or a
// folder, or what is in a folder. It is empty for others.
func (r *routes) folderAdvice(used *pattern) string {
	for _, m := range r.makers {
		switch made := m.pattern; {
		case made.text == used.text+"/":
			return fmt.Sprintf("%s makes a folder of that name: write %q", m.owner(), made.text)
		case made.text+"/" == used.text:
			return fmt.Sprintf("%s makes a file of that name: write %q", m.owner(), made.text)
		case logical.IsFolder(made.text) && strings.HasPrefix(used.text, made.text):
			return fmt.Sprintf("%s makes the folder %q as a whole: take that, and use what is in it", m.owner(), made.text)
		}
	}
	return ""
}

// inputAt finds the input whose files have a path like this, and another name.
func (r *routes) inputAt(path *pattern) (*DeclaredInput, *pattern) {
	for _, m := range r.makers {
		if m.input == nil {
			continue
		}
		for i, files := range m.input.patterns {
			if files.overlaps(path) {
				return m.input, m.input.names[i]
			}
		}
	}
	return nil, nil
}

// checkWriters finds files with two writers.
func (p *parser) checkWriters(r *routes) {
	for i, m := range r.makers {
		for _, other := range r.of(m.pattern) {
			if at := slices.Index(r.makers, other); at >= i {
				continue
			}
			p.twoMakers(other, m)
		}
	}
}

func (p *parser) twoMakers(a, b *maker) {
	both := fmt.Sprintf("%q", b.pattern.text)
	if a.pattern.text != b.pattern.text {
		both = fmt.Sprintf("one file, since %q and %q can be the same name", a.pattern.text, b.pattern.text)
	}
	switch {
	case a.step != nil && a.step == b.step:
		p.FailAt(b.pattern.line, b.pattern.column, "make the names differ", "step %q may write %s twice", b.step.name, both)
	case a.input != nil && b.step != nil:
		as := "`as`"
		if !strings.Contains(a.pattern.text, "/") { // as it is without `as`
			as = "`as: " + a.input.Name + "/" + a.pattern.text + "`"
		}
		p.FailAt(b.pattern.line, b.pattern.column, "choose another name, or give the input a folder of its own with "+as+
			"; if the step is meant to replace the input, list it under rewrites",
			"step %q writes %q, and a file of the input %q can have that name by %q: whether a reader gets what was there "+
				"before is left open", b.step.name, b.pattern.text, a.input.Name, a.pattern.text)
	case b.input != nil:
		if len(a.pattern.names) == 0 && len(b.pattern.names) == 0 {
			p.FailAt(b.pattern.line, b.pattern.column, "give one of them another name with `as`", "%s and %s both provide %s",
				a.owner(), b.owner(), both)
		}
	default:
		p.FailAt(b.pattern.line, b.pattern.column, "choose another name in one of them; if one is meant to replace the "+
			"file of the other, list it under rewrites",
			"step %q and step %q both write %s, and nothing orders them", a.step.name, b.step.name, both)
	}
}

// connect tells each maker who reads its files, in the canonical order of steps.
func (r *routes) connect(w *Workflow) {
	for _, s := range w.steps {
		for i, makers := range s.found.feeds {
			for _, m := range makers {
				m.consumers = append(m.consumers, consumer{s, i, newTaking(m.pattern, s.sources()[i])})
			}
		}
		for _, e := range s.reads {
			for _, m := range e.made {
				m.named = append(m.named, consumer{step: s, taking: newTaking(m.pattern, e.pattern)})
			}
		}
	}
}
