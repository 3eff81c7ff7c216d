package flow

import (
	"fmt"
	"strings"

	"fairway/internal/logical"
)

// checkNesting finds names of which one is a folder of the other: no reader
// could have both files. Where only values decide, [Flow.inTheWay] does.
func (p *parser) checkNesting(w *Workflow, r *routes) {
	named := map[string]*pattern{}
	owner := map[*pattern]string{}
	for _, m := range r.makers {
		named[m.pattern.shape()], owner[m.pattern] = m.pattern, m.owner()
	}
	for _, s := range w.steps {
		for _, e := range s.rewrites {
			named[e.pattern.shape()], owner[e.pattern] = e.pattern, fmt.Sprintf("step %q", s.name)
		}
	}
	for inner, of := range owner {
		shape := inner.shape()
		for at := strings.IndexByte(shape, '/'); at >= 0; {
			if outer := named[shape[:at]]; outer != nil {
				later := outer
				if inner.line > outer.line {
					later = inner
				}
				p.FailAt(later.line, later.column, "give one of them another name",
					"%s makes a file %q, and %s one in a folder of that name, %q", owner[outer], outer.text, of, inner.text)
			}
			if outer := named[shape[:at+1]]; outer != nil && at+1 < len(shape) {
				later := outer
				if inner.line > outer.line {
					later = inner
				}
				p.FailAt(later.line, later.column, "write it as part of the folder, or give one of them another name",
					"%s makes the folder %q as a whole, and %s makes %q in it", owner[outer], outer.text, of, inner.text)
			}
			next := strings.IndexByte(shape[at+1:], '/')
			if next < 0 {
				break
			}
			at += 1 + next
		}
	}
}

// shape is the text of p without the names of placeholders.
func (p *pattern) shape() string {
	var s strings.Builder
	for _, t := range p.tokens {
		switch {
		case t.isPlaceholder():
			s.WriteByte(0)
		default:
			s.WriteString(t.String())
		}
	}
	return s.String()
}

// inTheWay says why a file cannot be beside those that are known, or "": it is
// a folder of one of them, or one of them is a folder of it.
func (f *Flow) inTheWay(lfn string) string {
	if inside, ok := f.folders[logical.Path(lfn)]; ok && inside != lfn {
		return nested(lfn, inside)
	}
	for folder := range foldersOf(lfn) {
		if inside, ok := f.folders[folder]; ok {
			if inside == folder+"/" && inside != lfn {
				return nested(inside, lfn)
			}
			break // what it is in is known too
		}
		if n := f.names.Find(folder); n != nil && (n.file != nil || n.written) {
			return nested(folder, lfn)
		}
	}
	return ""
}

// nested says that an inner name is in an outer one, or that both stand for the
// same, as a file and as a folder.
func nested(outer, inner string) string {
	switch {
	case logical.Path(outer) == logical.Path(inner):
		return fmt.Sprintf("%s is a file and %s/ a folder of that name: give one of them another name", logical.Path(outer),
			logical.Path(outer))
	case logical.IsFolder(outer):
		return fmt.Sprintf("%s is a folder that is kept as a whole, and %s is in it: write it as part of the folder, or "+
			"give one of them another name", outer, inner)
	}
	return fmt.Sprintf("%s is a file, and %s one in a folder of that name: give one of them another name", outer, inner)
}

// occupy remembers the folders of a file.
func (f *Flow) occupy(lfn string) {
	for folder := range foldersOf(lfn) {
		if _, ok := f.folders[folder]; ok {
			break
		}
		f.folders[folder] = lfn
	}
}

// foldersOf gives the folders that a file is in, innermost first.
func foldersOf(lfn string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for at := strings.LastIndexByte(lfn, '/'); at >= 0; at = strings.LastIndexByte(lfn[:at], '/') {
			if !yield(lfn[:at]) {
				return
			}
		}
	}
}
