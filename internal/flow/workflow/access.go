package workflow

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"fairway/internal/flow/pattern"
	"fairway/internal/logical"
	"fairway/internal/taskqueue"
	"fairway/internal/yamlfile"
)

// accessRule is what a step says of how its commands get what they read. What it does not
// say is up to the input that a file is from.
type accessRule struct {
	All   *taskqueue.Access           // nil: it does not say
	Named map[string]taskqueue.Access // by the variables of files
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
func (p *parser) access(s *Step, n *yaml.Node, at field) {
	what := at.what
	if n = yamlfile.Follow(n); n.Kind != yaml.MappingNode {
		a, ok := p.accessWord(n, what, ", or a mapping with a word for each variable of a file")
		if !ok {
			return
		}
		s.Data.Access.All = &a
		if a == taskqueue.AccessStream && !slices.ContainsFunc(s.taken(),
			func(e Entry) bool { return !logical.IsFolder(e.Pattern.Text) }) {
			p.Fail(n, "remove it, or name files under each, merge or reads",
				"%s: the step reads no file that could be streamed", what)
		}
		return
	}
	s.Data.Access.Named = map[string]taskqueue.Access{}
	var known []string
	for _, e := range s.taken() {
		if e.Name != "" {
			known = append(known, e.Name)
		}
	}
	for _, f := range p.Mapping(n, what) {
		name := f.Key.Value
		a, ok := p.accessWord(f.Value, what+": "+name, "")
		if !ok {
			continue
		}
		s.Data.Access.Named[name] = a
		at := slices.IndexFunc(s.taken(), func(e Entry) bool { return e.Name == name })
		switch {
		case name != "" && slices.ContainsFunc(s.Rewrites, func(e Entry) bool { return e.Name == name }):
			p.Fail(f.Key, "remove it", "%s: the step rewrites %q, and files that a step rewrites have no access", what, name)
		case at < 0 && len(known) == 0:
			p.Fail(f.Key, "give the file a name, as in `each: {reads: PATTERN}`, or write one word for all files",
				"%s: the step reads no file with a name", what)
		case at < 0:
			p.Fail(f.Key, yamlfile.DidYouMean(name, known), "%s: the step reads no file with the name %q", what, name)
		case a == taskqueue.AccessStream && logical.IsFolder(s.taken()[at].Pattern.Text):
			p.Fail(f.Key, "leave it out: a folder is linked", "%s: %q is a folder, and only files can be streamed", what, name)
		}
	}
}

func (p *parser) inputAccess(in *DeclaredInput, n *yaml.Node, at field) {
	in.Access, _ = p.accessWord(n, at.what, "")
	if in.Access == taskqueue.AccessStream && slices.ContainsFunc(in.Names,
		func(m *pattern.Pattern) bool { return logical.IsFolder(m.Text) }) {
		p.Fail(n, "remove it: a folder is linked", "%s: the input has folders, and only files can be streamed", at.what)
	}
}

// taken is what jobs of the step read, what its commands do not name left out.
func (s *Step) taken() []Entry {
	var all []Entry
	for i, e := range s.Data.Each {
		all = append(all, Entry{Name: s.Data.EachNames[i], Pattern: e})
	}
	for _, m := range s.Data.Merge {
		all = append(all, Entry{Pattern: m})
	}
	return append(all, slices.DeleteFunc(slices.Clone(s.Reads), func(e Entry) bool { return e.Hidden })...)
}

// checkAccess finds a command that cannot know where its inputs are, which are streamed.
func (p *parser) checkAccess(c writtenCommand) {
	s := c.step
	if c.key != "command" || s.Data.Access.All == nil || *s.Data.Access.All != taskqueue.AccessStream {
		return
	}
	named := []string{"in", "FAIRWAY_INPUTS_FILE", "FAIRWAY_CATALOG"}
	for _, e := range s.taken() {
		if e.Name != "" {
			named = append(named, e.Name)
		}
	}
	named = append(named, "eval", "source") // which may do anything
	if !slices.ContainsFunc(named, func(name string) bool { return Mentions(c.n.Value, name) }) {
		p.Fail(c.n, "write \"$in\", or the variable of the file", "step %q: its inputs are streamed, and the command has "+
			"none of the variables that say where they are", s.Name)
	}
}

// SaysAccess reports whether any input or step says how files are read.
func (w *Workflow) SaysAccess() bool {
	return slices.ContainsFunc(w.Inputs, func(in *DeclaredInput) bool { return in.Access != taskqueue.AccessLink }) ||
		slices.ContainsFunc(w.Steps, func(s *Step) bool { return s.Data.Access.All != nil || s.Data.Access.Named != nil })
}
