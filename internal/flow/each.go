package flow

import (
	"maps"
	"slices"
	"strings"

	"fairway/internal/flow/pattern"
)

// join finds the combinations of files, one for each pattern under each, that
// agree in the placeholders which the patterns share. Each combination is
// found once, when the last of its files comes, through indexes by the values
// of the shared placeholders.
type join struct {
	sources []*joinSource
	plans   [][]probe // by the source that a file came to
	files   int       // that came, by which each finds those before it
}

type joinSource struct {
	pattern *pattern.Pattern
	indexes []*joinIndex
	single  map[*file]struct{} // files that are in no combination yet
}

// joinIndex has the files of one source by the values of some placeholders.
type joinIndex struct {
	names []string
	files map[string][]joinFile
}

type joinFile struct {
	file   *file
	values pattern.Binding
	number int // of the files that came to the join
}

type probe struct {
	source int
	index  *joinIndex
}

func newJoin(patterns []*pattern.Pattern) *join {
	j := &join{}
	for _, p := range patterns {
		j.sources = append(j.sources, &joinSource{pattern: p, single: map[*file]struct{}{}})
	}
	for first := range patterns {
		j.plans = append(j.plans, j.plan(first))
	}
	return j
}

// plan orders the other sources so that each shares as much as possible with
// those before it.
func (j *join) plan(first int) []probe {
	bound := slices.Clone(j.sources[first].pattern.Names)
	left := map[int]bool{}
	for i := range j.sources {
		left[i] = i != first
	}
	var plan []probe
	for len(plan) < len(j.sources)-1 {
		best, shared := -1, []string(nil)
		for i := range j.sources {
			if names := intersect(j.sources[i].pattern.Names, bound); left[i] && (best < 0 || len(names) > len(shared)) {
				best, shared = i, names
			}
		}
		left[best] = false
		plan = append(plan, probe{best, j.sources[best].index(shared)})
		bound = append(bound, j.sources[best].pattern.Names...)
	}
	return plan
}

func intersect(names, bound []string) []string {
	var both []string
	for _, n := range names {
		if slices.Contains(bound, n) {
			both = append(both, n)
		}
	}
	return both
}

func (s *joinSource) index(names []string) *joinIndex {
	for _, x := range s.indexes {
		if slices.Equal(x.names, names) {
			return x
		}
	}
	x := &joinIndex{names: names, files: map[string][]joinFile{}}
	s.indexes = append(s.indexes, x)
	return x
}

func (x *joinIndex) key(values pattern.Binding) string {
	if len(x.names) == 1 {
		return values[x.names[0]]
	}
	parts := make([]string, len(x.names))
	for i, n := range x.names {
		parts[i] = values[n]
	}
	return strings.Join(parts, "/")
}

// add takes a file of one source, and returns the combinations that it completes.
func (j *join) add(source int, f *file, values pattern.Binding) *combinations {
	j.files++
	for _, x := range j.sources[source].indexes {
		k := x.key(values)
		x.files[k] = append(x.files[k], joinFile{f, values, j.files})
	}
	c := &combinations{join: j, plan: j.plans[source], in: make([]*file, len(j.sources)), number: j.files}
	c.in[source] = f
	if len(c.plan) > 0 {
		j.sources[source].single[f] = struct{}{}
	}
	c.descend(values)
	return c
}

// combinations are those of one file with files that came before it, one after the other. No file that
// comes while they are gone through is among them: it finds this one itself.
type combinations struct {
	join   *join
	plan   []probe
	in     []*file // of the next, by source
	number int     // of the file
	values []pattern.Binding
	left   [][]joinFile // by probe: those that are still to be tried
}

// descend goes to the next combination with what is chosen so far, whose values are these.
func (c *combinations) descend(values pattern.Binding) {
	c.values = append(c.values, values)
	for len(c.left) < len(c.plan) {
		index := c.plan[len(c.left)].index
		c.left = append(c.left, index.files[index.key(c.values[len(c.left)])])
		if !c.advance() {
			return
		}
	}
}

// advance takes the next file for the innermost probe that has one, and leaves those within it to be tried.
// It reports whether there was one.
func (c *combinations) advance() bool {
	for at := len(c.left) - 1; at >= 0; at-- {
		c.values = c.values[:at+1]
		if left := c.left[at]; len(left) > 0 && left[0].number < c.number {
			c.left[at], c.left = left[1:], c.left[:at+1]
			c.in[c.plan[at].source] = left[0].file
			c.values = append(c.values, union(c.values[at], left[0].values))
			return true
		}
		c.left = c.left[:at]
	}
	c.in = nil
	return false
}

// take returns the next combination, and looks for that after it. There must be one: c.in.
func (c *combinations) take() (in []*file, values pattern.Binding) {
	for i, f := range c.in {
		delete(c.join.sources[i].single, f)
	}
	in, values = slices.Clone(c.in), c.values[len(c.plan)]
	if len(c.plan) == 0 {
		c.in = nil
	} else if c.advance() {
		last := c.values[len(c.values)-1]
		c.values = c.values[:len(c.values)-1]
		c.descend(last)
	}
	return in, values
}

// union returns a itself where b adds nothing.
func union(a, b pattern.Binding) pattern.Binding {
	adds := false
	for name, value := range b {
		if had, ok := a[name]; !ok || had != value {
			adds = true
			break
		}
	}
	if !adds {
		return a
	}
	both := make(pattern.Binding, len(a)+len(b))
	maps.Copy(both, a)
	maps.Copy(both, b)
	return both
}

// join finds what a file that came to a step makes of it with others.
func (f *Flow) join(st *stepState, source int, made *file, values pattern.Binding) {
	c := st.join.add(source, made, values)
	switch {
	case c.in == nil:
	case len(c.plan) == 0:
		f.joined(st, c.in, values)
	default:
		f.makeAll(key{wave: made.wave, step: st.step.Order}, &joins{st, made.wave, c})
	}
}

// joins are the jobs of combinations. Their names are in no order.
type joins struct {
	state *stepState
	wave  int
	left  *combinations
}

func (s *joins) next(f *Flow) (key, bool) {
	in, values := s.left.take()
	f.joined(s.state, in, values)
	return key{wave: s.wave, step: s.state.step.Order}, s.left.in != nil
}

func (f *Flow) joined(st *stepState, in []*file, values pattern.Binding) {
	if st.step.Data.Split != nil {
		f.splitFile(st, in[0], values)
		return
	}
	f.hold(&pendingJob{state: st, values: values, label: st.label(values, in...), in: in, wave: latest(in)})
}

func latest(in []*file) int {
	wave := 0
	for _, f := range in {
		wave = max(wave, f.wave)
	}
	return wave
}

func earliest(in []*file, none int) int {
	if len(in) == 0 {
		return none
	}
	first := in[0].first
	for _, f := range in {
		first = min(first, f.first)
	}
	return first
}

// label names a job by its step and the values that tell it apart. Where
// wildcards do, it has the name of the file.
func (st *stepState) label(values pattern.Binding, in ...*file) string {
	var b strings.Builder
	b.WriteString(st.step.Name)
	seen := map[string]bool{}
	for i, source := range st.step.Data.Each {
		if source.AnyWildcard() {
			b.WriteByte('/')
			b.WriteString(in[i].lfn)
			continue
		}
		for _, name := range source.Names {
			if !seen[name] {
				seen[name] = true
				b.WriteByte('/')
				b.WriteString(values[name])
			}
		}
	}
	return b.String()
}
