package command

import (
	"embed"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"fairway/internal/batch"
	"fairway/internal/quantity"
	"fairway/internal/yamlfile"
)

// Template says how a batch system is called, and how its answers are read.
//
// Placeholders such as {name} stand in Header, Input, Submit, Status and Cancel. A
// line or an argument with a placeholder that has no value is left out; one with
// {option} is repeated for each extra option of the site. {whole_node} stands for no
// text, and has a value where the site asks for neither processors nor memory.
// {environment} are the names of variables, with commas between them; {whole_environment}
// stands for no text, and has a value in its place where all are meant. {script} is the path of
// the script. {script_name} is its name in {folder}, where all commands run: it means nothing else
// in any job description.
type Template struct {
	Name   string
	Header string   // lines of the script after #!/bin/sh, such as #SBATCH
	Input  string   // what Submit reads; empty: the script
	Submit []string // a command and its arguments
	Status []string // tells of all jobs of the user, with one call
	Job    *regexp.Regexp
	// Answer is what a whole answer of Status looks like, nil: anything. One that is cut
	// short, or something else, is not taken for an answer with fewer jobs.
	Answer *regexp.Regexp
	States map[batch.State][]string // the words of the group state of Job
	Cancel []string                 // {id} is repeated for each job
	// Empty are exit codes of Status by which a batch system says that it has no
	// jobs.
	Empty []int
	// Inherits are the variables that Submit itself needs where it hands its own environment
	// over to the job, so that it gets no others beside those that are to be handed over. A
	// name may end with *. None: Submit says by {environment} what is handed over.
	Inherits []string
	// Never is what a batch system says when it refuses a job that it could never start, or
	// gives as the reason of one that waits, in capitals or not; nil: anything may pass.
	Never *regexp.Regexp
	// Uploads says that Submit has sent the file {script} to the batch system when it ends.
	Uploads bool
	// AtOnce is how many launches one submission may carry, 0: one. Lines of Input with {name}, {script}
	// or {script_name} stand once for each of them.
	AtOnce int
	// Poll is the least time between two questions for the status where the site says nothing, 0:
	// that of package batch.
	Poll time.Duration
	// Private says that nobody but their user and the administrators may read the script,
	// from the submission until after the end of the job.
	Private bool
}

// Placeholders that a template may use, and where their values come from.
var Placeholders = []string{
	"name", "script", "script_name", "folder", "id", "option", "partition", "queue", "account", "parallel_environment",
	"cpus", "memory_bytes", "memory_mb", "memory_mb_per_cpu", "seconds", "minutes", "hms", "image", "whole_node",
	"environment", "whole_environment",
}

// Names are those of the templates that come with the program.
func Names() (names []string) {
	entries, _ := ready.ReadDir("templates")
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".yaml"))
	}
	return names
}

//go:embed templates
var ready embed.FS

// Ready returns the template of that name that comes with the program.
func Ready(name string) (*Template, error) {
	data, err := ready.ReadFile(path.Join("templates", name+".yaml"))
	if err != nil {
		return nil, fmt.Errorf("there is no template %q; %s", name, yamlfile.DidYouMean(name, Names()))
	}
	r := &yamlfile.Reader{
		File: name + ".yaml", Kind: "template", Limit: maxTemplate, Begin: "write submit, status, job, states and cancel",
	}
	t := &Template{}
	if root := r.Root(data); root != nil {
		t = Read(r, root, "the template")
	}
	if len(r.Problems) > 0 {
		return nil, r.Problems.Sorted()
	}
	t.Name = name
	return t, nil
}

// Text returns a template that comes with the program as it is written.
func Text(name string) string {
	data, _ := ready.ReadFile(path.Join("templates", name+".yaml"))
	return string(data)
}

// About says for a person what a template that comes with the program calls: the first
// sentence of its text.
func About(name string) string {
	line, _, _ := strings.Cut(strings.TrimPrefix(Text(name), "# "), "\n")
	sentence, _, _ := strings.Cut(line, ". ")
	return strings.TrimSuffix(sentence, ".")
}

const maxTemplate = 64 << 10

var templateKeys = []yamlfile.Key[Template]{
	{Name: "header", Read: text(func(t *Template) *string { return &t.Header })},
	{Name: "input", Read: text(func(t *Template) *string { return &t.Input })},
	{Name: "submit", Read: argv(func(t *Template) *[]string { return &t.Submit })},
	{Name: "status", Read: argv(func(t *Template) *[]string { return &t.Status })},
	{Name: "empty", Read: empty},
	{Name: "answer", Read: pattern(func(t *Template) **regexp.Regexp { return &t.Answer })},
	{Name: "job", Read: pattern(func(t *Template) **regexp.Regexp { return &t.Job }, "name", "id", "state")},
	{Name: "states", Read: states},
	{Name: "cancel", Read: argv(func(t *Template) *[]string { return &t.Cancel })},
	{Name: "inherits", Read: func(r *yamlfile.Reader, n *yaml.Node, t *Template, what string) { t.Inherits = r.Texts(n, what) }},
	{Name: "never", Read: never},
	{Name: "uploads", Read: yamlfile.Into(yamlfile.Flag, func(t *Template) *bool { return &t.Uploads })},
	{Name: "private", Read: yamlfile.Into(yamlfile.Flag, func(t *Template) *bool { return &t.Private })},
	{Name: "at_once", Read: yamlfile.Whole(1, func(t *Template) *int { return &t.AtOnce })},
	{Name: "poll", Read: yamlfile.Into(quantity.Duration, func(t *Template) *time.Duration { return &t.Poll })},
}

