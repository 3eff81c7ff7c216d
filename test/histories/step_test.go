package histories

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// kind is what a step does with the files of its source.
type kind int

const (
	mapped   kind = iota // one job for each file
	joined               // one for each file of the inputs with each of the source
	split                // many jobs from one file, by records
	cut                  // the same, by bytes
	chosen               // files whose names the contents decide
	merged               // many files to one, at the end
	numbered             // many files to one, by number
	sized                // many files to one, by size
	grouped              // many files to one, for each value of the first placeholder
	reading              // as mapped, with the rewritten file
	updating             // rewrites that file
	times                // so many jobs without data
	kinds
)

// step makes files in a folder of its own: FOLDER/{p}.{q}.txt, with as many
// placeholders as arity says. The source is a step before it or, without one,
// an input.
type step struct {
	kind   kind
	name   string
	folder string
	source *step
	input  string // the folder of the input, where there is no source
	salt   int    // an edit of the command is another number
	flaky  bool   // the first try of each job fails
	cached bool   // outputs stay in caches
	shown  bool   // outputs are results although a step may read them
	worded bool   // the command names the parameter
}

var placeholders = []string{"p", "q", "r", "s", "t", "u", "v"}

// arity is how many placeholders the names of its files have.
func (s *step) arity() int {
	switch s.kind {
	case joined, split, cut, chosen:
		return s.sourceArity() + 1
	case merged:
		return 0
	case numbered, sized, times:
		return 1
	case grouped:
		return min(2, 1+s.sourceArity())
	}
	return s.sourceArity()
}

func (s *step) sourceArity() int {
	if s.source == nil {
		return 1
	}
	return s.source.arity()
}

// name of n placeholders, as it stands in a pattern.
func pattern(folder string, names []string) string {
	if len(names) == 0 {
		return folder + "/all.txt"
	}
	return folder + "/{" + strings.Join(names, "}.{") + "}.txt"
}

func (s *step) taken() string {
	folder := s.input
	if s.source != nil {
		folder = s.source.folder
	}
	return pattern(folder, s.bound())
}

func (s *step) bound() []string { return placeholders[:s.sourceArity()] }

// updates reports whether the step replaces files, which no other step can take.
func (s *step) updates() bool { return s.kind == updating }

// addStep adds a random step behind the others. An updating step follows a
// reading one.
func (p *project) addStep(random *rand.Rand) {
	s := &step{kind: kind(random.IntN(int(kinds))), salt: random.IntN(100), flaky: random.IntN(8) == 0,
		worded: random.IntN(3) == 0, shown: random.IntN(4) == 0}
	p.made++
	s.name, s.folder = fmt.Sprint("step", p.made), fmt.Sprint("made", p.made)
	s.input = []string{"raw", "raw", "raw", "listed", "watched"}[random.IntN(5)]
	if sources := p.sources(); len(sources) > 0 && random.IntN(3) > 0 {
		s.source = sources[random.IntN(len(sources))]
	}
	if s.arity() > 4 {
		s.kind = merged
	}
	if s.kind == updating {
		s.kind = reading
		p.steps = append(p.steps, s)
		p.addUpdate(s, random)
		return
	}
	s.cached = !s.shown && random.IntN(5) == 0
	p.steps = append(p.steps, s)
}

// addUpdate makes the first step that reads the table be followed by one that
// rewrites it. One is enough: a second one would leave the order open.
func (p *project) addUpdate(reader *step, random *rand.Rand) {
	if slices.ContainsFunc(p.steps, (*step).updates) {
		return
	}
	p.made++
	p.steps = append(p.steps, &step{
		kind: updating, name: fmt.Sprint("step", p.made), source: reader, salt: random.IntN(100),
	})
}

// sources are the steps whose files another may take.
func (p *project) sources() []*step {
	var sources []*step
	for _, s := range p.steps {
		if !s.updates() {
			sources = append(sources, s)
		}
	}
	return sources
}

// isSource reports whether another step takes the files of s.
func (p *project) isSource(s *step) bool {
	return slices.ContainsFunc(p.steps, func(other *step) bool { return other.source == s })
}

