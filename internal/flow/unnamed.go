package flow

import (
	"fmt"
	"regexp"
	"strings"
)

// Unnamed says of each step whose command names none of its outputs that it does not: nothing is
// known then of how it would write them. A command that is a file, or that another program begins
// with what it knows, may do so.
func (w *Workflow) Unnamed() (notes []string) {
	for i := range w.steps {
		s := w.steps[i]
		if s.runs.command == "" || s.runs.script != "" || s.replayed || len(s.writes) == 0 || s.namesOutput() {
			continue
		}
		notes = append(notes, fmt.Sprintf(
			`step %q: its command names none of its outputs, such as %s: write "$%s" where it writes`, s.name,
			s.writes[0].pattern.text, outputVariable(&s.writes[0])))
	}
	return notes
}

func outputVariable(e *entry) string {
	if e.name != "" {
		return e.name
	}
	return "out"
}

// namesOutput reports whether the command has the variable of an output, or a plain part of its name;
// or runs a program of the workflow, which may know them.
func (s *step) namesOutput() bool {
	if ownProgramIn.MatchString(s.runs.command) {
		return true
	}
	for i := range s.writes {
		e := &s.writes[i]
		for _, t := range e.pattern.tokens {
			if part := strings.Trim(t.literal, "/."); part != "" && strings.Contains(s.runs.command, part) {
				return true
			}
		}
		if regexp.MustCompile(`\b` + regexp.QuoteMeta(outputVariable(e)) + `\b`).MatchString(s.runs.command) {
			return true
		}
	}
	return false
}

// ownProgramIn finds the path of a program in a command.
var ownProgramIn = regexp.MustCompile(`(^|[\s;&|(])\.{0,2}/?[\w.-]+/[\w./-]+`)
