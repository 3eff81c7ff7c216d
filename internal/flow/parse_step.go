package flow

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"fairway/internal/dispatch"
	"fairway/internal/logical"
	"fairway/internal/quantity"
	"fairway/internal/yamlfile"
)

func (p *parser) steps(w *Workflow, n *yaml.Node) {
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
}

func (p *parser) step(s *step, f yamlfile.Field) {
	what := fmt.Sprintf("step %q", s.name)
	keys := p.Known(f.Value, what, stepKeys, stepHabits)
	if n := keys["each"]; n != nil {
		for _, e := range p.entries(n, what+": each") {
			s.each, s.eachNames = append(s.each, e.pattern), append(s.eachNames, e.name)
		}
	}
	if n := keys["merge"]; n != nil {
		if n = yamlfile.Follow(n); n.Kind == yaml.MappingNode {
			p.Fail(n, "write one pattern or a list; $in has all files", "%s: merge takes patterns without names", what)
		} else {
			s.merge = p.patterns(n, what+": merge")
		}
		if keys["each"] != nil {
			p.Fail(n, "use two steps, one after the other", "%s has each and merge", what)
		}
	}
	p.mergeLimits(s, keys, what)
	if n := keys["split"]; n != nil {
		p.split(s, n, what)
	}
	if n := keys["times"]; n != nil {
		p.times(s, n, what)
	}
	s.reads = p.entries(keys["reads"], what+": reads")
	s.writes = p.entries(keys["writes"], what+": writes")
	if n := keys["log"]; n != nil {
		p.log(s, n, what+": log")
	}
	s.rewrites = p.entries(keys["rewrites"], what+": rewrites")
	p.placement(s, keys, what)
	if n := keys["access"]; n != nil {
		p.access(s, n, what+": access")
	}
	p.outputRules(s, keys, what)
	p.command(s, f, keys, what)
	p.entryNames(s)
	if keys["writes"] == nil && keys["rewrites"] == nil {
		p.Fail(f.Key, "add writes: NAME; a job is known by its outputs", "%s writes nothing", what)
	}
}

