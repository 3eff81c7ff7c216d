package flow

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"fairway/internal/logical"
	"fairway/internal/quantity"
	"fairway/internal/taskqueue"
	"fairway/internal/yamlfile"
)

func (p *parser) steps(w *Workflow, n *yaml.Node, _ field) {
	fields := p.Mapping(n, "steps")
	if len(fields) == 0 && len(p.Problems) == 0 {
		p.Fail(n, "add at least one step", "the workflow has no steps")
	}
	for _, f := range fields {
		if !wordName.MatchString(f.Key.Value) {
			p.Fail(f.Key, "use letters, digits, '_', '-' and '.'", "%q is no name for a step", f.Key.Value)
		}
		s := &step{name: f.Key.Value, line: f.Key.Line, listed: len(w.steps)}
		p.step(s, f)
		w.steps = append(w.steps, s)
	}
	p.scriptInputs(w)
	p.environmentSteps(w)
}

func (p *parser) step(s *step, f yamlfile.Field) {
	what := fmt.Sprintf("step %q", s.name)
	keys := known(p, f.Value, what, stepKeys, stepHabits)
	s.needs.temporary, s.needs.strict, s.runs.variables = p.temporary, p.strict, p.variables
	take(p, s, keys, what, stepKeys)
	p.command(s, f, keys, what)
	p.entryNames(s)
	p.checkpointApart(s, keys["checkpoint"], what)
	if n := keys["worker"]; n != nil && keys["container"] != nil {
		p.Fail(n, "leave out worker, or put the modules into an environment in the place of the container",
			"%s has a worker and a container, and a worker begins jobs outside of containers", what)
	}
	p.checkGang(s, keys, what)
	if keys["writes"] == nil && keys["rewrites"] == nil {
		p.Fail(f.Key, "add writes: NAME; a job is known by its outputs", "%s writes nothing", what)
	}
}

func (p *parser) tasks(s *step, n *yaml.Node, at field) {
	tasks := p.integer(n, at.what, 1)
	if tasks > taskqueue.MaxTasks {
		p.Fail(n, "have each task do more", "%s is %d, the limit is %d", at.what, tasks, taskqueue.MaxTasks)
	}
	s.needs.tasks = int(tasks)
}

func (p *parser) nodes(s *step, n *yaml.Node, at field) {
	if at.keys["tasks"] != nil {
		p.Fail(n, "keep one of the two; with nodes each task may need several cpus", "%s has tasks and nodes", at.of)
		return
	}
	p.tasks(s, n, at)
	s.needs.apart = true
}

func (p *parser) onceKey(s *step, n *yaml.Node, at field) {
	s.needs.once = scalar(p, n, at.what, parseFlag)
	if at.keys["tasks"] == nil && at.keys["nodes"] == nil {
		p.Fail(n, "add tasks: NUMBER, or remove it", "%s is for steps with tasks or nodes", at.what)
	}
}

// checkGang reports what steps of several tasks cannot have.
func (p *parser) checkGang(s *step, keys map[string]*yaml.Node, what string) {
	if s.needs.tasks < 2 {
		return
	}
	if n := keys["storage"]; n != nil && s.needs.storage == taskqueue.StorageCache {
		p.Fail(n, "write storage: temporary", "%s has %d tasks, and what it writes would stay in caches only", what,
			s.needs.tasks)
	}
	if n := keys["container"]; n != nil && s.needs.once {
		p.Fail(n, "run the command in each task, or without container", "%s runs its command once, and what that starts on "+
			"other nodes would run in no container", what)
	}
	if n := keys["needs"]; n != nil && s.needs.resources.GPUShare > 0 {
		p.Fail(n, "write gpu: 1", "%s has %d tasks that share a GPU, and those that begin together need whole ones", what,
			s.needs.tasks)
	}
	if n := keys["worker"]; n != nil {
		p.Fail(n, "remove it", "%s has a worker, which cannot begin jobs of %d tasks", what, s.needs.tasks)
	}
}

