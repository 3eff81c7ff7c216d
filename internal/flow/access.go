package flow

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"fairway/internal/logical"
	"fairway/internal/taskqueue"
	"fairway/internal/yamlfile"
)

// accessRule is what a step says of how its commands get what they read. What it does not
// say is up to the input that a file is from.
type accessRule struct {
	all   *taskqueue.Access           // nil: it does not say
	named map[string]taskqueue.Access // by the variables of files
}

// accessWords are the values of access, and what people write for them who come from other
// systems.
var accessWords = map[string]taskqueue.Access{
	"link": taskqueue.AccessLink, "copy": taskqueue.AccessCopy, "stream": taskqueue.AccessStream,
}

var accessHabits = map[string]string{
	"symlink": "link", "rellink": "link", "hardlink": "link", "links": "link", "cache": "link", "stage": "link",
	"download": "link",
	"copied":   "copy", "own": "copy", "private": "copy", "writable": "copy",
	"streaming": "stream", "streamed": "stream", "direct": "stream", "remote": "stream", "url": "stream", "pfn": "stream",
	"open": "stream", "xrootd": "stream",
}

func parseAccess(text string) (taskqueue.Access, error) {
	if a, ok := accessWords[text]; ok {
		return a, nil
	}
	meant := accessHabits[strings.ToLower(text)]
	if meant == "" {
		meant = yamlfile.Closest(text, sortedKeys(accessWords))
	}
	if meant != "" {
		return 0, fmt.Errorf("%q is no access; did you mean %q?", text, meant)
	}
	return 0, fmt.Errorf("%q is no access; write link, copy or stream", text)
}

// accessWord reads one word. or is what may stand there instead.
func (p *parser) accessWord(n *yaml.Node, what, or string) (a taskqueue.Access, ok bool) {
	if n = yamlfile.Follow(n); n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		p.Fail(n, "write link, copy or stream"+or, "%s must be one word, not %s", what, yamlfile.KindName(n))
		return a, false
	}
	return scalar(p, n, what, parseAccess), true
}

// access reads one word for all that a step reads, or a word for each variable of a file.
func (p *parser) access(s *step, n *yaml.Node, at field) {
	what := at.what
	if n = yamlfile.Follow(n); n.Kind != yaml.MappingNode {
		a, ok := p.accessWord(n, what, ", or a mapping with a word for each variable of a file")
		if !ok {
			return
		}
		s.data.access.all = &a
		if a == taskqueue.AccessStream && !slices.ContainsFunc(s.taken(),
			func(e entry) bool { return !logical.IsFolder(e.pattern.text) }) {
			p.Fail(n, "remove it, or name files under each, merge or reads",
				"%s: the step reads no file that could be streamed", what)
		}
		return
	}
	s.data.access.named = map[string]taskqueue.Access{}
	var known []string
	for _, e := range s.taken() {
		if e.name != "" {
			known = append(known, e.name)
		}
	}
	for _, f := range p.Mapping(n, what) {
		name := f.Key.Value
		a, ok := p.accessWord(f.Value, what+": "+name, "")
		if !ok {
			continue
		}
		s.data.access.named[name] = a
		at := slices.IndexFunc(s.taken(), func(e entry) bool { return e.name == name })
		switch {
		case name != "" && slices.ContainsFunc(s.rewrites, func(e entry) bool { return e.name == name }):
			p.Fail(f.Key, "remove it", "%s: the step rewrites %q, and files that a step rewrites have no access", what, name)
		case at < 0 && len(known) == 0:
			p.Fail(f.Key, "give the file a name, as in `each: {reads: PATTERN}`, or write one word for all files",
				"%s: the step reads no file with a name", what)
		case at < 0:
			p.Fail(f.Key, yamlfile.DidYouMean(name, known), "%s: the step reads no file with the name %q", what, name)
		case a == taskqueue.AccessStream && logical.IsFolder(s.taken()[at].pattern.text):
			p.Fail(f.Key, "leave it out: a folder is linked", "%s: %q is a folder, and only files can be streamed", what, name)
		}
	}
}

