package workflow

import (
	"slices"

	"fairway/internal/flow/pattern"
)

// pinned says that the values of some placeholders name one file of an input:
// all files with the same values descend from it alone.
type pinned struct {
	input *DeclaredInput
	of    map[string]string // placeholder here to placeholder of the input's name
}

// covers reports whether names alone determine the input's file.
func (p *pinned) covers(names []string) bool {
	bound := map[string]bool{}
	for _, name := range names {
		if of, ok := p.of[name]; ok {
			bound[of] = true
		}
	}
	return len(bound) == len(p.input.Names[0].Names)
}

// pin follows placeholders from inputs through the steps, to find merges
// whose groups are complete when all is known of the one input file that they
// descend from. Steps come in canonical order.
func pin(w *Workflow) {
	for _, in := range w.Inputs {
		pinInput(in)
	}
	for _, s := range w.Steps {
		pins := s.pins()
		if pins == nil {
			continue
		}
		if len(s.Data.Merge) > 0 {
			if s.Found.PerWave = pins.covers(s.Data.By); !s.Found.PerWave {
				continue
			}
		}
		for _, m := range s.Found.Makers {
			if pins.covers(m.Pattern.Names) {
				m.pins = pins
			}
		}
	}
}

func pinInput(in *DeclaredInput) {
	if len(in.Names) != 1 {
		return
	}
	of := map[string]string{}
	for _, name := range in.Names[0].Names {
		if !pattern.PlaceholderName.MatchString(name) {
			return
		}
		of[name] = name
	}
	in.makers[0].pins = &pinned{in, of}
}

func (s *Step) pins() *pinned {
	if slices.ContainsFunc(append(s.Reads[:len(s.Reads):len(s.Reads)], s.Rewrites...),
		func(e Entry) bool { return !e.Aside && len(e.Made) > 0 }) {
		return nil // a job may have to wait for a file of another wave
	}
	var all *pinned
	for i, source := range s.Sources() {
		pins := sourcePins(source, s.Found.Feeds[i])
		if pins == nil || all != nil && pins.input != all.input {
			return nil
		}
		if all == nil {
			all = pins
			continue
		}
		all = &pinned{all.input, agreeing(all.of, pins.of)}
	}
	if all == nil || !all.covers(sortedKeys(all.of)) {
		return nil
	}
	return all
}

func agreeing(a, b map[string]string) map[string]string {
	both := map[string]string{}
	for name, of := range a {
		if b[name] == of {
			both[name] = of
		}
	}
	return both
}

// sourcePins translates the pins of the one maker of a source to the
// placeholders of the source.
func sourcePins(source *pattern.Pattern, makers []*Maker) *pinned {
	if len(makers) != 1 || makers[0].pins == nil || !source.SameShape(makers[0].Pattern) {
		return nil
	}
	of := map[string]string{}
	for i, t := range source.Tokens {
		made := makers[0].Pattern.Tokens[i]
		if from, ok := makers[0].pins.of[made.Name]; ok && t.Name != "" {
			of[t.Name] = from
		}
	}
	pins := &pinned{makers[0].pins.input, of}
	if !pins.covers(source.Names) {
		return nil
	}
	return pins
}
