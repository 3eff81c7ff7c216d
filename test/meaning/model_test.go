package meaning

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// record is a file of a stream: what the model knows of a file.
type record struct {
	lfn     string
	values  map[string]string
	content string
	wave    int // of the last input file from which it follows
	first   int // of the first
}

// compare is the order in which a merge takes files.
func (r *record) compare(other *record) int {
	return cmp.Or(cmp.Compare(r.wave, other.wave), cmp.Compare(r.first, other.first), natural(r.lfn, other.lfn))
}

// job is what a step makes of records.
type job struct {
	name    string
	values  map[string]string
	in      []*record
	wave    int
	first   int
	content string // of the part of in that a split gives it
}

// world is a workflow while its meaning is worked out.
type world struct {
	*workflow
	streams map[string][]*record // by folder
	calib   string               // the version of calib at this place of the order
	results map[string]string    // by path
}

// meaning are the results of a workflow, by path.
func (w *workflow) meaning() map[string]string {
	m := &world{workflow: w, streams: map[string][]*record{}, results: map[string]string{}}
	waves := m.arrive()
	if w.init {
		m.calib = text("init", nil, w.common)
		m.results["calib"] = m.calib
	} else {
		m.calib = w.first
	}
	for wave := range waves + 1 {
		for _, s := range w.steps {
			if s.ordered() {
				m.run(s, m.jobs(s, func(wanted int) bool { return wanted == wave }))
			}
		}
	}
	for _, s := range w.steps {
		if !s.ordered() {
			m.run(s, m.jobs(s, func(int) bool { return true }))
		}
	}
	m.results["last"] = text("last", nil, m.calib)
	return m.results
}

// arrive gives each file of the inputs its wave, in the order of the workflow file and then by
// name, and returns how many waves there are. The end of an input is a wave, too.
func (m *world) arrive() int {
	wave := 0
	for _, in := range m.inputs {
		for _, path := range slices.SortedFunc(maps.Keys(in.files), natural) {
			wave++
			parts := strings.Split(path, "/")
			values := map[string]string{}
			for i, name := range in.names {
				values[name] = parts[i]
			}
			m.streams[in.folder] = append(m.streams[in.folder], &record{
				in.folder + "/" + path, values, in.files[path], wave, wave,
			})
		}
		wave++
	}
	return wave
}

// jobs are those of a step that follow from data of a wave, in canonical order.
func (m *world) jobs(s *step, at func(wave int) bool) []*job {
	var all []*job
	switch s.kind {
	case plain:
		for number := range s.times {
			all = append(all, &job{values: map[string]string{"number": fmt.Sprint(number + 1)}})
		}
	case merging:
		return m.merges(s)
	default:
		for _, one := range m.streams[s.sources[0].folder] {
			if len(s.sources) == 1 {
				all = append(all, m.parts(s, one)...)
				continue
			}
			for _, two := range m.streams[s.sources[1].folder] {
				if agree(one.values, two.values) {
					values := maps.Clone(one.values)
					maps.Copy(values, two.values)
					all = append(all, &job{
						values: values, in: []*record{one, two}, wave: max(one.wave, two.wave), first: min(one.first, two.first),
					})
				}
			}
		}
	}
	all = slices.DeleteFunc(all, func(j *job) bool { return !at(j.wave) })
	for _, j := range all {
		j.name = s.name
		for _, name := range s.bound() {
			j.name += "/" + j.values[name]
		}
	}
	slices.SortFunc(all, func(a, b *job) int {
		return cmp.Or(cmp.Compare(a.wave, b.wave), cmp.Compare(a.first, b.first), natural(a.name, b.name))
	})
	return all
}

// parts are the jobs of a step that takes one file each: one, or one for each group of lines.
func (m *world) parts(s *step, r *record) []*job {
	if s.kind != splitting {
		return []*job{{values: r.values, in: []*record{r}, wave: r.wave, first: r.first}}
	}
	var all []*job
	lines := strings.SplitAfter(strings.TrimSuffix(r.content, "\n"), "\n")
	for chunk := range slices.Chunk(lines, s.number) {
		values := maps.Clone(r.values)
		values["chunk"] = fmt.Sprint(len(all) + 1)
		part := strings.TrimSuffix(strings.Join(chunk, ""), "\n") + "\n"
		all = append(all, &job{values: values, in: []*record{r}, wave: r.wave, first: r.first, content: part})
	}
	return all
}

