package api

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"fairway/internal/taskqueue"
	"fairway/internal/wire"
)

const (
	changesShown = 5  // of one kind, in one explanation
	linesShown   = 20 // of a command that changed
	lineShown    = 80 // columns of one of them
)

// ChangesSince tells how a job differs from what an earlier result of it was
// made from, one difference a line. Where both are alike, or little is known of
// the earlier one, there are none.
func ChangesSince(p *wire.Provenance, job *taskqueue.JobDetail, now *wire.Payload) []string {
	if p.GetPayload() == nil {
		return nil
	}
	lines := commandChanges(commandLines(p.Payload), commandLines(now))
	changes := variableChanges(p.Payload, now, len(lines) == 0)
	if len(lines) > 0 {
		changes = append(changes, "its command changed:")
		changes = append(changes, lines...)
	}
	return append(changes, inputChanges(p, job)...)
}

// variableChanges tells variables with other values. Those that came or went are told if the command
// is the same; else it says so itself.
func variableChanges(before, now *wire.Payload, sameCommand bool) []string {
	had, has := variablesOf(before), variablesOf(now)
	names := maps.Clone(had)
	maps.Copy(names, has)
	var changes []string
	for _, name := range slices.Sorted(maps.Keys(names)) {
		was, known := had[name]
		is, still := has[name]
		switch {
		case was == is && known == still:
		case known && still:
			changes = append(changes, fmt.Sprintf("%s %s -> %s", name, was, is))
		case known && sameCommand:
			changes = append(changes, fmt.Sprintf("it has no variable %s any more", name))
		case sameCommand:
			changes = append(changes, fmt.Sprintf("its variable %s is new", name))
		}
	}
	return few(changes, "variables")
}

// variablesOf are the variables that a command has of its own, as people see their values. Those that
// come from outside have none here.
func variablesOf(p *wire.Payload) map[string]string {
	values := map[string]string{}
	for name, value := range p.GetEnvironment() {
		values[name] = quoted(value)
	}
	for _, name := range p.GetVariables() {
		values[name] = "that of the shell"
	}
	return values
}

func quoted(value string) string {
	if value == "" || strings.ContainsAny(value, " \t\n\"'") {
		value = fmt.Sprintf("%q", value)
	}
	return shortened(value)
}

func shortened(line string) string {
	runes := []rune(line)
	if len(runes) <= lineShown {
		return line
	}
	return string(runes[:lineShown-3]) + "..."
}

// counterpart is the line that stands at the same place of the other text; empty: there is none.
func counterpart(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return ""
}

// shortenedAround shortens a line so that its first difference from another one is seen.
func shortenedAround(line, other string) string {
	runes, others := []rune(line), []rune(other)
	same := 0
	for same < len(runes) && same < len(others) && runes[same] == others[same] {
		same++
	}
	if len(runes) <= lineShown || same < lineShown/2 || len(others) == 0 {
		return shortened(line)
	}
	from := same - lineShown/4
	return shortened("..." + string(runes[from:]))
}

func commandLines(p *wire.Payload) []string {
	text := p.GetShell()
	if len(p.GetArgv()) > 0 {
		text = strings.Join(p.GetArgv(), " ")
	}
	if r := p.GetReplay(); r != nil {
		text = fmt.Sprintf("%s for %v", r.GetProgram(), r.GetCompute().AsDuration())
	}
	return strings.Split(strings.TrimSpace(text), "\n")
}

// commandChanges shows the lines between the first that differ and the last, as
// diff does.
func commandChanges(before, now []string) []string {
	for len(before) > 0 && len(now) > 0 && before[0] == now[0] {
		before, now = before[1:], now[1:]
	}
	for len(before) > 0 && len(now) > 0 && before[len(before)-1] == now[len(now)-1] {
		before, now = before[:len(before)-1], now[:len(now)-1]
	}
	var lines []string
	for i, line := range before {
		lines = append(lines, "  - "+shortenedAround(line, counterpart(now, i)))
	}
	for i, line := range now {
		lines = append(lines, "  + "+shortenedAround(line, counterpart(before, i)))
	}
	if more := len(lines) - linesShown; more > 0 {
		lines = append(lines[:linesShown], fmt.Sprintf("  and %d lines more", more))
	}
	return lines
}

func inputChanges(p *wire.Provenance, job *taskqueue.JobDetail) []string {
	before := make(map[string]string, len(p.Reads))
	for i, lfn := range p.Reads {
		before[lfn] = ""
		if i < len(p.Marks) {
			before[lfn] = p.Marks[i]
		}
	}
	var changes []string
	for i := range job.Reads {
		file := &job.Reads[i]
		mark, ok := before[file.File.LFN]
		delete(before, file.File.LFN)
		switch {
		case !ok:
			changes = append(changes, fmt.Sprintf("it reads %s, which is new", file.File.LFN))
		case file.Mark != "" && file.Mark != mark:
			changes = append(changes, fmt.Sprintf("input %s changed", file.File.LFN))
		}
	}
	for _, lfn := range slices.Sorted(maps.Keys(before)) {
		changes = append(changes, fmt.Sprintf("it reads %s no longer", lfn))
	}
	return few(changes, "inputs")
}

func few(changes []string, of string) []string {
	if more := len(changes) - changesShown; more > 0 {
		return append(changes[:changesShown:changesShown], fmt.Sprintf("%d more %s changed", more, of))
	}
	return changes
}
