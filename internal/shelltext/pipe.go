package shelltext

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// guard is the name of the function that GuardPipes has programs of a pipe
// call.
const guard = "fairway_pipe"

// The function makes an end by SIGPIPE one with code 0. A program of the shell
// itself gets the signal as the shell does, another one leaves its code. Traps
// of a subshell end with it, so those of the command stay.
const guardFunction = guard + `(){ trap 'exit 0' PIPE;trap '[[ $? != 141 ]]||exit 0' EXIT;};`

// GuardPipes changes a command for bash so that pipefail takes no offence at
// a program that was ended because the next one of its pipe had read enough,
// as in `zcat FILE | head -1`. All other failures stay what they are. Lines
// keep their numbers.
func GuardPipes(text string) string {
	t := Read(text)
	if t == nil {
		return text
	}
	edits := t.guards()
	if len(edits) == 0 {
		return text
	}
	guarded := guardFunction + edited(text, edits)
	if Read(guarded) == nil {
		return text // pipefail alone is strict
	}
	return guarded
}

type edit struct {
	at  int
	put string
}

func edited(text string, edits []edit) string {
	slices.SortStableFunc(edits, func(a, b edit) int { return a.at - b.at })
	var b strings.Builder
	done := 0
	for _, e := range edits {
		b.WriteString(text[done:e.at])
		b.WriteString(e.put)
		done = e.at
	}
	b.WriteString(text[done:])
	return b.String()
}

func (t *Text) guards() []edit {
	var edits []edit
	inner := map[*syntax.BinaryCmd]bool{}
	syntax.Walk(t.file, func(n syntax.Node) bool {
		if pipe, ok := n.(*syntax.BinaryCmd); ok && isPipe(pipe) && !inner[pipe] {
			edits = append(edits, guardsOf(pipe, inner)...)
		}
		return true
	})
	return edits
}

// guardsOf encloses all programs of a pipe but the last. The text before an
// operator is never within a here-document, so the closing brace goes there.
func guardsOf(pipe *syntax.BinaryCmd, inner map[*syntax.BinaryCmd]bool) (edits []edit) {
	var programs []*syntax.Stmt
	var operators []int
	var add func(pipe *syntax.BinaryCmd)
	side := func(s *syntax.Stmt) {
		if p, ok := s.Cmd.(*syntax.BinaryCmd); ok && isPipe(p) && !s.Negated && len(s.Redirs) == 0 {
			inner[p] = true
			add(p)
			return
		}
		programs = append(programs, s)
	}
	add = func(pipe *syntax.BinaryCmd) {
		side(pipe.X)
		operators = append(operators, int(pipe.OpPos.Offset()))
		side(pipe.Y)
	}
	add(pipe)
	for i, operator := range operators {
		edits = append(edits, edit{begin(programs[i]), "{ " + guard + "; "}, edit{operator, "; }"})
	}
	return edits
}

// begin is the offset at which a program of a pipe begins. The parser counts the
// `!` before a pipe to its first program, but it negates the whole pipe, and so
// has to stay before the brace.
func begin(program *syntax.Stmt) int {
	var at []uint
	if program.Cmd != nil {
		at = append(at, program.Cmd.Pos().Offset())
	}
	for _, r := range program.Redirs {
		at = append(at, r.Pos().Offset())
	}
	return int(slices.Min(at))
}

func isPipe(c *syntax.BinaryCmd) bool { return c.Op == syntax.Pipe || c.Op == syntax.PipeAll }