func agree(a, b map[string]string) bool {
	for name, value := range a {
		if other, ok := b[name]; ok && other != value {
			return false
		}
	}
	return true
}

func (m *world) merges(s *step) []*job {
	files := slices.SortedFunc(slices.Values(m.streams[s.sources[0].folder]), (*record).compare)
	groups, keys := map[string][]*record{}, []string{}
	for _, r := range files {
		key := ""
		for _, name := range s.by {
			key += "/" + r.values[name]
		}
		if groups[key] == nil {
			keys = append(keys, key)
		}
		groups[key] = append(groups[key], r)
	}
	var all []*job
	for _, key := range keys {
		most := len(groups[key])
		if s.number > 0 {
			most = s.number
		}
		number := 0
		for part := range slices.Chunk(groups[key], most) {
			number++
			values := map[string]string{"merge": fmt.Sprint(number)}
			for _, name := range s.by {
				values[name] = part[0].values[name]
			}
			all = append(all, &job{values: values, in: part})
		}
	}
	return all
}

// run lets jobs of a step write.
func (m *world) run(s *step, jobs []*job) {
	for _, j := range jobs {
		m.write(s, j)
	}
}

func (m *world) write(s *step, j *job) {
	read := j.content
	if j.content == "" {
		for _, r := range j.in {
			read += r.content
		}
	}
	if s.kind == merging && !s.sources[0].ordered {
		var hashes []string
		for _, r := range j.in {
			hashes = append(hashes, sum(r.content)+"\n")
		}
		slices.Sort(hashes)
		read = strings.Join(hashes, "")
	}
	if s.common {
		read += m.common
	}
	if s.calib {
		read += m.calib
	}
	values := make([]string, len(s.told()))
	for i, name := range s.told() {
		values[i] = j.values[name]
	}
	made := text(s.label(), values, read)
	if s.kind == rewriting {
		m.calib = m.calib + made
		m.results["calib"] = m.calib
	}
	if s.kind != choosing {
		m.keep(s, j, j.values, made)
		return
	}
	for i := range strings.Count(j.in[0].content, "\n")%2 + 1 {
		values := maps.Clone(j.values)
		values[s.free()] = chosenName(i + 1)
		m.keep(s, j, values, made+fmt.Sprintln(i+1))
	}
}

func chosenName(i int) string { return fmt.Sprintf("k*[%d] \\", i) }

func (m *world) keep(s *step, j *job, values map[string]string, content string) {
	lfn := s.out.folder
	of := map[string]string{}
	for i, name := range s.out.made {
		lfn += "/" + values[name]
		of[s.out.names[i]] = values[name]
	}
	if len(s.out.made) == 0 {
		lfn += "/all"
	}
	path := lfn
	if s.out.isFolder {
		path, lfn = path+"/f", lfn+"/"
	}
	m.streams[s.out.folder] = append(m.streams[s.out.folder], &record{lfn, of, content, j.wave, j.first})
	if s.publish {
		m.results[path] = content
	}
}

// text is what a command writes that has read something.
func text(label string, values []string, read string) string {
	var b strings.Builder
	b.WriteString(label + "\n")
	for _, value := range values {
		b.WriteString(value + "\n")
	}
	b.WriteString(sum(read) + "\n")
	return b.String()
}

func sum(read string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(read)))[:16] }

// natural compares names so that numbers in them count as numbers. No number here begins with 0.
func natural(a, b string) int {
	digits := func(s string) int {
		return len(s) - len(strings.TrimLeft(s, "0123456789"))
	}
	for a != "" && b != "" {
		x, y := digits(a), digits(b)
		if x > 0 && y > 0 {
			if c := cmp.Or(cmp.Compare(x, y), cmp.Compare(a[:x], b[:y])); c != 0 {
				return c
			}
			a, b = a[x:], b[y:]
			continue
		}
		if a[0] != b[0] {
			return cmp.Compare(a[0], b[0])
		}
		a, b = a[1:], b[1:]
	}
	return cmp.Compare(len(a), len(b))
}