// text is the step as it stands in the workflow file.
func (s *step) text(p *project, log string) string {
	var b strings.Builder
	line := func(format string, a ...any) { fmt.Fprintf(&b, "    "+format+"\n", a...) }
	fmt.Fprintf(&b, "  %s:\n", s.name)
	s.rule(line)
	line("may_be_empty: true") // edits leave files without lines, and lists without files
	if s.flaky {
		line("retry: {attempts: 6, backoff: 1ms, exit_codes: [75]}")
	}
	if s.cached {
		line("storage: cache")
	}
	if s.shown || s.updates() {
		line("publish: true")
	}
	line("command: |")
	line("  echo \"$FAIRWAY_NAME\" >> '%s'", log)
	if s.flaky {
		line("  [ \"$FAIRWAY_TRY\" != 1 ] || exit 75")
	}
	line("  %s", s.command())
	return b.String()
}

// rule says which jobs the step has, and what they read and write.
func (s *step) rule(line func(string, ...any)) {
	out := pattern(s.folder, placeholders[:s.arity()])
	switch s.kind {
	case joined:
		line("each: [%q, %q]", s.taken(), "raw/{other}.txt")
		out = pattern(s.folder, append(slices.Clone(s.bound()), "other"))
	case split:
		line("each: %q", s.taken())
		line("split: {records: %d, of: lines}", 2+s.salt%2)
		out = pattern(s.folder, append(slices.Clone(s.bound()), "chunk"))
	case cut:
		line("each: %q", s.taken())
		line("split: {records: 3, of: bytes=5}")
		out = pattern(s.folder, append(slices.Clone(s.bound()), "chunk"))
	case merged:
		line("merge: %q", s.taken())
	case numbered:
		line("merge: %q", s.taken())
		line("files: %d", 2+s.salt%2)
		out = pattern(s.folder, []string{"merge"})
	case sized:
		line("merge: %q", s.taken())
		line("size: %d", 20+s.salt)
		out = pattern(s.folder, []string{"merge"})
	case grouped:
		line("merge: %q", s.taken())
		if s.sourceArity() > 0 {
			line("by: p")
		}
		line("files: 2")
		out = pattern(s.folder, append(slices.Clone(s.bound()[:min(1, s.sourceArity())]), "merge"))
	case times:
		line("times: ${count}")
		out = pattern(s.folder, []string{"number"})
	default:
		line("each: %q", s.taken())
	}
	s.files(line, out)
}

func (s *step) files(line func(string, ...any), out string) {
	switch s.kind {
	case reading:
		line("reads: {table: %s}", tableFile)
	case updating:
		line("reads: {old: %s}", tableFile)
		line("rewrites: {new: %s}", tableFile)
		return
	}
	line("writes: %q", out)
}

// command writes the outputs: what they are depends on all that the job is to
// know, and on the order of its inputs.
func (s *step) command() string {
	salt := fmt.Sprint("S", s.salt)
	if s.worded {
		salt += " $word"
	}
	switch s.kind {
	case split:
		return fmt.Sprintf(`{ echo "%s"; sed -n "${first},${last}p" "$in"; } > "$out"`, salt)
	case cut:
		return fmt.Sprintf(`{ echo "%s"; tail -c +$(( 5*first - 4 )) "$in" | head -c $(( 5*(last-first+1) )); echo; } > "$out"`, salt)
	case chosen:
		names := []string{}
		for _, name := range s.bound() {
			names = append(names, "$"+name)
		}
		return fmt.Sprintf(`awk -v to="%s/%s" '{ print "S%d", $0 > (to (length($0) %% 3) ".txt") }' "$in"`, s.folder, strings.Join(append(names, ""), "."), s.salt)
	case reading:
		return fmt.Sprintf(`{ echo "%s"; cat "$in" "$table" | cksum; tail -n 3 "$table"; head -n 4 "$in"; } > "$out"`, salt)
	case updating:
		return fmt.Sprintf(`{ cat "$old"; echo "%s"; cksum < "$in"; } > next && mv next "$new"`, salt)
	case times:
		return fmt.Sprintf(`{ echo "%s"; echo "$number"; } > "$out"`, salt)
	}
	return fmt.Sprintf(`{ echo "%s"; cat $in | cksum; cat $in; } | head -n 12 > "$out"`, salt)
}
