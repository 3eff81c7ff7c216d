package workflow

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"fairway/internal/flow/pattern"
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
		s := &Step{Name: f.Key.Value, line: f.Key.Line, listed: len(w.Steps)}
		p.step(s, f)
		w.Steps = append(w.Steps, s)
	}
	p.scriptInputs(w)
	p.environmentSteps(w)
}

func (p *parser) step(s *Step, f yamlfile.Field) {
	what := fmt.Sprintf("step %q", s.Name)
	keys := known(p, f.Value, what, stepKeys, stepHabits)
	s.Needs.Temporary, s.Needs.Strict, s.Runs.Variables = p.temporary, p.strict, p.variables
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

func (p *parser) tasks(s *Step, n *yaml.Node, at field) {
	tasks := p.integer(n, at.what, 1)
	if tasks > taskqueue.MaxTasks {
		p.Fail(n, "have each task do more", "%s is %d, the limit is %d", at.what, tasks, taskqueue.MaxTasks)
	}
	s.Needs.Tasks = int(tasks)
}

func (p *parser) nodes(s *Step, n *yaml.Node, at field) {
	if at.keys["tasks"] != nil {
		p.Fail(n, "keep one of the two; with nodes each task may need several cpus", "%s has tasks and nodes", at.of)
		return
	}
	p.tasks(s, n, at)
	s.Needs.Apart = true
}

func (p *parser) onceKey(s *Step, n *yaml.Node, at field) {
	s.Needs.Once = scalar(p, n, at.what, parseFlag)
	if at.keys["tasks"] == nil && at.keys["nodes"] == nil {
		p.Fail(n, "add tasks: NUMBER, or remove it", "%s is for steps with tasks or nodes", at.what)
	}
}

// checkGang reports what steps of several tasks cannot have.
func (p *parser) checkGang(s *Step, keys map[string]*yaml.Node, what string) {
	if s.Needs.Tasks < 2 {
		return
	}
	if n := keys["storage"]; n != nil && s.Needs.Storage == taskqueue.StorageCache {
		p.Fail(n, "write storage: temporary", "%s has %d tasks, and what it writes would stay in caches only", what,
			s.Needs.Tasks)
	}
	if n := keys["container"]; n != nil && s.Needs.Once {
		p.Fail(n, "run the command in each task, or without container", "%s runs its command once, and what that starts on "+
			"other nodes would run in no container", what)
	}
	if n := keys["needs"]; n != nil && s.Needs.Resources.GPUShare > 0 {
		p.Fail(n, "write gpu: 1", "%s has %d tasks that share a GPU, and those that begin together need whole ones", what,
			s.Needs.Tasks)
	}
	if n := keys["worker"]; n != nil {
		p.Fail(n, "remove it", "%s has a worker, which cannot begin jobs of %d tasks", what, s.Needs.Tasks)
	}
}

// checkpointApart reports files of the jobs that lie in their checkpoint: the next attempt would
// find them there.
func (p *parser) checkpointApart(s *Step, n *yaml.Node, what string) {
	if s.Needs.Checkpoint == "" {
		return
	}
	for _, e := range slices.Concat(s.Writes, s.Rewrites, s.Reads) {
		if strings.HasPrefix(e.Pattern.Text+"/", s.Needs.Checkpoint) {
			p.Fail(n, "give the state a folder of its own", "%s: %s lies in its checkpoint %s", what, e.Pattern.Text,
				s.Needs.Checkpoint)
		}
	}
}

func (p *parser) each(s *Step, n *yaml.Node, at field) {
	for _, e := range p.entries(n, at.what) {
		s.Data.Each, s.Data.EachNames = append(s.Data.Each, e.Pattern), append(s.Data.EachNames, e.Name)
	}
}

func (p *parser) merge(s *Step, n *yaml.Node, at field) {
	if n = yamlfile.Follow(n); n.Kind == yaml.MappingNode {
		p.Fail(n, "write one pattern or a list; $in has all files", "%s: merge takes patterns without names", at.of)
	} else {
		s.Data.Merge = p.patterns(n, at.what)
	}
	if at.keys["each"] != nil {
		p.Fail(n, "use two steps, one after the other", "%s has each and merge", at.of)
	}
}

func (p *parser) ofMerge(n *yaml.Node, at field) {
	if at.keys["merge"] == nil {
		p.Fail(n, "add merge: PATTERN, or remove it", "%s is for steps with merge", at.what)
	}
}

func (p *parser) mergeFiles(s *Step, n *yaml.Node, at field) {
	p.ofMerge(n, at)
	s.Data.Limits.Files = int(p.integer(n, at.what, 1))
}

func (p *parser) by(s *Step, n *yaml.Node, at field) {
	p.ofMerge(n, at)
	s.Data.By, _ = p.texts(n, at.what)
	for _, name := range s.Data.By {
		for _, m := range s.Data.Merge {
			if !m.Has(name) {
				p.Fail(yamlfile.Follow(n), fmt.Sprintf("put {%s} into the pattern, or leave it out of by", name),
					"%s names %q, which %q does not bind", at.what, name, m.Text)
			}
		}
	}
}

// log adds the name of a file that each job makes, and that is kept when the job
// fails. It comes last under writes.
func (p *parser) log(s *Step, n *yaml.Node, at field) {
	what := at.what
	text, ok := p.patternText(n, what)
	if !ok {
		return
	}
	p.variable(yamlfile.Follow(n).Line, yamlfile.Follow(n).Column, logVariable, "variable of the log")
	if made := p.pattern(yamlfile.Follow(n), text, what); made != nil {
		if logical.IsFolder(made.Text) {
			p.Fail(n, "write a name without '/' at its end", "%s: %q stands for a folder, and a log is a file", what, made.Text)
		}
		s.Writes = append(s.Writes, Entry{Name: logVariable, Pattern: made, Log: true})
	}
}

// logVariable is what a command calls the file under log.
const logVariable = "log"

// maxTimes bounds the jobs of one step with times.
const maxTimes = 1_000_000

func (p *parser) times(s *Step, n *yaml.Node, at field) {
	if s.Data.Times = p.integer(n, at.what, 1); s.Data.Times > maxTimes {
		p.Fail(n, "have each job do more", "%s is %d, the limit is %d", at.what, s.Data.Times, maxTimes)
	}
	if len(s.Data.Each) > 0 || len(s.Data.Merge) > 0 {
		p.Fail(n, "remove it: the files under each or merge say how many jobs there are",
			"%s has times beside each or merge", at.of)
	}
}

func (p *parser) split(s *Step, n *yaml.Node, at field) {
	if len(s.Data.Each) != 1 {
		p.Fail(n, "name one pattern under each", "%s: split needs the one file that each gives", at.of)
	}
	s.Data.Split = &splitRule{}
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

func (p *parser) splitRecords(s *Step, n *yaml.Node, at field) {
	s.Data.Split.Records = p.integer(n, at.what, 1)
}

func (p *parser) splitUnit(s *Step, n *yaml.Node, at field) {
	if len(s.Data.Each) == 1 && logical.IsFolder(s.Data.Each[0].Text) {
		p.Fail(n, "write count: COMMAND, which prints how many records there are in the folder $in",
			"%s: %q stands for folders, and a folder has no such records", at.of, s.Data.Each[0].Text)
	}
	if at.keys["count"] == nil {
		unit := scalar(p, n, at.what, parseRecordUnit)
		s.Data.Split.Unit, s.Data.Split.Bytes = unit.Unit, unit.Bytes
	}
}

func (p *parser) splitCount(s *Step, n *yaml.Node, at field) {
	if at.keys["of"] != nil {
		p.Fail(n, "keep one of the two", "%s: split has of and count", at.of)
		return
	}
	s.Data.Split.Unit, s.Data.Split.Count = RecordCounted, p.commandText(s, n, at.of, "count")
}

func parseRecordUnit(text string) (splitRule, error) {
	switch bytes, isBytes := strings.CutPrefix(text, "bytes="); {
	case text == "lines":
		return splitRule{Unit: RecordLines}, nil
	case text == "fastq":
		return splitRule{Unit: RecordFastq}, nil
	case isBytes:
		if n, err := quantity.Size(bytes); err == nil && n > 0 {
			return splitRule{Unit: RecordBytes, Bytes: n}, nil
		}
	}
	return splitRule{},
		fmt.Errorf("%q is no kind of record; write lines, fastq or bytes=N (records of N bytes), or use count: COMMAND", text)
}

func (p *parser) entries(n *yaml.Node, what string) []Entry {
	if n == nil {
		return nil
	}
	var all []Entry
	if n = yamlfile.Follow(n); n.Kind == yaml.MappingNode {
		for _, f := range p.Mapping(n, what) {
			p.variable(f.Key.Line, f.Key.Column, f.Key.Value, "name")
			text, ok := p.patternText(f.Value, what)
			if !ok {
				continue
			}
			if made := p.pattern(yamlfile.Follow(f.Value), text, what); made != nil {
				all = append(all, Entry{Name: f.Key.Value, Pattern: made})
			}
		}
		return all
	}
	for _, made := range p.patterns(n, what) {
		all = append(all, Entry{Pattern: made})
	}
	return all
}

func (p *parser) entryNames(s *Step) {
	names, files := map[string]bool{}, map[string]bool{}
	for i, name := range s.Data.EachNames {
		names[name] = true
		if slices.Contains(s.Data.Each[i].Names, name) {
			p.FailAt(s.Data.Each[i].Line, s.Data.Each[i].Column, "choose another name",
				"step %q: the file %q has the name of a placeholder", s.Name, name)
		}
	}
	for _, e := range append(s.Reads[:len(s.Reads):len(s.Reads)], s.Outputs()...) {
		if e.Name != "" && names[e.Name] {
			p.FailAt(e.Pattern.Line, e.Pattern.Column, "choose another name for one of them",
				"step %q: two files have the name %q", s.Name, e.Name)
		}
		names[e.Name] = true
	}
	for _, e := range s.Outputs() {
		if files[e.Pattern.Text] {
			p.FailAt(e.Pattern.Line, e.Pattern.Column, "name each output once", "step %q: %q stands twice among what it writes",
				s.Name, e.Pattern.Text)
		}
		files[e.Pattern.Text] = true
	}
}

func (p *parser) tools(s *Step, n *yaml.Node, at field) { s.Needs.Tools, _ = p.texts(n, at.what) }

func (p *parser) priority(s *Step, n *yaml.Node, at field) {
	s.Needs.Priority = int(p.integer(n, at.what, math.MinInt32))
	if s.Needs.Priority > math.MaxInt32 {
		p.Fail(yamlfile.Follow(n), fmt.Sprintf("write a whole number up to %d", math.MaxInt32), "%s is %d",
			at.what, s.Needs.Priority)
	}
}

func (p *parser) waitForData(s *Step, n *yaml.Node, at field) {
	if s.Needs.Wait = scalar(p, n, at.what, quantity.Duration); s.Needs.Wait == 0 {
		s.Needs.Wait = -1
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

func (p *parser) needs(s *Step, n *yaml.Node, at field) {
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
		if s.Needs.Resources.Countable == nil {
			s.Needs.Resources.Countable = map[string]int64{}
		}
		s.Needs.Resources.Countable[name] = p.integer(f.Value, at.what+": "+name, 0)
	}
	take(p, s, found, at.what, needsKeys)
}

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

func (p *parser) runLimits(w *Workflow, n *yaml.Node, at field) {
	w.Limits = map[string]int64{}
	for _, f := range p.Mapping(n, at.what) {
		name := f.Key.Value
		if !pattern.PlaceholderName.MatchString(name) || slices.Contains(keyNames(needsKeys), name) {
			p.Fail(f.Key, "name what steps ask for under needs:, such as licence", "%q is no name for a limit", name)
		}
		w.Limits[name] = p.integer(f.Value, at.what+": "+name, 1)
	}
}

func (p *parser) checkLimits(w *Workflow) {
	for _, s := range w.Steps {
		for _, name := range sortedKeys(s.Needs.Resources.Countable) {
			needs := s.Needs.Resources.Countable[name] * int64(max(1, s.Needs.Tasks))
			if most, ok := w.Limits[name]; ok && needs > most {
				p.FailAt(s.line, 1, "ask for less, or raise the limit", "step %q needs %d %s, and all jobs together may have %d",
					s.Name, needs, name, most)
			}
		}
	}
}

func (p *parser) retry(s *Step, n *yaml.Node, at field) {
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

func (p *parser) attempts(s *Step, n *yaml.Node, at field) {
	s.Needs.Retry.Attempts = int(p.integer(n, at.what, 1))
}

func (p *parser) exitCodes(s *Step, n *yaml.Node, at field) {
	texts, nodes := p.texts(n, at.what)
	for i, text := range texts {
		code, err := quantity.Whole(text)
		if err != nil || code < 1 || code > 255 {
			p.Fail(nodes[i], "write numbers from 1 to 255", "%s: %q is no exit code of a failure", at.what, text)
		}
		s.Needs.Retry.ExitCodes = append(s.Needs.Retry.ExitCodes, int(code))
	}
}

func parseFactor(text string) (float64, error) {
	factor, err := quantity.Decimal(text)
	if err != nil || factor < 1 || factor > 64 {
		return 0, fmt.Errorf("%q is no factor; write a number from 1 to 64", text)
	}
	return factor, nil
}

func (p *parser) storage(s *Step, n *yaml.Node, at field) {
	s.Needs.Temporary = false
	s.Needs.Storage = scalar(p, n, at.what, func(text string) (taskqueue.Storage, error) {
		switch text {
		case "element":
			return taskqueue.StorageElement, nil
		case "cache":
			return taskqueue.StorageCache, nil
		case "temporary":
			s.Needs.Temporary = true
			return taskqueue.StorageElement, nil
		}
		return 0, fmt.Errorf("%q is no storage; write element, temporary or cache", text)
	})
}

func (p *parser) publish(s *Step, n *yaml.Node, at field) {
	publish := scalar(p, n, at.what, parseFlag)
	s.Needs.Publish = &publish
	switch {
	case publish && s.Needs.Storage == taskqueue.StorageCache:
		p.Fail(n, "remove storage: cache, or do not publish", "%s: what stays in caches cannot be published", at.of)
	case publish && at.keys["storage"] == nil:
		s.Needs.Temporary = false
	case publish && s.Needs.Temporary:
		p.Fail(n, "remove storage: temporary, or do not publish", "%s: what is removed when it has been read cannot be "+
			"published", at.of)
	}
}

func parseSandbox(text string) (strict bool, err error) {
	if text != "strict" && text != "open" {
		return false, fmt.Errorf("%q is no sandbox; write strict or open", text)
	}
	return text == "strict", nil
}

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
