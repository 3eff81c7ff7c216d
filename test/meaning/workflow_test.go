package meaning

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
)

// workflow is a random workflow with its files.
type workflow struct {
	random *rand.Rand
	inputs []*input
	steps  []*step
	init   bool   // a step makes the first version of calib
	first  string // else an input has it
	common string // a file that many steps read
}

// input is declared data: files by the last parts of their paths, which are values.
type input struct {
	stream
	files map[string]string
}

// stream are files of one pattern.
type stream struct {
	folder   string
	made     []string // placeholders, each a part of the name, as its maker calls them
	names    []string // the same as others call them, since chunk, merge and number are of one step
	isFolder bool
	ordered  bool // the model knows the places of these files in the canonical order
}

func (s *stream) pattern(names []string) string {
	name := s.folder
	for _, placeholder := range names {
		name += "/{" + placeholder + "}"
	}
	if len(s.names) == 0 {
		name += "/all"
	}
	if s.isFolder {
		name += "/"
	}
	return name
}

// inside is where a command finds the contents of a file that is in a variable.
func (s *stream) inside(variable string) string {
	if s.isFolder {
		return `"$` + variable + `/f"`
	}
	return `"$` + variable + `"`
}

type kind int

const (
	taking kind = iota
	joining
	merging
	splitting
	choosing
	rewriting
	plain
)

type step struct {
	name    string
	salt    int
	kind    kind
	sources []*stream
	by      []string
	number  int // files of a merge, lines of a part
	times   int
	common  bool // reads common
	calib   bool // reads calib
	publish bool
	storage string
	access  string
	out     stream
}

func (s *step) label() string { return fmt.Sprintf("%s salt%d", s.name, s.salt) }

// ordered reports whether the places of the jobs are known to the model.
func (s *step) ordered() bool {
	return s.kind != merging && !slices.ContainsFunc(s.sources, func(in *stream) bool { return !in.ordered })
}

func (s *step) free() string { return "free" + s.name }

