package rules

import (
	"cmp"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const decisions = "docs/decisions"

// noteName is the name of a note: its number, and its subject in words that somebody searches for.
var noteName = regexp.MustCompile(`^(\d{4})-[a-z0-9]+(-[a-z0-9]+)*\.md$`)

// noteHead is how a note begins: its number, its subject, and its status with a date.
var noteHead = regexp.MustCompile(`^# (\d{4}): (.+)\n\nStatus: (accepted|rejected|superseded by \d{4}), \d{4}-\d\d-\d\d\b`)

// noteRow is a line of the list of notes: number, file, subject, and the status if the note is not
// accepted.
var noteRow = regexp.MustCompile(`(?m)^- \[(\d{4})\]\(([^)]+)\): ([^\n]+?)(?:; (rejected|superseded by \d{4}))?$`)

// Each decision note says what it is about and whether it holds, and the list has all notes in the
// order of their numbers.
func TestDecisionsAreListed(t *testing.T) {
	list, err := os.ReadFile(filepath.Join(root, decisions, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	type row struct{ number, subject, status string }
	listed := map[string]row{}
	var numbers []string
	for _, match := range noteRow.FindAllStringSubmatch(string(list), -1) {
		listed[match[2]] = row{match[1], match[3], cmp.Or(match[4], "accepted")}
		numbers = append(numbers, match[1])
	}
	if !slices.IsSorted(numbers) || len(slices.Compact(numbers)) != len(listed) {
		t.Errorf("%s/README.md: the notes are not in the order of their numbers, each once", decisions)
	}
	entries, err := os.ReadDir(filepath.Join(root, decisions))
	if err != nil {
		t.Fatal(err)
	}
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
		case head[1] != file[1]:
			t.Errorf("%s/%s has the number %s in its title", decisions, name, head[1])
		case listed[name] != row{head[1], head[2], head[3]}:
			t.Errorf("%s/README.md: the line of %s is not - [%s](%s): %s, with the status %s",
				decisions, name, head[1], name, head[2], head[3])
		}
		delete(listed, name)
	}
	for name := range listed {
		t.Errorf("%s/README.md lists %s, which is not there", decisions, strings.TrimSpace(name))
	}
}