// checkpointApart reports files of the jobs that lie in their checkpoint: the next attempt would
// find them there.
func (p *parser) checkpointApart(s *step, n *yaml.Node, what string) {
	if s.needs.checkpoint == "" {
		return
	}
	for _, e := range slices.Concat(s.writes, s.rewrites, s.reads) {
		if strings.HasPrefix(e.pattern.text+"/", s.needs.checkpoint) {
			p.Fail(n, "give the state a folder of its own", "%s: %s lies in its checkpoint %s", what, e.pattern.text,
				s.needs.checkpoint)
		}
	}
}

func (p *parser) each(s *step, n *yaml.Node, at field) {
	for _, e := range p.entries(n, at.what) {
		s.data.each, s.data.eachNames = append(s.data.each, e.pattern), append(s.data.eachNames, e.name)
	}
}

func (p *parser) merge(s *step, n *yaml.Node, at field) {
	if n = yamlfile.Follow(n); n.Kind == yaml.MappingNode {
		p.Fail(n, "write one pattern or a list; $in has all files", "%s: merge takes patterns without names", at.of)
	} else {
		s.data.merge = p.patterns(n, at.what)
	}
	if at.keys["each"] != nil {
		p.Fail(n, "use two steps, one after the other", "%s has each and merge", at.of)
	}
}

// ofMerge reports what stands in a step without merge.
func (p *parser) ofMerge(n *yaml.Node, at field) {
	if at.keys["merge"] == nil {
		p.Fail(n, "add merge: PATTERN, or remove it", "%s is for steps with merge", at.what)
	}
}

func (p *parser) mergeFiles(s *step, n *yaml.Node, at field) {
	p.ofMerge(n, at)
	s.data.limits.files = int(p.integer(n, at.what, 1))
}

func (p *parser) by(s *step, n *yaml.Node, at field) {
	p.ofMerge(n, at)
	s.data.by, _ = p.texts(n, at.what)
	for _, name := range s.data.by {
		for _, m := range s.data.merge {
			if !m.has(name) {
				p.Fail(yamlfile.Follow(n), fmt.Sprintf("put {%s} into the pattern, or leave it out of by", name),
					"%s names %q, which %q does not bind", at.what, name, m.text)
			}
		}
	}
}

// log adds the name of a file that each job makes, and that is kept when the job
// fails. It comes last under writes.
func (p *parser) log(s *step, n *yaml.Node, at field) {
	what := at.what
	text, ok := p.patternText(n, what)
	if !ok {
		return
	}
	p.variable(yamlfile.Follow(n).Line, yamlfile.Follow(n).Column, logVariable, "variable of the log")
	if made := p.pattern(yamlfile.Follow(n), text, what); made != nil {
		if logical.IsFolder(made.text) {
			p.Fail(n, "write a name without '/' at its end", "%s: %q stands for a folder, and a log is a file", what, made.text)
		}
		s.writes = append(s.writes, entry{name: logVariable, pattern: made, log: true})
	}
}

// logVariable is what a command calls the file under log.
const logVariable = "log"

// maxTimes bounds the jobs of one step with times.
const maxTimes = 1_000_000

func (p *parser) times(s *step, n *yaml.Node, at field) {
	if s.data.times = p.integer(n, at.what, 1); s.data.times > maxTimes {
		p.Fail(n, "have each job do more", "%s is %d, the limit is %d", at.what, s.data.times, maxTimes)
	}
	if len(s.data.each) > 0 || len(s.data.merge) > 0 {
		p.Fail(n, "remove it: the files under each or merge say how many jobs there are",
			"%s has times beside each or merge", at.of)
	}
}