// bound are the placeholders after which jobs are named.
func (s *step) bound() []string {
	switch s.kind {
	case plain:
		return []string{"number"}
	case merging:
		return s.by
	}
	var names []string
	for _, in := range s.sources {
		for _, name := range in.names {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	if s.kind == splitting {
		names = append(names, "chunk")
	}
	return names
}

// told are the placeholders that a command writes down.
func (s *step) told() []string {
	if s.kind == merging && s.number > 0 {
		return append(slices.Clone(s.by), "merge")
	}
	return s.bound()
}

// odd are values that somebody could take for something else than text.
var odd = []string{
	"p*q", "pXq", "a?b", "[x]", "{y}", "$HOME", "two  words", `quo'te"s`, "-dash", `back\slash`, "#h", "%41", "~", "a=b",
	"a:b", "x@y", "tab\there",
	"*", "?", "é", "a,b", "{", "}", "$", "&;|", "<>", "(", ")", "`id`", `\*`, "2", "10", "run2", "run10", "all", "f",
	"a.v1.a1", "!",
}

func newWorkflow(random *rand.Rand) *workflow {
	w := &workflow{random: random, init: random.IntN(3) == 0, first: "first\n", common: "common\n"}
	for i := range 1 + random.IntN(2) {
		in := &input{
			stream{folder: fmt.Sprintf("raw%d", i), names: []string{fmt.Sprintf("v%d", i)}, ordered: true}, map[string]string{},
		}
		if random.IntN(2) == 0 {
			in.names = append(in.names, "shared")
		}
		w.inputs = append(w.inputs, in)
		for range 1 + random.IntN(4) {
			w.addFile(in)
		}
	}
	// The single files that steps read stand anywhere among the others.
	for _, name := range []string{"common", "calib"} {
		if name == "common" || !w.init {
			at := random.IntN(len(w.inputs) + 1)
			w.inputs = slices.Insert(w.inputs, at, &input{stream{folder: name, ordered: true}, map[string]string{"": ""}})
		}
	}
	for i := range 2 + random.IntN(6) {
		w.steps = append(w.steps, w.newStep(fmt.Sprintf("s%d", i)))
	}
	return w
}

func (in *input) isSingle() bool { return len(in.names) == 0 }

func (w *workflow) addFile(in *input) {
	parts := []string{pick(w.random, odd)}
	if len(in.names) > 1 {
		parts = append(parts, pick(w.random, []string{"x", "y*"}))
	}
	in.files[strings.Join(parts, "/")] = w.lines()
}

func (w *workflow) lines() string {
	var b strings.Builder
	for range 1 + w.random.IntN(4) {
		fmt.Fprintf(&b, "line %d\n", w.random.IntN(1000))
	}
	return b.String()
}

func pick[T any](random *rand.Rand, from []T) T { return from[random.IntN(len(from))] }

// streams are what a step may take.
func (w *workflow) streams() []*stream {
	var all []*stream
	for _, in := range w.inputs {
		if !in.isSingle() {
			all = append(all, &in.stream)
		}
	}
	for _, s := range w.steps {
		all = append(all, &s.out)
	}
	return all
}

func (w *workflow) newStep(name string) *step {
	s := &step{
		name: name, salt: w.random.IntN(100), kind: kind(w.random.IntN(int(plain) + 1)), publish: w.random.IntN(4) > 0,
	}
	if s.storage = "element"; !s.publish {
		s.storage = pick(w.random, []string{"element", "temporary", "cache"})
	}
	s.access = pick(w.random, []string{"link", "link", "copy", "stream"})
	s.common = w.random.IntN(3) == 0
	source := pick(w.random, w.streams())
	s.sources = []*stream{source}
	s.out = stream{folder: name}
	switch s.kind {
	case joining:
		for _, other := range w.streams() {
			names := slices.Clone(source.names)
			for _, n := range other.names {
				if !slices.Contains(names, n) {
					names = append(names, n)
				}
			}
			if other != source && len(names) <= 3 {
				s.sources = append(s.sources, other)
				break
			}
		}
	case merging:
		s.common = false
		for _, n := range source.names {
			if w.random.IntN(2) == 0 {
				s.by = append(s.by, n)
			}
		}
		if source.ordered && w.random.IntN(2) == 0 {
			s.number = 1 + w.random.IntN(3)
		}
	case splitting:
		s.number = 1 + w.random.IntN(3)
		if source.isFolder {
			s.kind = taking
		}
	case plain:
		s.sources, s.times, s.access = nil, 1+w.random.IntN(3), "link"
	case rewriting:
		if !source.ordered {
			s.kind = taking
		} else {
			s.calib, s.publish, s.storage = true, true, "element"
		}
	}
	if s.kind == taking && source.ordered && w.random.IntN(2) == 0 {
		s.calib = true
	}
	s.out.made = slices.Clone(s.told())
	if s.kind == choosing {
		s.out.made = append(s.out.made, s.free())
	}
	for _, placeholder := range s.out.made {
		if slices.Contains([]string{"chunk", "merge", "number"}, placeholder) {
			placeholder += name
		}
		s.out.names = append(s.out.names, placeholder)
	}
	s.out.isFolder = s.kind != choosing && s.kind != rewriting && w.random.IntN(4) == 0
	s.out.ordered = s.ordered()
	return s
}

// edit changes the files, and says how.
func (w *workflow) edit() string {
	in := pick(w.random, w.inputs)
	if in.isSingle() {
		if in.folder == "common" {
			w.common = w.lines()
		} else {
			w.first = w.lines()
		}
		return "change " + in.folder
	}
	names := slices.Sorted(maps.Keys(in.files))
	switch what := w.random.IntN(3); {
	case what == 0 && len(names) > 1:
		name := pick(w.random, names)
		delete(in.files, name)
		return fmt.Sprintf("remove %q", name)
	case what == 1 && len(names) < 6:
		w.addFile(in)
		return "add a file to " + in.folder
	}
	name := pick(w.random, names)
	in.files[name] = w.lines()
	return fmt.Sprintf("change %q", name)
}

// tree are the files of the folder, by path.
func (w *workflow) tree() map[string]string {
	tree := map[string]string{"workflow.yaml": w.text()}
	for _, in := range w.inputs {
		switch {
		case in.folder == "common":
			tree["files/common"] = w.common
		case in.folder == "calib":
			tree["files/calib"] = w.first
		}
		for path, content := range in.files {
			if !in.isSingle() {
				tree["files/"+in.folder+"/"+path] = content
			}
		}
	}
	return tree
}

// text is the workflow file.
func (w *workflow) text() string {
	var b strings.Builder
	b.WriteString("workflow: random\ninputs:\n")
	for _, in := range w.inputs {
		pattern := in.pattern(in.names)
		if in.isSingle() {
			pattern = in.folder
		}
		fmt.Fprintf(&b, "  %s: {files: \"files/%s\", as: \"%s\"}\n", in.folder, pattern, pattern)
	}
	b.WriteString("steps:\n")
	if w.init {
		b.WriteString("  init: {reads: common, writes: calib, publish: true, command: '{ echo init; sha256sum < common | " +
			"cut -c1-16; } > calib'}\n")
	}
	for _, s := range w.steps {
		s.text(&b)
	}
	b.WriteString("  last: {reads: calib, writes: last, command: '{ echo last; sha256sum < calib | cut -c1-16; } > " +
		"last'}\n")
	return b.String()
}

func (s *step) text(b *strings.Builder) {
	fmt.Fprintf(b, "  %s:\n    may_be_empty: true\n    publish: %v\n    storage: %s\n", s.name, s.publish, s.storage)
	if len(s.sources) > 0 && !slices.ContainsFunc(s.sources, func(in *stream) bool { return in.isFolder }) {
		fmt.Fprintf(b, "    access: %s\n", s.access)
	}
	switch s.kind {
	case merging:
		fmt.Fprintf(b, "    merge: \"%s\"\n", s.sources[0].pattern(s.sources[0].names))
		if len(s.by) > 0 {
			fmt.Fprintf(b, "    by: [%s]\n", strings.Join(s.by, ", "))
		}
		if s.number > 0 {
			fmt.Fprintf(b, "    files: %d\n", s.number)
		}
	case plain:
		fmt.Fprintf(b, "    times: %d\n", s.times)
	default:
		var names []string
		for i, in := range s.sources {
			names = append(names, fmt.Sprintf("x%d: \"%s\"", i, in.pattern(in.names)))
		}
		fmt.Fprintf(b, "    each: {%s}\n", strings.Join(names, ", "))
	}
	if s.kind == splitting {
		fmt.Fprintf(b, "    split: {records: %d, of: lines}\n", s.number)
	}
	var reads []string
	if s.common {
		reads = append(reads, "shared_file: common")
	}
	if s.calib {
		reads = append(reads, "old: calib")
	}
	if len(reads) > 0 {
		fmt.Fprintf(b, "    reads: {%s}\n", strings.Join(reads, ", "))
	}
	if s.kind == rewriting {
		b.WriteString("    rewrites: {new: calib}\n")
	}
	fmt.Fprintf(b, "    writes: {made: \"%s\"}\n    command: |\n", s.out.pattern(s.out.made))
	for line := range strings.Lines(s.command()) {
		b.WriteString("      " + line)
	}
}

func (s *step) command() string {
	var read []string
	switch {
	case s.kind == merging:
		inside := `"$file"`
		if s.sources[0].isFolder {
			inside = `"$file/f"`
		}
		if s.sources[0].ordered {
			read = append(read, fmt.Sprintf("while IFS= read -r file; do cat %s; done < \"$FAIRWAY_INPUTS_FILE\"", inside))
		} else {
			read = append(read, fmt.Sprintf("while IFS= read -r file; do sha256sum < %s | cut -c1-16; done < "+
				"\"$FAIRWAY_INPUTS_FILE\" | LC_ALL=C sort", inside))
		}
	case s.kind == splitting:
		read = append(read, `sed -n "${first},${last}p" "$x0"`)
	default:
		for i, in := range s.sources {
			read = append(read, "cat "+in.inside(fmt.Sprint("x", i)))
		}
	}
	if s.common {
		read = append(read, `cat "$shared_file"`)
	}
	if s.calib {
		read = append(read, `cat "$old"`)
	}
	if len(read) == 0 {
		read = append(read, ":")
	}
	var b strings.Builder
	fmt.Fprintf(&b, "{\necho %s\n", s.label())
	for _, name := range s.told() {
		fmt.Fprintf(&b, "printf '%%s\\n' \"$%s\"\n", name)
	}
	fmt.Fprintf(&b, "{ %s; } | sha256sum | cut -c1-16\n} > .made\n", strings.Join(read, "; "))
	switch {
	case s.kind == choosing:
		folder := s.out.folder
		for _, name := range s.sources[0].names {
			folder += "/$" + name
		}
		fmt.Fprintf(&b,
			"for i in $(seq $(($(wc -l < %s) %% 2 + 1))); do { cat .made; echo $i; } > \"%s/k*[$i] \\\\\"; done\n",
			s.sources[0].inside("x0"), folder)
	case s.kind == rewriting:
		b.WriteString("cat \"$old\" .made > .new\nmv .new \"$new\"\nmv .made \"$made\"\n")
	case s.out.isFolder:
		b.WriteString("mkdir \"$made\"\nmv .made \"$made/f\"\n")
	default:
		b.WriteString("mv .made \"$made\"\n")
	}
	return b.String()
}
