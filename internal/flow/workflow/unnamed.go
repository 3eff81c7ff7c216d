package workflow

import (
	"fmt"
	"regexp"
	"strings"
)

// Unnamed says of each step whose command names none of its outputs that it does not: nothing is
// known then of how it would write them. A command that is a file, or that another program begins
// with what it knows, may do so.
func (w *Workflow) Unnamed() (notes []string) {
	for i := range w.Steps {
		s := w.Steps[i]
		if s.Runs.Command == "" || s.Runs.Script != "" || s.Replayed || len(s.Writes) == 0 || s.namesOutput() {
			continue
		}
		notes = append(notes, fmt.Sprintf(
			`step %q: its command names none of its outputs, such as %s: write "$%s" where it writes`, s.Name,
			s.Writes[0].Pattern.Text, outputVariable(&s.Writes[0])))
	}
	return notes
}

func outputVariable(e *Entry) string {
	if e.Name != "" {
		return e.Name
	}
	return "out"
}

// namesOutput reports whether the command has the variable of an output, or a plain part of its name;
// or runs a program of the workflow, which may know them.
func (s *Step) namesOutput() bool {
	if ownProgramIn.MatchString(s.Runs.Command) {
		return true
	}
	for i := range s.Writes {
		e := &s.Writes[i]
		for _, t := range e.Pattern.Tokens {
			if part := strings.Trim(t.Literal, "/."); part != "" && strings.Contains(s.Runs.Command, part) {
				return true
			}
		}
		if regexp.MustCompile(`\b` + regexp.QuoteMeta(outputVariable(e)) + `\b`).MatchString(s.Runs.Command) {
			return true
		}
	}
	return false
}

// ownProgramIn finds the path of a program in a command.
var ownProgramIn = regexp.MustCompile(`(^|[\s;&|(])\.{0,2}/?[\w.-]+/[\w./-]+`)
