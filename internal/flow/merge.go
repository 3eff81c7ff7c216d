package flow

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"fairway/internal/dispatch/rows"
	"fairway/internal/flow/pattern"
	"fairway/internal/flow/workflow"
)

// merging is what a merge step has gathered. A file is first incoming, until
// its place in the sequence is certain, and then in the queue of its group.
type merging struct {
	incoming  rows.Ordered[gathered]
	groups    map[string]*group
	touched   []*group  // whose queue grew, or that end
	sequenced openWaves // with a size limit: files that do not exist yet, so that nothing after them is decided
	byWave    []*group  // complete with their wave, in the order of waves
	unended   int       // groups that may get more merges
	ended     bool      // the data has ended
}

// group is one sequence of merges.
type group struct {
	values pattern.Binding // of the placeholders under by
	key    string
	wave   int     // of its first file
	queue  []*file // in sequence, not taken
	scan   int     // files of queue that were looked at
	bytes  int64   // and their size
	number int     // merges so far
	ending bool    // gets no more files
	done   bool    // and all were taken
	fresh  bool    // is among touched
	aged   []*file // with an age limit: exist, in the order in which they came to
	taken  map[*file]bool
}

func (m *merging) touch(g *group) {
	if !g.fresh {
		g.fresh = true
		m.touched = append(m.touched, g)
	}
}

type gathered struct {
	file  *file
	group *group
}

func (g gathered) Before(other gathered) bool { return g.file.before(other.file) }

func (f *Flow) gather(st *stepState, made *file, values pattern.Binding) {
	m := st.merging
	g := m.group(st.step, made, values)
	m.incoming.Push(gathered{made, g})
	f.touch(st)
	limits := st.step.Data.Limits
	if limits.Size > 0 && made.unsized {
		f.refuse(st, "step %s merges by size, and the server of %s does not tell how large it is: merge by files, or let a "+
			"step copy it before", st.step.Name, made.lfn)
	}
	if limits.Size > 0 && !made.there {
		m.sequenced.add(made.wave)
	}
	if made.there {
		f.mergeable(st, g, made)
	} else if limits.Size > 0 || limits.Latency > 0 {
		made.takers = append(made.takers, mergeTaker{st, g})
	}
}

func (m *merging) group(s *workflow.Step, made *file, values pattern.Binding) *group {
	of := pattern.Binding{}
	parts := make([]string, len(s.Data.By))
	for i, name := range s.Data.By {
		of[name], parts[i] = values[name], values[name]
	}
	key := strings.Join(parts, "/")
	g := m.groups[key]
	if g == nil {
		g = &group{values: of, key: key, wave: made.wave, taken: map[*file]bool{}}
		m.groups[key] = g
		m.unended++
		if s.Found.PerWave {
			at, _ := slices.BinarySearchFunc(m.byWave, g.wave, func(a *group, wave int) int { return a.wave - wave })
			m.byWave = slices.Insert(m.byWave, at, g)
		}
	}
	return g
}

// mergeTaker is told when a gathered file exists.
type mergeTaker struct {
	st *stepState
	g  *group
}

func (t mergeTaker) exists(f *Flow, made *file) {
	if t.st.step.Data.Limits.Size > 0 {
		t.st.merging.sequenced.remove(made.wave)
		t.st.merging.touch(t.g)
		f.touch(t.st)
	}
	f.mergeable(t.st, t.g, made)
}

// mergeUpTo makes the merges that are decided when all files of the sources are known
// up to a wave, and returns up to which wave its own jobs are then known.
func (f *Flow) mergeUpTo(st *stepState, known int) int {
	m := st.merging
	for len(m.incoming) > 0 && m.incoming[0].file.wave <= known {
		next := m.incoming.Pop()
		if !next.group.taken[next.file] {
			next.group.queue = append(next.group.queue, next.file)
			m.touch(next.group)
		}
	}
	f.endGroups(st, known)
	for len(m.touched) > 0 && f.cut(st, m.touched[0]) {
		m.touched[0].fresh = false
		m.touched = m.touched[1:]
	}
	if len(m.touched) == 0 {
		m.touched = nil
	}
	return f.mergesWatermark(st, known)
}

func (f *Flow) mergesWatermark(st *stepState, known int) int {
	m, limits := st.merging, st.step.Data.Limits
	if known == forever && m.unended == 0 {
		return forever
	}
	if limits.Size > 0 {
		known = min(known, m.sequenced.closed(), forever-1)
	}
	if limits.Latency > 0 {
		known = min(known, f.wave-1)
	}
	return known
}

// endGroups finds the groups that get no more files.
func (f *Flow) endGroups(st *stepState, known int) {
	m := st.merging
	for len(m.byWave) > 0 && m.byWave[0].wave <= known {
		m.byWave[0].ending = true
		m.touch(m.byWave[0])
		m.byWave = m.byWave[1:]
	}
	if known == forever && !m.ended {
		m.ended = true
		for _, key := range slices.Sorted(maps.Keys(m.groups)) {
			m.groups[key].ending = true
			m.touch(m.groups[key])
		}
	}
}

// cut ends the merges of a group whose limits are reached, in sequence. It reports whether it came to an end:
// else a piece of merges is to be made known before.
func (f *Flow) cut(st *stepState, g *group) bool {
	if g.done {
		return true
	}
	limits := st.step.Data.Limits
	for g.scan < len(g.queue) {
		next := g.queue[g.scan]
		if limits.Size > 0 && !next.there {
			return true
		}
		if len(f.making) >= f.piece {
			return false
		}
		g.scan++
		g.bytes += next.size
		if limits.Files > 0 && g.scan == limits.Files || limits.Size > 0 && g.bytes >= limits.Size {
			files := g.queue[:g.scan:g.scan]
			g.queue, g.scan, g.bytes = g.queue[g.scan:], 0, 0
			f.mergeJob(st, g, files, latest(files))
		}
	}
	if !g.ending {
		return true
	}
	g.done = true
	st.merging.unended--
	if rest := g.queue; len(rest) > 0 {
		g.queue = nil
		wave := latest(rest)
		if !st.step.Found.PerWave {
			wave = max(wave, f.sourcesEnded(st))
		}
		f.mergeJob(st, g, rest, wave)
	}
	return len(f.making) < f.piece
}

func (f *Flow) mergeJob(st *stepState, g *group, files []*file, wave int) {
	g.number++
	for _, taken := range files {
		if st.step.Data.Limits.Latency > 0 {
			g.taken[taken] = true
		}
	}
	values := union(g.values, pattern.Binding{"merge": strconv.Itoa(g.number)})
	label := st.step.Name
	if g.key != "" {
		label += "/" + g.key
	}
	if st.step.Data.Limits.Any() {
		label += "/" + values["merge"]
	}
	f.hold(&pendingJob{state: st, values: values, label: label, in: files, wave: wave})
}
