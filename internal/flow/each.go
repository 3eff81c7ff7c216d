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

// add takes a file of one source and calls found for each combination that it
// completes.
func (j *join) add(source int, f *file, values pattern.Binding, found func([]*file, pattern.Binding)) {
	for _, x := range j.sources[source].indexes {
		k := x.key(values)
		x.files[k] = append(x.files[k], joinFile{f, values})
	}
	in := make([]*file, len(j.sources))
	in[source] = f
	j.sources[source].single[f] = struct{}{}
	j.extend(j.plans[source], in, values, found)
}

func (j *join) extend(plan []probe, in []*file, values pattern.Binding, found func([]*file, pattern.Binding)) {
	if len(plan) == 0 {
		for i, f := range in {
			delete(j.sources[i].single, f)
		}
		found(slices.Clone(in), values)
		return
	}
	next := plan[0]
	for _, candidate := range next.index.files[next.index.key(values)] {
		in[next.source] = candidate.file
		j.extend(plan[1:], in, union(values, candidate.values), found)
	}
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