func (p *parser) split(s *step, n *yaml.Node, at field) {
	if len(s.data.each) != 1 {
		p.Fail(n, "name one pattern under each", "%s: split needs the one file that each gives", at.of)
	}
	s.data.split = &splitRule{}
	if !p.hasKeys(n, at, func(string) string { return "of: lines, records" }) {
		return
	}
	keys := known(p, n, at.what, splitKeys, nil)
	take(p, s, keys, at.of, splitKeys)
	if keys["records"] == nil {
		p.Fail(n, "add records: NUMBER, the records of one job", "%s: split does not say how many records a job gets", at.of)
	}
	if keys["of"] == nil && keys["count"] == nil {
		p.Fail(n, "add of: lines, of: fastq, of: bytes=N or count: COMMAND", "%s: split does not say what a record is", at.of)
	}
}

func (p *parser) splitRecords(s *step, n *yaml.Node, at field) {
	s.data.split.records = p.integer(n, at.what, 1)
}

func (p *parser) splitUnit(s *step, n *yaml.Node, at field) {
	if len(s.data.each) == 1 && logical.IsFolder(s.data.each[0].text) {
		p.Fail(n, "write count: COMMAND, which prints how many records there are in the folder $in",
			"%s: %q stands for folders, and a folder has no such records", at.of, s.data.each[0].text)
	}
	if at.keys["count"] == nil {
		unit := scalar(p, n, at.what, parseRecordUnit)
		s.data.split.unit, s.data.split.bytes = unit.unit, unit.bytes
	}
}

func (p *parser) splitCount(s *step, n *yaml.Node, at field) {
	if at.keys["of"] != nil {
		p.Fail(n, "keep one of the two", "%s: split has of and count", at.of)
		return
	}
	s.data.split.unit, s.data.split.count = recordCounted, p.commandText(s, n, at.of, "count")
}

func parseRecordUnit(text string) (splitRule, error) {
	switch bytes, isBytes := strings.CutPrefix(text, "bytes="); {
	case text == "lines":
		return splitRule{unit: recordLines}, nil
	case text == "fastq":
		return splitRule{unit: recordFastq}, nil
	case isBytes:
		if n, err := quantity.Size(bytes); err == nil && n > 0 {
			return splitRule{unit: recordBytes, bytes: n}, nil
		}
	}
	return splitRule{},
		fmt.Errorf("%q is no kind of record; write lines, fastq or bytes=N (records of N bytes), or use count: COMMAND", text)
}

// entries reads one name, a list of names, or names with a variable each.
func (p *parser) entries(n *yaml.Node, what string) []entry {
	if n == nil {
		return nil
	}
	var all []entry
	if n = yamlfile.Follow(n); n.Kind == yaml.MappingNode {
		for _, f := range p.Mapping(n, what) {
			p.variable(f.Key.Line, f.Key.Column, f.Key.Value, "name")
			text, ok := p.patternText(f.Value, what)
			if !ok {
				continue
			}
			if made := p.pattern(yamlfile.Follow(f.Value), text, what); made != nil {
				all = append(all, entry{name: f.Key.Value, pattern: made})
			}
		}
		return all
	}
	for _, made := range p.patterns(n, what) {
		all = append(all, entry{pattern: made})
	}
	return all
}

// entryNames reports a variable or a file that a step names twice.
func (p *parser) entryNames(s *step) {
	names, files := map[string]bool{}, map[string]bool{}
	for i, name := range s.data.eachNames {
		names[name] = true
		if slices.Contains(s.data.each[i].names, name) {
			p.FailAt(s.data.each[i].line, s.data.each[i].column, "choose another name",
				"step %q: the file %q has the name of a placeholder", s.name, name)
		}
	}
	for _, e := range append(s.reads[:len(s.reads):len(s.reads)], s.outputs()...) {
		if e.name != "" && names[e.name] {
			p.FailAt(e.pattern.line, e.pattern.column, "choose another name for one of them",
				"step %q: two files have the name %q", s.name, e.name)
		}
		names[e.name] = true
	}
	for _, e := range s.outputs() {
		if files[e.pattern.text] {
			p.FailAt(e.pattern.line, e.pattern.column, "name each output once", "step %q: %q stands twice among what it writes",
				s.name, e.pattern.text)
		}
		files[e.pattern.text] = true
	}
}

