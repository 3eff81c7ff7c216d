package workflow

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"fairway/internal/flow/pattern"
	"fairway/internal/logical"
	"fairway/internal/quantity"
	"fairway/internal/yamlfile"
)

func (p *parser) inputs(w *Workflow, n *yaml.Node, _ field) {
	for _, f := range p.Mapping(n, "inputs") {
		if !wordName.MatchString(f.Key.Value) {
			p.Fail(f.Key, "use letters, digits, '_', '-' and '.'", "%q is no name for an input", f.Key.Value)
		}
		in := &DeclaredInput{Name: f.Key.Value, Line: f.Key.Line}
		p.input(in, f)
		w.Inputs = append(w.Inputs, in)
	}
}

func (p *parser) input(in *DeclaredInput, f yamlfile.Field) {
	what := fmt.Sprintf("the input %q", in.Name)
	keys := known(p, f.Value, what, inputKeys, inputHabits)
	given := 0
	for _, key := range []string{"files", "watch", "url_list"} {
		if keys[key] != nil {
			given++
		}
	}
	if given != 1 {
		p.Fail(f.Key, "give one of files (what exists), watch (a folder that stays open) and url_list (a file of URLs)",
			"%s must say where its files are, once", what)
		return
	}
	in.Watch, in.URLList = keys["watch"] != nil, ""
	if n := keys["url_list"]; n != nil {
		in.URLList, _ = p.text(n, what+": url_list")
	}
	p.inputPatterns(in, keys, what)
	in.Close.Manual = in.Watch || in.URLList != ""
	take(p, in, keys, what, inputKeys)
}

// defaultProtocol is the one that catalogues use for files that a program opens
// by their paths.
const defaultProtocol = "direct"

func (p *parser) catalog(in *DeclaredInput, n *yaml.Node, at field) {
	n = yamlfile.Follow(n)
	if in.URLList == "" {
		p.Fail(n, "list the logical names in a file, and name that under url_list", "%s is for url_list only", at.what)
		return
	}
	in.Catalog = &CatalogRef{Protocol: defaultProtocol}
	if n.Kind == yaml.ScalarNode {
		in.Catalog.File, _ = p.text(n, at.what)
		return
	}
	keys := known(p, n, at.what, catalogKeys, nil)
	take(p, in.Catalog, keys, at.what, catalogKeys)
	if keys["file"] == nil {
		p.Fail(n, "write `catalog: {file: storage.json, protocol: direct}`", "%s has no file", at.what)
	}
}

func (p *parser) inputPatterns(in *DeclaredInput, keys map[string]*yaml.Node, what string) {
	source := keys["files"]
	if in.Watch {
		source = keys["watch"]
	}
	if m := keys["match"]; m != nil {
		if in.URLList == "" {
			p.Fail(m, "put the placeholders into the pattern of files or watch itself", "%s: match is for url_list only", what)
		}
		source = m
	}
	texts, nodes := []string{"*"}, []*yaml.Node{keys["url_list"]}
	if source != nil {
		texts, nodes = p.patternTexts(source, what)
	}
	for i, text := range texts {
		p.inputPattern(in, text, nodes[i], keys["as"], what)
	}
}

func (p *parser) inputPattern(in *DeclaredInput, text string, n, as *yaml.Node, what string) {
	switch {
	case in.URLList != "":
	case IsURL(text) && in.Watch:
		p.Fail(n, "list the files in a file that may grow, and name that under url_list",
			"%s: only folders of this machine can be watched", what)
		return
	case !IsURL(text) && logical.IsFolder(text):
		text = path.Clean(text) + "/"
	case !IsURL(text):
		text = path.Clean(text)
	}
	if !p.folderInput(in, text, n, what) {
		return
	}
	files, err := pattern.NewPattern(text)
	if err != nil {
		p.Fail(n, "write a path such as raw/{sample}.fq", "%s: %v", what, err)
		return
	}
	p.placeholders(n.Line, n.Column, files.Names)
	if a, b := files.Touching(nil); a != "" {
		p.Fail(n, "put text between them, or take one placeholder for both",
			"%s: nothing in %q tells where %s ends and %s begins", what, files.Text, a, b)
	}
	lfnText, lfnNode := baseOf(text), n
	if as != nil {
		var ok bool
		if lfnText, ok = p.patternText(as, what+": as"); !ok {
			return
		}
		lfnNode, in.renamed = yamlfile.Follow(as), true
	}
	lfn := p.pattern(lfnNode, lfnText, what)
	if lfn == nil {
		return
	}
	if as != nil {
		p.bindsAll(lfnNode, lfn, files, what)
		p.sameKind(lfnNode, lfn, files, what)
	}
	in.Paths, in.Names = append(in.Paths, files), append(in.Names, lfn)
	if in.URLList == "" {
		in.Patterns, in.Globs = append(in.Patterns, files.Text), append(in.Globs, files.Glob())
	}
}

