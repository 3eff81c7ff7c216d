package flow

import "slices"

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
	return len(bound) == len(p.input.names[0].names)
}

// pin follows placeholders from inputs through the steps, to find merges
// whose groups are complete when all is known of the one input file that they
// descend from. Steps come in canonical order.
func pin(w *Workflow) {
	for _, in := range w.Inputs {
		pinInput(in)
	}
	for _, s := range w.steps {
		pins := s.pins()
		if pins == nil {
			continue
		}
		if len(s.data.merge) > 0 {
			if s.found.perWave = pins.covers(s.data.by); !s.found.perWave {
				continue
			}
		}
		for _, m := range s.found.makers {
			if pins.covers(m.pattern.names) {
				m.pins = pins
			}
		}
	}
}

func pinInput(in *DeclaredInput) {
	if len(in.names) != 1 {
		return
	}
	of := map[string]string{}
	for _, name := range in.names[0].names {
		if !placeholderName.MatchString(name) {
			return
		}
		of[name] = name
	}
	in.makers[0].pins = &pinned{in, of}
}

// pins gives what the placeholders of a job's sources are pinned to, if all
// sources are pinned alike and its place follows from nothing else.
func (s *step) pins() *pinned {
	if slices.ContainsFunc(append(s.reads[:len(s.reads):len(s.reads)], s.rewrites...),
		func(e entry) bool { return !e.aside && len(e.made) > 0 }) {
		return nil // a job may have to wait for a file of another wave
	}
	var all *pinned
	for i, source := range s.sources() {
		pins := sourcePins(source, s.found.feeds[i])
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
func sourcePins(source *pattern, makers []*maker) *pinned {
	if len(makers) != 1 || makers[0].pins == nil || !source.sameShape(makers[0].pattern) {
		return nil
	}
	of := map[string]string{}
	for i, t := range source.tokens {
		made := makers[0].pattern.tokens[i]
		if from, ok := makers[0].pins.of[made.name]; ok && t.name != "" {
			of[t.name] = from
		}
	}
	pins := &pinned{makers[0].pins.input, of}
	if !pins.covers(source.names) {
		return nil
	}
	return pins
}