func (p *parser) tools(s *step, n *yaml.Node, at field) { s.needs.tools, _ = p.texts(n, at.what) }

func (p *parser) priority(s *step, n *yaml.Node, at field) {
	s.needs.priority = int(p.integer(n, at.what, math.MinInt32))
	if s.needs.priority > math.MaxInt32 {
		p.Fail(yamlfile.Follow(n), fmt.Sprintf("write a whole number up to %d", math.MaxInt32), "%s is %d",
			at.what, s.needs.priority)
	}
}

func (p *parser) waitForData(s *step, n *yaml.Node, at field) {
	if s.needs.wait = scalar(p, n, at.what, quantity.Duration); s.needs.wait == 0 {
		s.needs.wait = -1
	}
}

// hasKeys reports whether a value is no plain text, where keys are needed; else it says which key the
// text is likely meant for.
func (p *parser) hasKeys(n *yaml.Node, at field, keyOf func(text string) string) bool {
	n = yamlfile.Follow(n)
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		return true
	}
	p.Fail(n, fmt.Sprintf("write {%s: %s}", keyOf(n.Value), n.Value), "%s must be a mapping, not %s", at.what,
		yamlfile.KindName(n))
	return false
}

func (p *parser) needs(s *step, n *yaml.Node, at field) {
	if !p.hasKeys(n, at, keyOfNeed) {
		return
	}
	found := map[string]*yaml.Node{}
	for _, f := range p.Mapping(n, at.what) {
		name := f.Key.Value
		if slices.Contains(keyNames(needsKeys), name) {
			found[name] = f.Value
			continue
		}
		meant := yamlfile.Closest(name, keyNames(needsKeys))
		if habit := needsHabits[name]; habit != "" {
			meant = habit
		}
		if meant != "" {
			p.Fail(f.Key, fmt.Sprintf("did you mean %q?", meant), "unknown key %q in %s", name, at.what)
			if certain := cmp.Or(needsHabits[name], yamlfile.Surely(name, keyNames(needsKeys))); !bareSize(certain, f.Value) {
				p.MendRenamed(f.Key, certain, yamlfile.KeysOf(n))
			}
			continue
		}
		if s.needs.resources.Countable == nil {
			s.needs.resources.Countable = map[string]int64{}
		}
		s.needs.resources.Countable[name] = p.integer(f.Value, at.what+": "+name, 0)
	}
	take(p, s, found, at.what, needsKeys)
}

// keyOfNeed is the key of a text without one.
func keyOfNeed(text string) string {
	if _, err := quantity.MilliCPUs(text); err == nil {
		return "cpus"
	}
	if _, err := quantity.Duration(text); err == nil {
		return "time"
	}
	return "memory"
}

// bareSize reports whether a size would have no unit: other systems count in units of their own.
func bareSize(key string, n *yaml.Node) bool {
	_, err := quantity.Decimal(yamlfile.Follow(n).Value)
	return err == nil && (key == "memory" || key == "disk")
}

// runLimits reads the limits of the run.
func (p *parser) runLimits(w *Workflow, n *yaml.Node, at field) {
	w.Limits = map[string]int64{}
	for _, f := range p.Mapping(n, at.what) {
		name := f.Key.Value
		if !placeholderName.MatchString(name) || slices.Contains(keyNames(needsKeys), name) {
			p.Fail(f.Key, "name what steps ask for under needs:, such as licence", "%q is no name for a limit", name)
		}
		w.Limits[name] = p.integer(f.Value, at.what+": "+name, 1)
	}
}

