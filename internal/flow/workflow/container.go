package workflow

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"fairway/internal/flow/pattern"
	"fairway/internal/quantity"
	"fairway/internal/taskqueue"
	"fairway/internal/yamlfile"
)

// Container says in what the command of a job runs.
type Container struct {
	Image   string // LFN of an input: a file, or a folder with all files of a system
	Runtime string // one of those that Runtimes has
}

// Runtimes are the programs that run containers, by the names that workflows give them. A node
// must have the program.
var Runtimes = map[string]string{
	"apptainer": "apptainer", "bubblewrap": "bwrap", "charliecloud": "ch-run", "podman": "podman",
}

// DefaultRuntime runs the containers of steps that name none.
const DefaultRuntime = "bubblewrap"

// InsideTools are the programs that nodes may have to run containers and to make environments.
func InsideTools() []string {
	return append(slices.Sorted(maps.Values(Runtimes)), "python3", "unsquashfs", "uv")
}

// squashed are the endings of images that are unpacked by unsquashfs, which a node then must have.
var squashed = []string{".sif", ".squashfs", ".sqfs", ".sqsh"}

var containerKeys = []fileKey[*Step]{
	{"image", "the image: an OCI or Docker archive, a SIF file, squashfs, a `tar` of all files, or a folder that ends in `/`", textOnly, (*parser).image},
	{"runtime", "what runs it: `bubblewrap` (default), `charliecloud`, `podman` or `apptainer`", `{ "enum": ["apptainer", "bubblewrap", "charliecloud", "podman"] }`,
		scalarOf(parseRuntime, func(s *Step) *string { return &s.Runs.container.Runtime })},
}

func (p *parser) inContainer(s *Step, n *yaml.Node, at field) {
	s.Runs.container.Runtime = DefaultRuntime
	if n = yamlfile.Follow(n); n.Kind != yaml.MappingNode {
		p.image(s, n, at)
	} else {
		keys := known(p, n, at.what, containerKeys, nil)
		take(p, s, keys, at.what, containerKeys)
		if keys["image"] == nil {
			p.Fail(n, "add image: FILE", "%s names no image", at.what)
		}
	}
	s.Needs.Tools = append(s.Needs.Tools, s.Runs.container.tools()...)
}

// tools are the programs that the node must have for a container.
func (c *Container) tools() []string {
	tools := []string{Runtimes[c.Runtime]}
	if slices.Contains(squashed, path.Ext(c.Image)) {
		tools = append(tools, "unsquashfs")
	}
	return tools
}

func (p *parser) image(s *Step, n *yaml.Node, at field) {
	s.Runs.container.Image = p.hiddenInput(s, n, at.what, "container")
}

func parseRuntime(text string) (string, error) {
	if Runtimes[text] == "" {
		return "", fmt.Errorf("%q is none that is known; write apptainer, bubblewrap, charliecloud or podman", text)
	}
	return text, nil
}

var gpuKeys = []fileKey[*gpuNeed]{
	{"count", "how many, or a share of one such as 0.5; default: 1", "whole",
		scalarOf(quantity.GPUs, func(g *gpuNeed) *quantity.Amount { return &g.count })},
	{"memory", "what each must have, also one of which a job has a share", "size",
		scalarOf(quantity.Room, func(g *gpuNeed) *int64 { return &g.memory })},
}

// gpuNeed is what a step says of the GPUs that its jobs need.
type gpuNeed struct {
	count  quantity.Amount
	memory int64
}

// gpus reads how many GPUs a job needs. That each has memory is asked of a node as a program is.
func (p *parser) gpus(s *Step, n *yaml.Node, at field) {
	g := &gpuNeed{count: quantity.Amount{Whole: 1}}
	if n = yamlfile.Follow(n); n.Kind == yaml.MappingNode {
		keys := known(p, n, at.what, gpuKeys, nil)
		take(p, g, keys, at.what, gpuKeys)
		if g.count == (quantity.Amount{}) && keys["count"] != nil {
			p.Fail(keys["count"], "write a number above 0", "%s: no GPU is asked for", at.what)
		}
	} else {
		g.count = scalar(p, n, at.what, quantity.GPUs)
	}
	if s.Needs.Resources.Countable == nil {
		s.Needs.Resources.Countable = map[string]int64{}
	}
	if s.Needs.Resources.GPUShare = g.count.Share; g.count.Share == 0 {
		s.Needs.Resources.Countable[quantity.GPU] = g.count.Whole
	}
	if g.memory > 0 {
		s.Needs.Tools = append(s.Needs.Tools, quantity.GPUMemory(g.memory))
	}
}

