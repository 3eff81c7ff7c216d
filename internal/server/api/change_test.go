package api

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"fairway/internal/taskqueue"
	"fairway/internal/wire"
)

// Of two commands that differ, what is shown differs too, however long their lines are.
func TestShownChangesDiffer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		line := rapid.StringMatching(`[ab]{0,200}`)
		text := rapid.SliceOfN(line, 1, 4)
		before, now := text.Draw(t, "before"), text.Draw(t, "now")
		lines := commandChanges(before, now)
		if (len(lines) == 0) != (strings.Join(before, "\n") == strings.Join(now, "\n")) {
			t.Fatalf("%q and %q: %q", before, now, lines)
		}
		var removed, added []string
		for _, l := range lines {
			if len(l) > 4+lineShown+3 {
				t.Fatalf("a line has %d columns", len(l))
			}
			if shown, ok := strings.CutPrefix(l, "  - "); ok {
				removed = append(removed, shown)
			} else if shown, ok := strings.CutPrefix(l, "  + "); ok {
				added = append(added, shown)
			}
		}
		if len(lines) > 0 && slices.Equal(removed, added) {
			t.Fatalf("%q and %q look alike: %q", before, now, lines)
		}
	})
}

func payload(shell string, environment map[string]string, outside ...string) *wire.Payload {
	return &wire.Payload{Shell: shell, Environment: environment, Variables: outside}
}

// What is told of a job that changed: variables, commands and inputs, each where it differs.
func TestWhatChangedIsTold(t *testing.T) {
	reads := func(marks ...string) *taskqueue.JobDetail {
		job := new(taskqueue.JobDetail)
		for i := 0; i < len(marks); i += 2 {
			job.Reads = append(job.Reads, taskqueue.FileView{File: taskqueue.FileRef{LFN: marks[i]}, Mark: marks[i+1]})
		}
		return job
	}
	set := func(pairs ...string) map[string]string {
		m := map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			m[pairs[i]] = pairs[i+1]
		}
		return m
	}
	for name, c := range map[string]struct {
		before, now *wire.Payload
		was         *wire.Provenance // its inputs
		job         *taskqueue.JobDetail
		want        []string
	}{
		"nothing": {payload("x", set("A", "1")), payload("x", set("A", "1")), nil, reads(), nil},
		"a variable": {
			payload("x", set("A", "1", "B", "2")), payload("x", set("A", "1", "B", "3")), nil, reads(),
			[]string{"B 2 -> 3"},
		},
		"a blank value": {
			payload("x", set("A", "")), payload("x", set("A", "a b")), nil, reads(),
			[]string{`A "" -> "a b"`},
		},
		"a new variable": {
			payload("x", nil), payload("x", set("A", "1")), nil, reads(),
			[]string{"its variable A is new"},
		},
		"one that went": {
			payload("x", set("A", "1")), payload("x", nil), nil, reads(),
			[]string{"it has no variable A any more"},
		},
		"from outside": {
			payload("x", set("A", "1")), payload("x", nil, "A"), nil, reads(),
			[]string{"A 1 -> that of the shell"},
		},
		"another command": {
			payload("x 1", set("A", "1")), payload("x 2", nil), nil, reads(),
			[]string{"its command changed:", "  - x 1", "  + x 2"},
		},
		"inputs": {
			payload("x", nil), payload("x", nil), &wire.Provenance{Reads: []string{"a", "b", "c"}, Marks: []string{"1", "2"}},
			reads("a", "1", "b", "3", "d", "4"),
			[]string{"input b changed", "it reads d, which is new", "it reads c no longer"},
		},
		"an input that is not known": {
			payload("x", nil), payload("x", nil), &wire.Provenance{Reads: []string{"a"}, Marks: []string{"1"}},
			reads("a", ""), nil,
		},
		"arguments": {
			&wire.Payload{Argv: []string{"x", "1"}}, &wire.Payload{Argv: []string{"x", "1"}, Shell: "other"}, nil, reads(), nil,
		},
	} {
		p := &wire.Provenance{Payload: c.before}
		if c.was != nil {
			p.Reads, p.Marks = c.was.Reads, c.was.Marks
		}
		if got := ChangesSince(p, c.job, c.now); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q; want %q", name, got, c.want)
		}
	}
	if got := ChangesSince(&wire.Provenance{}, reads("a", "1"), payload("x", nil)); got != nil {
		t.Errorf("of what nothing is known %q changed", got)
	}
}

// Of many changes the first are told, and how many more there are.
func TestFewChangesAreTold(t *testing.T) {
	lines := func(prefix string, n int) (all []string) {
		for i := range n {
			all = append(all, fmt.Sprint(prefix, i))
		}
		return all
	}
	if got := few(lines("c", changesShown), "inputs"); !slices.Equal(got, lines("c", changesShown)) {
		t.Errorf("%q", got)
	}
	got := few(lines("c", changesShown+1), "inputs")
	if len(got) != changesShown+1 || got[changesShown] != "1 more inputs changed" {
		t.Errorf("%q", got)
	}
	got = commandChanges(lines("a", linesShown/2), lines("b", linesShown/2))
	if len(got) != linesShown {
		t.Errorf("%q", got)
	}
	got = commandChanges(lines("a", linesShown/2), lines("b", linesShown/2+3))
	if len(got) != linesShown+1 || got[linesShown] != "  and 3 lines more" {
		t.Errorf("%q", got)
	}
	if got := commandChanges([]string{"same", "a", "end"}, []string{"same", "b", "c", "end"}); !slices.Equal(got,
		[]string{"  - a", "  + b", "  + c"}) {
		t.Errorf("%q", got)
	}
}

// The first difference of two long lines is seen, wherever it is.
func TestDifferencesOfLongLinesAreSeen(t *testing.T) {
	same := func(n int) string { return strings.Repeat("s", n) }
	for _, c := range []struct{ line, other, want string }{
		{same(lineShown), same(lineShown) + "x", same(lineShown)},
		{same(lineShown + 1), "", same(lineShown-3) + "..."},
		{same(10) + same(lineShown), same(10) + "x", same(lineShown-3) + "..."},
		{same(60) + "y" + same(40), same(60) + "x", "..." + same(20) + "y" + same(40)},
		{same(60) + "y" + same(80), same(60) + "x", "..." + same(20) + "y" + same(53) + "..."},
	} {
		if got := shortenedAround(c.line, c.other); got != c.want {
			t.Errorf("%q beside %q is %q; want %q", c.line, c.other, got, c.want)
		}
	}
}
