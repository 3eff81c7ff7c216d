package workflow

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
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
			// A dot in front stays: of result.o a command names ".o", and not "o" as in "cc -o".
			part := strings.TrimRight(strings.TrimLeft(t.Literal, "/"), "/.")
			if part != "" && hasWord(s.Runs.Command, part, inNames) {
				return true
			}
		}
		if hasWord(s.Runs.Command, outputVariable(e), inWords) {
			return true
		}
	}
	return false
}

// inNames and inWords are what goes on with a part of a file's name in a longer word, and with a variable.
const (
	inNames = `\pL`
	inWords = `\pL\pN_`
)

// hasWord reports whether a part of a name stands in a command, and not within a longer word.
func hasWord(command, part, goesOn string) bool {
	edge, before, after := regexp.MustCompile("["+goesOn+"]"), "", ""
	if first, _ := utf8.DecodeRuneInString(part); edge.MatchString(string(first)) {
		before = `(^|[^` + goesOn + `])`
	}
	if last, _ := utf8.DecodeLastRuneInString(part); edge.MatchString(string(last)) {
		after = `($|[^` + goesOn + `])`
	}
	return regexp.MustCompile(before + regexp.QuoteMeta(part) + after).MatchString(command)
}

// ownProgramIn finds the path of a program in a command.
var ownProgramIn = regexp.MustCompile(`(^|[\s;&|(])\.{0,2}/?[\w.-]+/[\w./-]+`)