// Read reads a template out of a file, and notes its problems.
func Read(r *yamlfile.Reader, n *yaml.Node, what string) *Template {
	t := &Template{States: map[batch.State][]string{}}
	keys := yamlfile.Take(r, n, t, what, templateKeys, nil)
	for _, key := range []string{"submit", "status", "job", "states", "cancel"} {
		if keys[key] == nil {
			r.Fail(n, "see `fairway site template slurm` for an example", "%s has no %s", what, key)
		}
	}
	return t
}

type read = func(*yamlfile.Reader, *yaml.Node, *Template, string)

func text(field func(*Template) *string) read {
	return func(r *yamlfile.Reader, n *yaml.Node, t *Template, what string) {
		*field(t), _ = r.Text(n, what)
		checkPlaceholders(r, n, *field(t), what)
	}
}

func argv(field func(*Template) *[]string) read {
	return func(r *yamlfile.Reader, n *yaml.Node, t *Template, what string) {
		*field(t) = r.Texts(n, what)
		checkPlaceholders(r, n, strings.Join(*field(t), " "), what)
	}
}

func empty(r *yamlfile.Reader, n *yaml.Node, t *Template, what string) {
	for _, item := range r.Items(n, what) {
		if text, ok := r.Text(item, what); ok {
			t.Empty = append(t.Empty, int(r.Integer(item, text, what, 1)))
		}
	}
}

func pattern(field func(*Template) **regexp.Regexp, groups ...string) read {
	return func(r *yamlfile.Reader, n *yaml.Node, t *Template, what string) {
		text, ok := r.Text(n, what)
		if !ok {
			return
		}
		pattern, err := regexp.Compile(text)
		if err != nil {
			r.Fail(yamlfile.Follow(n), "write a regular expression as Go reads them", "%s: %v", what, err)
			return
		}
		for _, group := range groups {
			if pattern.SubexpIndex(group) < 0 {
				r.Fail(yamlfile.Follow(n), fmt.Sprintf("add (?P<%s>...)", group), "%s has no group %q", what, group)
			}
		}
		*field(t) = pattern
	}
}

// never reads regular expressions of which any is to match.
func never(r *yamlfile.Reader, n *yaml.Node, t *Template, what string) {
	var err error
	if t.Never, err = regexp.Compile("(?i)(?:" + strings.Join(r.Texts(n, what), ")|(?:") + ")"); err != nil {
		r.Fail(yamlfile.Follow(n), "write regular expressions as Go reads them", "%s: %v", what, err)
	}
}

func states(r *yamlfile.Reader, n *yaml.Node, t *Template, what string) {
	kinds := []batch.State{batch.Queued, batch.Running, batch.Ending, batch.Gone}
	var names []string
	for _, s := range kinds {
		names = append(names, s.String())
	}
	for name, words := range r.Known(n, what, names, nil) {
		t.States[kinds[slices.Index(names, name)]] = r.Texts(words, what+": "+name)
	}
}

var placeholder = regexp.MustCompile(`\{([a-z_]+)\}`)

func checkPlaceholders(r *yamlfile.Reader, n *yaml.Node, text, what string) {
	for _, match := range placeholder.FindAllStringSubmatch(text, -1) {
		if !slices.Contains(Placeholders, match[1]) {
			r.Fail(yamlfile.Follow(n), yamlfile.DidYouMean(match[1], Placeholders), "%s: {%s} has no value", what, match[1])
		}
	}
}

// values are what placeholders stand for. Those without any are not there.
type values map[string]string

// fill puts values into lines or arguments. One with a placeholder without a value
// is left out, and one with the placeholder repeated stands once for each of all.
func (v values) fill(items []string, repeated string, all []string) (filled []string) {
	for _, item := range items {
		if !strings.Contains(item, "{"+repeated+"}") {
			if text, ok := v.fillOne(item, "", ""); ok {
				filled = append(filled, text)
			}
			continue
		}
		for _, value := range all {
			if text, ok := v.fillOne(item, repeated, value); ok {
				filled = append(filled, text)
			}
		}
	}
	return filled
}

func (v values) fillOne(item, repeated, value string) (filled string, ok bool) {
	ok = true
	filled = placeholder.ReplaceAllStringFunc(item, func(use string) string {
		name := use[1 : len(use)-1]
		switch text, given := v[name]; {
		case name == repeated:
			return value
		case given:
			return text
		}
		ok = false
		return ""
	})
	return filled, ok
}

// Carries reports whether the batch system hands the script to the node, and shows it to
// nobody else: it may hold secrets, and the node need not see the folder of the script.
func (t *Template) Carries() bool {
	return t.Private && (t.Uploads || t.Input == "" && !t.Uses("script"))
}

// HandsOver reports whether the template says which variables a job gets.
func (t *Template) HandsOver() bool { return len(t.Inherits) > 0 || t.Uses("environment") }

// Uses reports whether a placeholder stands in the template.
func (t *Template) Uses(name string) bool {
	all := append([]string{t.Header, t.Input}, slices.Concat(t.Submit, t.Status, t.Cancel)...)
	return strings.Contains(strings.Join(all, "\n"), "{"+name+"}")
}