// environment reads the name of a file of requirements. A step of its own makes a folder with what
// they name, once, in which the commands of the steps that name the file find it.
func (p *parser) environment(s *Step, n *yaml.Node, at field) {
	n = yamlfile.Follow(n)
	text, ok := p.patternText(n, at.what)
	if !ok {
		return
	}
	made := p.pattern(n, environmentFolder+strings.TrimPrefix(path.Clean("/"+text), "/")+"/", at.what)
	if made == nil {
		return
	}
	if len(made.Names) > 0 {
		p.Fail(n, "name one file", "%s: %q has a placeholder or a wildcard", at.what, text)
		return
	}
	s.Runs.environment = made.Text
	s.Reads = append(s.Reads, Entry{Pattern: made, Hidden: true})
	if slices.ContainsFunc(p.environments, func(e *Step) bool { return e.Writes[0].Pattern.Text == made.Text }) {
		return
	}
	e := &Step{
		Name: "environment." + notInWord.ReplaceAllString(text, "_"), line: n.Line,
		Writes: []Entry{{Pattern: made}}, Needs: stepNeeds{Tools: []string{"uv", "python3"}},
		Runs: stepCommand{Command: environmentCommand, Interpreter: anyShell},
	}
	if lfn := p.hiddenInput(e, n, at.what, "requirements"); lfn == "" {
		return
	}
	e.Reads[0].Hidden = false // its command names it
	p.environments = append(p.environments, e)
}

var notInWord = regexp.MustCompile(`[^A-Za-z0-9_.-]+`)

// environmentFolder holds, in the names of files, what environments make.
const environmentFolder = "environments/"

// environmentCommand installs what is required into a folder that can be moved: what it has is
// found by PATH and PYTHONPATH, and runs in the Python of the node.
const environmentCommand = `uv pip install --quiet --link-mode copy --target "$out" --requirements "$in"
# Programs in it name the Python that they were installed with, which has another path elsewhere.
if [ -d "$out/bin" ]; then
	for f in "$out"/bin/*; do
		case $(head -c 2 "$f") in '#!') sed -i '1s|^#!.*python[0-9.]*$|#!/usr/bin/env python3|' "$f" ;; esac
	done
fi
`

// hiddenInput reads the name of a file that jobs read and commands do not name. If no input and no
// step makes it, it is a file beside the workflow, and an input of its own.
func (p *parser) hiddenInput(s *Step, n *yaml.Node, what, kind string) (lfn string) {
	n = yamlfile.Follow(n)
	text, ok := p.patternText(n, what)
	if !ok {
		return ""
	}
	folder := strings.HasSuffix(text, "/")
	if !IsURL(text) {
		text = path.Clean(text)
	}
	if lfn = text; path.IsAbs(text) || IsURL(text) || strings.HasPrefix(text, "../") {
		lfn = path.Base(text)
	}
	if folder {
		lfn, text = lfn+"/", strings.TrimSuffix(text, "/")+"/"
	}
	name := p.pattern(n, lfn, what)
	if name == nil {
		return ""
	}
	if len(name.Names) > 0 {
		p.Fail(n, "name one file", "%s: %q has a placeholder or a wildcard", what, name.Text)
		return ""
	}
	file, err := pattern.NewPattern(text)
	if err != nil {
		p.Fail(n, "name one file", "%s: %v", what, err)
		return ""
	}
	s.Reads = append(s.Reads, Entry{Pattern: name, Hidden: true})
	p.scripts = append(p.scripts, namedScript{n.Line, kind, file, name})
	return name.Text
}

// Inside puts into a command in what it runs.
func (s *Step) Inside(c *Command) {
	if s.Runs.container.Image != "" {
		c.Container = &s.Runs.container
	}
	c.EnvironmentFolder = s.Runs.environment
}

// HiddenReads are, of a job's reads in the order of its step, the last ones: commands do not name
// them.
func (s *Step) HiddenReads() (n int) {
	for _, e := range s.Reads {
		if e.Hidden {
			n++
		}
	}
	return n
}

// environmentSteps adds the steps that make environments, as the last ones of the workflow.
func (p *parser) environmentSteps(w *Workflow) {
	for _, e := range p.environments {
		if w.provides(e.Writes[0].Pattern) {
			continue // the workflow makes it itself
		}
		e.listed = len(w.Steps)
		e.Needs.Storage = taskqueue.StorageElement
		w.Steps = append(w.Steps, e)
	}
}
