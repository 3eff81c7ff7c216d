package workflow

import (
	"fmt"
	"strings"

	"fairway/internal/flow/pattern"
)

// checkNesting finds names of which one is a folder of the other: no reader
// could have both files. Where only values decide, [Flow.inTheWay] does.
func (p *parser) checkNesting(w *Workflow, r *routes) {
	named := map[string]*pattern.Pattern{}
	owner := map[*pattern.Pattern]string{}
	for _, m := range r.makers {
		named[m.Pattern.Shape()], owner[m.Pattern] = m.Pattern, m.Owner()
	}
	for _, s := range w.Steps {
		for _, e := range s.Rewrites {
			named[e.Pattern.Shape()], owner[e.Pattern] = e.Pattern, fmt.Sprintf("step %q", s.Name)
		}
	}
	for inner, of := range owner {
		shape := inner.Shape()
		for at := strings.IndexByte(shape, '/'); at >= 0; {
			if outer := named[shape[:at]]; outer != nil {
				later := outer
				if inner.Line > outer.Line {
					later = inner
				}
				p.FailAt(later.Line, later.Column, "give one of them another name",
					"%s makes a file %q, and %s one in a folder of that name, %q", owner[outer], outer.Text, of, inner.Text)
			}
			if outer := named[shape[:at+1]]; outer != nil && at+1 < len(shape) {
				later := outer
				if inner.Line > outer.Line {
					later = inner
				}
				p.FailAt(later.Line, later.Column, "write it as part of the folder, or give one of them another name",
					"%s makes the folder %q as a whole, and %s makes %q in it", owner[outer], outer.Text, of, inner.Text)
			}
			next := strings.IndexByte(shape[at+1:], '/')
			if next < 0 {
				break
			}
			at += 1 + next
		}
	}
}