// inputAccess reads how commands get the files of an input.
func (p *parser) inputAccess(in *DeclaredInput, n *yaml.Node, at field) {
	in.Access, _ = p.accessWord(n, at.what, "")
	if in.Access == taskqueue.AccessStream && slices.ContainsFunc(in.names,
		func(m *pattern) bool { return logical.IsFolder(m.text) }) {
		p.Fail(n, "remove it: a folder is linked", "%s: the input has folders, and only files can be streamed", at.what)
	}
}

// taken is what jobs of the step read, what its commands do not name left out.
func (s *step) taken() []entry {
	var all []entry
	for i, e := range s.data.each {
		all = append(all, entry{name: s.data.eachNames[i], pattern: e})
	}
	for _, m := range s.data.merge {
		all = append(all, entry{pattern: m})
	}
	return append(all, slices.DeleteFunc(slices.Clone(s.reads), func(e entry) bool { return e.hidden })...)
}

// checkAccess finds a command that cannot know where its inputs are, which are streamed.
func (p *parser) checkAccess(c writtenCommand) {
	s := c.step
	if c.key != "command" || s.data.access.all == nil || *s.data.access.all != taskqueue.AccessStream {
		return
	}
	named := []string{"in", "FAIRWAY_INPUTS_FILE", "FAIRWAY_CATALOG"}
	for _, e := range s.taken() {
		if e.name != "" {
			named = append(named, e.name)
		}
	}
	named = append(named, "eval", "source") // which may do anything
	if !slices.ContainsFunc(named, func(name string) bool { return mentions(c.n.Value, name) }) {
		p.Fail(c.n, "write \"$in\", or the variable of the file", "step %q: its inputs are streamed, and the command has "+
			"none of the variables that say where they are", s.name)
	}
}

// accessOf is how a job gets a file that it reads under a name, which may be empty.
func (f *Flow) accessOf(s *step, name, lfn string) taskqueue.Access {
	if a, ok := s.data.access.named[name]; ok && name != "" {
		return a
	}
	if s.data.access.all != nil {
		return *s.data.access.all
	}
	if n := f.names.Find(lfn); n != nil && n.file != nil {
		return n.file.access
	}
	return taskqueue.AccessLink
}

// fillAccess says how a job gets each of the files that it reads. Where Fairway counts the
// records of a file itself it reads from a file, to which it does not write.
func (f *Flow) fillAccess(j *job, c *commandSource) {
	if !f.w.saysAccess() {
		return
	}
	s := j.state.step
	own := j.count && s.data.split.unit != recordCounted
	access := map[string]taskqueue.Access{}
	say := func(name, lfn string) {
		a := f.accessOf(s, name, lfn)
		if a != taskqueue.AccessLink && (a != taskqueue.AccessStream || !logical.IsFolder(lfn)) && (!own || lfn != c.in[0]) {
			access[lfn] = a
		}
	}
	if !s.plain() {
		for i, lfn := range c.in {
			name := ""
			if i < len(s.data.eachNames) {
				name = s.data.eachNames[i]
			}
			say(name, lfn)
		}
	}
	for i, lfn := range c.step.named(c.reads) {
		say(c.step.reads[i].name, lfn)
	}
	if len(access) == 0 {
		return
	}
	c.access = access
	j.new.Job.Access = make([]taskqueue.Access, len(j.new.Job.Reads))
	for i, lfn := range j.new.Job.Reads {
		j.new.Job.Access[i] = access[lfn]
	}
}

// saysAccess reports whether any input or step says how files are read.
func (w *Workflow) saysAccess() bool {
	return slices.ContainsFunc(w.Inputs, func(in *DeclaredInput) bool { return in.Access != taskqueue.AccessLink }) ||
		slices.ContainsFunc(w.steps, func(s *step) bool { return s.data.access.all != nil || s.data.access.named != nil })
}
