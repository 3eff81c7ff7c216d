package workflow

import (
	"fmt"
	"slices"
	"strings"

	"fairway/internal/flow/pattern"
	"fairway/internal/logical"
	"fairway/internal/yamlfile"
)

// Maker is a pattern of files that come into being: by an input or by the
// jobs of a step.
type Maker struct {
	Pattern   *pattern.Pattern
	Input     *DeclaredInput
	Step      *Step
	Fresh     bool
	Consumers []consumer // who takes such files under each or merge
	Named     []consumer // who reads them by their names
	Read      bool       // some step reads such files
	pins      *pinned    // where the placeholders come from, if they name one file of an input
}

type consumer struct {
	Step   *Step
	Source int // under each or merge
	Taking pattern.Taking
}

// Owner names the step or the input for people.
func (m *Maker) Owner() string {
	if m.Input != nil {
		return fmt.Sprintf("the input %q", m.Input.Name)
	}
	return fmt.Sprintf("step %q", m.Step.Name)
}

// routes finds makers by the names that they make. Makers are grouped by
// their first path element as far as that is literal, since long workflows
// give each step a folder.
type routes struct {
	makers  []*Maker
	folders map[string][]*Maker // by first element
	open    []*Maker            // whose first element has placeholders
}

func newRoutes(w *Workflow) *routes {
	r := &routes{folders: map[string][]*Maker{}}
	for _, in := range w.Inputs {
		for _, name := range in.Names {
			m := &Maker{Pattern: name, Input: in}
			in.makers = append(in.makers, m)
			r.add(m)
		}
	}
	for _, s := range w.Steps {
		for _, e := range s.Writes {
			m := &Maker{Pattern: e.Pattern, Step: s, Fresh: e.fresh}
			s.Found.Makers = append(s.Found.Makers, m)
			r.add(m)
		}
	}
	return r
}

func (r *routes) add(m *Maker) {
	r.makers = append(r.makers, m)
	if folder, ok := pattern.FirstElement(m.Pattern); ok {
		r.folders[folder] = append(r.folders[folder], m)
	} else {
		r.open = append(r.open, m)
	}
}

func (r *routes) of(p *pattern.Pattern) []*Maker {
	candidates := r.makers
	if folder, ok := pattern.FirstElement(p); ok {
		candidates = append(r.folders[folder][:len(r.folders[folder]):len(r.folders[folder])], r.open...)
	}
	var found []*Maker
	for _, m := range candidates {
		if m.Pattern.Overlaps(p) {
			found = append(found, m)
		}
	}
	return found
}

func (p *parser) checkSources(w *Workflow, r *routes) {
	for _, s := range w.Steps {
		s.Found.Feeds = nil
		for _, source := range s.Sources() {
			found := r.of(source)
			if len(found) == 0 && !rewritten(w, source) {
				p.nobodyMakes(s, source, r)
			}
			for _, m := range found {
				m.Read = true
				p.checkTaking(s, m, source)
			}
			s.Found.Feeds = append(s.Found.Feeds, found)
		}
		for i := range s.Reads {
			p.checkRead(w, s, &s.Reads[i], r)
		}
		for i := range s.Rewrites {
			s.Rewrites[i].Made = r.of(s.Rewrites[i].Pattern)
		}
	}
}

func (p *parser) checkTaking(s *Step, m *Maker, source *pattern.Pattern) {
	t := pattern.NewTaking(m.Pattern, source)
	if what, instead := t.Problem(); what != "" {
		p.FailAt(source.Line, source.Column, instead, "step %q takes files of %s: %s", s.Name, m.Owner(), what)
	}
}

func (p *parser) checkRead(w *Workflow, s *Step, e *Entry, r *routes) {
	found := r.of(e.Pattern)
	e.Made = found
	known := 0
	for _, m := range found {
		m.Read = true
		if !m.Fresh {
			known++
		}
		if t := pattern.NewTaking(m.Pattern, e.Pattern); !t.Whole && !t.CanMeet(false) {
			p.checkTaking(s, m, e.Pattern)
		}
	}
	switch {
	case known > 0 || rewritten(w, e.Pattern):
	case len(found) > 0:
		p.FailAt(e.Pattern.Line, e.Pattern.Column, fmt.Sprintf("list %q under each, or under merge", found[0].Pattern.Text),
			"step %q reads %q, but %s chooses the names of these files by content", s.Name, e.Pattern.Text, found[0].Owner())
	default:
		p.nobodyMakes(s, e.Pattern, r)
	}
}

func rewritten(w *Workflow, name *pattern.Pattern) bool {
	return slices.ContainsFunc(w.Steps, func(s *Step) bool {
		return slices.ContainsFunc(s.Rewrites, func(e Entry) bool { return e.Pattern.Overlaps(name) })
	})
}