// log adds the name of a file that each job makes, and that is kept when the job
// fails. It comes last under writes.
func (p *parser) log(s *step, n *yaml.Node, what string) {
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

func (p *parser) times(s *step, n *yaml.Node, what string) {
	if s.times = p.integer(n, what+": times", 1); s.times > maxTimes {
		p.Fail(n, "have each job do more", "%s: times is %d, the limit is %d", what, s.times, maxTimes)
	}
	if len(s.each) > 0 || len(s.merge) > 0 {
		p.Fail(n, "remove it: the files under each or merge say how many jobs there are", "%s has times beside each or merge", what)
	}
}

func (p *parser) mergeLimits(s *step, keys map[string]*yaml.Node, what string) {
	for _, key := range []string{"files", "size", "max_latency", "by"} {
		if n := keys[key]; n != nil && keys["merge"] == nil {
			p.Fail(n, "add merge: PATTERN, or remove it", "%s: %s is for steps with merge", what, key)
		}
	}
	if n := keys["files"]; n != nil {
		s.limits.files = int(p.integer(n, what+": files", 1))
	}
	if n := keys["size"]; n != nil {
		s.limits.size = max(1, scalar(p, n, what+": size", quantity.Size))
	}
	if n := keys["max_latency"]; n != nil {
		s.limits.latency = max(1, scalar(p, n, what+": max_latency", quantity.Duration))
	}
	if n := keys["by"]; n != nil {
		s.by, _ = p.texts(n, what+": by")
		for _, name := range s.by {
			for _, m := range s.merge {
				if !m.has(name) {
					p.Fail(yamlfile.Follow(n), fmt.Sprintf("put {%s} into the pattern, or leave it out of by", name), "%s: by names %q, which %q does not bind", what, name, m.text)
				}
			}
		}
	}
}

func (p *parser) split(s *step, n *yaml.Node, what string) {
	if len(s.each) != 1 {
		p.Fail(n, "name one pattern under each", "%s: split needs the one file that each gives", what)
	}
	keys := p.Known(n, what+": split", splitKeys, nil)
	s.split = &splitRule{}
	if keys["records"] == nil {
		p.Fail(n, "add records: NUMBER, the records of one job", "%s: split does not say how many records a job gets", what)
	} else {
		s.split.records = p.integer(keys["records"], what+": records", 1)
	}
	if of := keys["of"]; of != nil && len(s.each) == 1 && logical.IsFolder(s.each[0].text) {
		p.Fail(of, "write count: COMMAND, which prints how many records there are in the folder $in", "%s: %q stands for folders, and a folder has no such records", what, s.each[0].text)
	}
	switch of, count := keys["of"], keys["count"]; {
	case of != nil && count != nil:
		p.Fail(count, "keep one of the two", "%s: split has of and count", what)
	case count != nil:
		s.split.unit = recordCounted
		s.split.count = p.commandText(s, count, what, "count")
	case of != nil:
		unit := scalar(p, of, what+": of", parseRecordUnit)
		s.split.unit, s.split.bytes = unit.unit, unit.bytes
	default:
		p.Fail(n, "add of: lines, of: fastq, of: bytes=N or count: COMMAND", "%s: split does not say what a record is", what)
	}
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
	return splitRule{}, fmt.Errorf("%q is no kind of record; write lines, fastq or bytes=N (records of N bytes), or use count: COMMAND", text)
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
	for i, name := range s.eachNames {
		names[name] = true
		if slices.Contains(s.each[i].names, name) {
			p.FailAt(s.each[i].line, s.each[i].column, "choose another name", "step %q: the file %q has the name of a placeholder", s.name, name)
		}
	}
	for _, e := range append(s.reads[:len(s.reads):len(s.reads)], s.outputs()...) {
		if e.name != "" && names[e.name] {
			p.FailAt(e.pattern.line, e.pattern.column, "choose another name for one of them", "step %q: two files have the name %q", s.name, e.name)
		}
		names[e.name] = true
	}
	for _, e := range s.outputs() {
		if files[e.pattern.text] {
			p.FailAt(e.pattern.line, e.pattern.column, "name each output once", "step %q: %q stands twice among what it writes", s.name, e.pattern.text)
		}
		files[e.pattern.text] = true
	}
}

func (p *parser) placement(s *step, keys map[string]*yaml.Node, what string) {
	if n := keys["needs"]; n != nil {
		p.needs(s, n, what+": needs")
	}
	if n := keys["tools"]; n != nil {
		s.tools, _ = p.texts(n, what+": tools")
	}
	if n := keys["retry"]; n != nil {
		p.retry(s, n, what+": retry")
	}
	if n := keys["priority"]; n != nil {
		s.priority = int(p.integer(n, what+": priority", math.MinInt32))
		if s.priority > math.MaxInt32 {
			p.Fail(yamlfile.Follow(n), fmt.Sprintf("write a whole number up to %d", math.MaxInt32), "%s: priority is %d", what, s.priority)
		}
	}
	if n := keys["site"]; n != nil {
		s.site, _ = p.text(n, what+": site")
	}
	if n := keys["wait_for_data"]; n != nil {
		if s.wait = scalar(p, n, what+": wait_for_data", quantity.Duration); s.wait == 0 {
			s.wait = -1
		}
	}
}

func (p *parser) needs(s *step, n *yaml.Node, what string) {
	for _, f := range p.Mapping(n, what) {
		switch key := f.Key.Value; key {
		case "cpus":
			s.needs.MilliCPUs = scalar(p, f.Value, what+": cpus", quantity.MilliCPUs)
		case "memory":
			s.needs.Memory = scalar(p, f.Value, what+": memory", quantity.Size)
		case "disk":
			s.needs.Disk = scalar(p, f.Value, what+": disk", quantity.Size)
		case "time":
			s.needs.Time = scalar(p, f.Value, what+": time", quantity.Duration)
		default:
			meant := yamlfile.Closest(key, needsKeys)
			if habit := needsHabits[key]; habit != "" {
				meant = habit
			}
			if meant != "" {
				p.Fail(f.Key, fmt.Sprintf("did you mean %q?", meant), "unknown key %q in %s", key, what)
				continue
			}
			if s.needs.Countable == nil {
				s.needs.Countable = map[string]int64{}
			}
			s.needs.Countable[key] = p.integer(f.Value, what+": "+key, 0)
		}
	}
}

func (p *parser) retry(s *step, n *yaml.Node, what string) {
	keys := p.Known(n, what, retryKeys, retryHabits)
	if n := keys["attempts"]; n != nil {
		s.retry.Attempts = int(p.integer(n, what+": attempts", 1))
	}
	if n := keys["backoff"]; n != nil {
		s.retry.Backoff = scalar(p, n, what+": backoff", quantity.Duration)
	}
	if n := keys["memory_factor"]; n != nil {
		s.retry.MemoryFactor = scalar(p, n, what+": memory_factor", parseFactor)
	}
	if n := keys["exit_codes"]; n != nil {
		texts, nodes := p.texts(n, what+": exit_codes")
		for i, text := range texts {
			code, err := quantity.Whole(text)
			if err != nil || code < 1 || code > 255 {
				p.Fail(nodes[i], "write numbers from 1 to 255", "%s: exit_codes: %q is no exit code of a failure", what, text)
			}
			s.retry.ExitCodes = append(s.retry.ExitCodes, int(code))
		}
	}
}

func parseFactor(text string) (float64, error) {
	factor, err := quantity.Decimal(text)
	if err != nil || factor < 1 || factor > 64 {
		return 0, fmt.Errorf("%q is no factor; write a number from 1 to 64", text)
	}
	return factor, nil
}

func (p *parser) outputRules(s *step, keys map[string]*yaml.Node, what string) {
	s.temporary = p.temporary
	if n := keys["storage"]; n != nil {
		s.temporary = false
		s.storage = scalar(p, n, what+": storage", func(text string) (dispatch.Storage, error) {
			switch text {
			case "element":
				return dispatch.StorageElement, nil
			case "cache":
				return dispatch.StorageCache, nil
			case "temporary":
				s.temporary = true
				return dispatch.StorageElement, nil
			}
			return 0, fmt.Errorf("%q is no storage; write element, temporary or cache", text)
		})
	}
	if n := keys["publish"]; n != nil {
		publish := scalar(p, n, what+": publish", parseFlag)
		s.publish = &publish
		switch {
		case publish && s.storage == dispatch.StorageCache:
			p.Fail(n, "remove storage: cache, or do not publish", "%s: what stays in caches cannot be published", what)
		case publish && keys["storage"] == nil:
			s.temporary = false
		case publish && s.temporary:
			p.Fail(n, "remove storage: temporary, or do not publish", "%s: what is removed when it has been read cannot be published", what)
		}
	}
	if n := keys["may_be_empty"]; n != nil {
		s.mayBeEmpty = scalar(p, n, what+": may_be_empty", parseFlag)
	}
	s.strict = p.strict
	if n := keys["sandbox"]; n != nil {
		s.strict = scalar(p, n, what+": sandbox", parseSandbox)
	}
}

// parseSandbox reads whether a job sees only its own.
func parseSandbox(text string) (strict bool, err error) {
	if text != "strict" && text != "open" {
		return false, fmt.Errorf("%q is no sandbox; write strict or open", text)
	}
	return text == "strict", nil
}

func parseFlag(text string) (bool, error) {
	if text != "true" && text != "false" {
		return false, fmt.Errorf("%q is neither; write true or false", text)
	}
	return text == "true", nil
}