// folderInput reports whether the pattern may be one of folders, if it is.
func (p *parser) folderInput(in *DeclaredInput, text string, n *yaml.Node, what string) bool {
	switch {
	case !logical.IsFolder(text):
		return true
	case in.URLList != "":
		p.Fail(n, "list the files, or name the folders under files",
			"%s: %q stands for folders, and a url_list has files only", what, text)
	case IsURL(text):
		p.Fail(n, "name its files, as in "+text+"{name}", "%s: %q stands for a folder, and an input folder must be on this "+
			"machine", what, text)
	case in.Watch:
		p.Fail(n, "watch for a file that is written when the folder is complete, or name the folders under files",
			"%s: %q stands for folders, and nothing tells when a folder is complete", what, text)
	default:
		return true
	}
	return false
}

// sameKind checks that a folder gets the name of a folder, and a file that of a
// file.
func (p *parser) sameKind(n *yaml.Node, lfn, files *pattern.Pattern, what string) {
	switch {
	case logical.IsFolder(files.Text) && !logical.IsFolder(lfn.Text):
		p.Fail(n, fmt.Sprintf("write as: %q", lfn.Text+"/"), "%s: %q stands for folders, and the name %q for a file", what,
			files.Text, lfn.Text)
	case !logical.IsFolder(files.Text) && logical.IsFolder(lfn.Text):
		p.Fail(n, "end both in '/' for folders, or none for files", "%s: %q stands for files, and the name %q for a folder",
			what, files.Text, lfn.Text)
	}
}

// bindsAll checks that each placeholder of the name is bound by the path.
func (p *parser) bindsAll(n *yaml.Node, lfn, files *pattern.Pattern, what string) {
	for _, name := range lfn.Names {
		switch {
		case !pattern.PlaceholderName.MatchString(name):
			p.Fail(n, "use a {placeholder} that the path binds", "%s: `as` has a wildcard", what)
		case !files.Has(name):
			p.Fail(n, fmt.Sprintf("put {%s} into the path, or leave it out", name), "%s: `as` uses {%s}, which %q does not bind",
				what, name, files.Text)
		}
	}
}

func (p *parser) closeRule(in *DeclaredInput, n *yaml.Node, at field) {
	if !in.Watch && in.URLList == "" {
		p.Fail(n, "remove it, or use watch instead of files", "%s: close is for inputs that stay open", at.of)
		return
	}
	in.Close = scalar(p, n, at.what, parseCloseRule)
}

func parseCloseRule(text string) (CloseRule, error) {
	words := strings.Fields(text)
	if file, ok := strings.CutPrefix(text, "file "); ok && len(words) > 1 {
		return CloseRule{File: strings.TrimSpace(file)}, nil
	}
	switch {
	case len(words) == 1 && words[0] == "manual":
		return CloseRule{Manual: true}, nil
	case len(words) == 3 && words[0] == "after" && words[2] == "idle":
		idle, err := quantity.Duration(words[1])
		return CloseRule{Idle: max(idle, time.Millisecond)}, err
	}
	return CloseRule{}, fmt.Errorf("%q is no rule; write `after 30s idle`, `manual` or `file NAME`", text)
}

func (p *parser) placeholders(line, column int, names []string) {
	for _, name := range names {
		if pattern.PlaceholderName.MatchString(name) && !slices.Contains(boundPlaceholders, name) {
			p.variable(line, column, name, "placeholder")
		}
	}
}