func (p *parser) nobodyMakes(s *Step, used *pattern.Pattern, r *routes) {
	var known []string
	for _, m := range r.makers {
		known = append(known, m.Pattern.Text)
	}
	instead := "declare it under inputs, or write it in a step"
	if advice := r.folderAdvice(used); advice != "" {
		instead = advice
	} else if in, name := r.inputAt(used); in != nil {
		instead = fmt.Sprintf("the input %q gives these files the names %q: take that, or add as: %q to the input", in.Name,
			name.Text, used.Text)
	} else if meant := yamlfile.Closest(used.Text, known); meant != "" {
		instead = fmt.Sprintf("did you mean %q?", meant)
	}
	p.FailAt(used.Line, used.Column, instead,
		"missing input: step %q takes %q, but no input and no step makes such a file", s.Name, used.Text)
}

// folderAdvice is for a name that does not say what it stands for: a file or a
// folder, or what is in a folder. It is empty for others.
func (r *routes) folderAdvice(used *pattern.Pattern) string {
	for _, m := range r.makers {
		switch made := m.Pattern; {
		case made.Text == used.Text+"/":
			return fmt.Sprintf("%s makes a folder of that name: write %q", m.Owner(), made.Text)
		case made.Text+"/" == used.Text:
			return fmt.Sprintf("%s makes a file of that name: write %q", m.Owner(), made.Text)
		case logical.IsFolder(made.Text) && strings.HasPrefix(used.Text, made.Text):
			return fmt.Sprintf("%s makes the folder %q as a whole: take that, and use what is in it", m.Owner(), made.Text)
		}
	}
	return ""
}

func (r *routes) inputAt(path *pattern.Pattern) (*DeclaredInput, *pattern.Pattern) {
	for _, m := range r.makers {
		if m.Input == nil {
			continue
		}
		for i, files := range m.Input.Paths {
			if files.Overlaps(path) {
				return m.Input, m.Input.Names[i]
			}
		}
	}
	return nil, nil
}

func (p *parser) checkWriters(r *routes) {
	for i, m := range r.makers {
		for _, other := range r.of(m.Pattern) {
			if at := slices.Index(r.makers, other); at >= i {
				continue
			}
			p.twoMakers(other, m)
		}
	}
}

func (p *parser) twoMakers(a, b *Maker) {
	both := fmt.Sprintf("%q", b.Pattern.Text)
	if a.Pattern.Text != b.Pattern.Text {
		both = fmt.Sprintf("one file, since %q and %q can be the same name", a.Pattern.Text, b.Pattern.Text)
	}
	switch {
	case a.Step != nil && a.Step == b.Step:
		p.FailAt(b.Pattern.Line, b.Pattern.Column, "make the names differ", "step %q may write %s twice", b.Step.Name, both)
	case a.Input != nil && b.Step != nil:
		as := "`as`"
		if !strings.Contains(a.Pattern.Text, "/") { // as it is without `as`
			as = "`as: " + a.Input.Name + "/" + a.Pattern.Text + "`"
		}
		p.FailAt(b.Pattern.Line, b.Pattern.Column, "choose another name, or give the input a folder of its own with "+as+
			"; if the step is meant to replace the input, list it under rewrites",
			"step %q writes %q, and a file of the input %q can have that name by %q: whether a reader gets what was there "+
				"before is left open", b.Step.Name, b.Pattern.Text, a.Input.Name, a.Pattern.Text)
	case b.Input != nil:
		if len(a.Pattern.Names) == 0 && len(b.Pattern.Names) == 0 {
			p.FailAt(b.Pattern.Line, b.Pattern.Column, "give one of them another name with `as`", "%s and %s both provide %s",
				a.Owner(), b.Owner(), both)
		}
	default:
		p.FailAt(b.Pattern.Line, b.Pattern.Column, "choose another name in one of them; if one is meant to replace the "+
			"file of the other, list it under rewrites",
			"step %q and step %q both write %s, and nothing orders them", a.Step.Name, b.Step.Name, both)
	}
}

// connect tells each maker who reads its files, in the canonical order of steps.
func (r *routes) connect(w *Workflow) {
	for _, s := range w.Steps {
		for i, makers := range s.Found.Feeds {
			for _, m := range makers {
				m.Consumers = append(m.Consumers, consumer{s, i, pattern.NewTaking(m.Pattern, s.Sources()[i])})
			}
		}
		for _, e := range s.Reads {
			for _, m := range e.Made {
				m.Named = append(m.Named, consumer{Step: s, Taking: pattern.NewTaking(m.Pattern, e.Pattern)})
			}
		}
	}
}