// checkLimits refuses steps that ask for more than all jobs together may have.
func (p *parser) checkLimits(w *Workflow) {
	for _, s := range w.steps {
		for _, name := range sortedKeys(s.needs.resources.Countable) {
			needs := s.needs.resources.Countable[name] * int64(max(1, s.needs.tasks))
			if most, ok := w.Limits[name]; ok && needs > most {
				p.FailAt(s.line, 1, "ask for less, or raise the limit", "step %q needs %d %s, and all jobs together may have %d",
					s.name, needs, name, most)
			}
		}
	}
}

func (p *parser) retry(s *step, n *yaml.Node, at field) {
	if !p.hasKeys(n, at, func(text string) string {
		if _, err := quantity.Duration(text); err == nil {
			return "backoff"
		}
		return "attempts"
	}) {
		return
	}
	take(p, s, known(p, n, at.what, retryKeys, retryHabits), at.what, retryKeys)
}

func (p *parser) attempts(s *step, n *yaml.Node, at field) {
	s.needs.retry.Attempts = int(p.integer(n, at.what, 1))
}

func (p *parser) exitCodes(s *step, n *yaml.Node, at field) {
	texts, nodes := p.texts(n, at.what)
	for i, text := range texts {
		code, err := quantity.Whole(text)
		if err != nil || code < 1 || code > 255 {
			p.Fail(nodes[i], "write numbers from 1 to 255", "%s: %q is no exit code of a failure", at.what, text)
		}
		s.needs.retry.ExitCodes = append(s.needs.retry.ExitCodes, int(code))
	}
}

func parseFactor(text string) (float64, error) {
	factor, err := quantity.Decimal(text)
	if err != nil || factor < 1 || factor > 64 {
		return 0, fmt.Errorf("%q is no factor; write a number from 1 to 64", text)
	}
	return factor, nil
}

func (p *parser) storage(s *step, n *yaml.Node, at field) {
	s.needs.temporary = false
	s.needs.storage = scalar(p, n, at.what, func(text string) (taskqueue.Storage, error) {
		switch text {
		case "element":
			return taskqueue.StorageElement, nil
		case "cache":
			return taskqueue.StorageCache, nil
		case "temporary":
			s.needs.temporary = true
			return taskqueue.StorageElement, nil
		}
		return 0, fmt.Errorf("%q is no storage; write element, temporary or cache", text)
	})
}

func (p *parser) publish(s *step, n *yaml.Node, at field) {
	publish := scalar(p, n, at.what, parseFlag)
	s.needs.publish = &publish
	switch {
	case publish && s.needs.storage == taskqueue.StorageCache:
		p.Fail(n, "remove storage: cache, or do not publish", "%s: what stays in caches cannot be published", at.of)
	case publish && at.keys["storage"] == nil:
		s.needs.temporary = false
	case publish && s.needs.temporary:
		p.Fail(n, "remove storage: temporary, or do not publish", "%s: what is removed when it has been read cannot be "+
			"published", at.of)
	}
}

// parseSandbox reads whether a job sees only its own.
func parseSandbox(text string) (strict bool, err error) {
	if text != "strict" && text != "open" {
		return false, fmt.Errorf("%q is no sandbox; write strict or open", text)
	}
	return text == "strict", nil
}

// parseCheckpoint reads the folder in which the jobs of a step save their state.
func parseCheckpoint(text string) (folder string, err error) {
	switch why := logical.WhyNot(text); {
	case !logical.IsFolder(text) || text == "/":
		return "", fmt.Errorf("%q is no folder; write a name that ends in /, such as state/", text)
	case why != "":
		return "", fmt.Errorf("%q cannot be a folder in the sandbox: %s", text, why)
	case strings.ContainsAny(text, "{}*?["):
		return "", fmt.Errorf("%q is no plain name; each job has a folder of its own already", text)
	}
	return text, nil
}

func parseFlag(text string) (bool, error) {
	if text != "true" && text != "false" {
		return false, fmt.Errorf("%q is neither; write true or false", text)
	}
	return text == "true", nil
}
