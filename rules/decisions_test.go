package rules

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

const decisions = "docs/decisions"

// noteName is the name of a note: its number, and its subject in words that somebody searches for.
var noteName = regexp.MustCompile(`^(\d{4})-[a-z0-9]+(-[a-z0-9]+)*\.md$`)

// noteHead is how a note begins: its number, its subject, and its status with a date.
var noteHead = regexp.MustCompile(`^# (\d{4}): (.+)\n\nStatus: (accepted|rejected|superseded by \d{4}), \d{4}-\d\d-\d\d\b`)

const listHead = `# Decisions

A note says of one subject what was chosen, when, why, and what was rejected. Its figures are those
on which the choice was made.

- The title is a noun that somebody would search for; the file is named after it.
- The second line is the status (accepted, superseded by NNNN or rejected), the date, and the notes
  that this one supersedes, amends or merges.
- A new choice about a subject that is here changes its note, with the date, and says in a line what
  it overturns. Another subject gets a note of its own.

Missing numbers were merged into a note that says so, left to pages and comments, or never used.
This list is made by "go test ./rules -update".

`

// Each decision note says what it is about and whether it holds, and the list has all notes in the
// order of their numbers.
func TestDecisionsAreListed(t *testing.T) {
	entries, err := os.ReadDir(filepath.Join(root, decisions))
	if err != nil {
		t.Fatal(err)
	}
	list, seen := listHead, map[string]bool{}
	for _, entry := range entries {
		name := entry.Name()
		if name == "README.md" {
			continue
		}
		file := noteName.FindStringSubmatch(name)
		if file == nil {
			t.Errorf("%s/%s: name it NNNN-subject.md", decisions, name)
			continue
		}
		content, err := os.ReadFile(filepath.Join(root, decisions, name))
		if err != nil {
			t.Fatal(err)
		}
		head := noteHead.FindStringSubmatch(string(content))
		switch {
		case head == nil:
			t.Errorf("%s/%s: begin with \"# NNNN: subject\" and \"Status: accepted, 2026-01-31.\"", decisions, name)
			continue
		case head[1] != file[1]:
			t.Errorf("%s/%s has the number %s in its title", decisions, name, head[1])
		case seen[head[1]]:
			t.Errorf("%s/%s: another note has this number", decisions, name)
		}
		seen[head[1]] = true
		list += fmt.Sprintf("- [%s](%s): %s", head[1], name, head[2])
		if head[3] != "accepted" {
			list += "; " + head[3]
		}
		list += "\n"
	}
	generated(t, decisions+"/README.md", list)
}
