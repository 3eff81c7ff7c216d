package flow

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"fairway/internal/flow/workflow"
	"fairway/internal/logical"
)

// That all readers of a temporary file are known is told once the last is submitted that
// can be, and not before: by each kind of step that reads it.
func TestReadersOfTemporaryFiles(t *testing.T) {
	for _, c := range []struct {
		name, steps string
		arrive      string // a second file of the input that stays open
		commit      string // jobs, in this order
		known       string // of a/…, after these
	}{
		{name: "one job for each file", steps: `{each: "a/{x}", writes: "b/{x}", command: "true"}`, known: "a/1"},
		{name: "two steps", steps: `{each: "a/{x}", writes: "b/{x}", command: "true"}
  c: {each: "a/{x}", writes: "c/{x}", command: "true"}`, known: "a/1"},
		{name: "nobody takes this one", steps: `{each: "a/2", writes: "b", command: "true"}`, known: "a/1"},
		{name: "a partner that comes later", steps: `{each: ["a/{x}", "c/{x}"], writes: "b/{x}", command: "true"}
  c: {each: "more/{x}", writes: "c/{x}", command: "true"}`},
		{name: "a partner that has come", steps: `{each: ["a/{x}", "c/{x}"], writes: "b/{x}", command: "true"}
  c: {each: "more/{x}", writes: "c/{x}", command: "true"}`, arrive: "more/1", known: "a/1"},
		{name: "every combination", steps: `{each: ["a/{x}", "c/{y}"], writes: "b/{x}.{y}", command: "true"}
  c: {each: "more/{x}", writes: "c/{x}", command: "true"}`, arrive: "more/1"},
		{name: "a merge that is not full", steps: `{merge: "a/{x}", files: 2, writes: "b/{merge}", command: "true"}`},
		{name: "a merge that is full", steps: `{merge: "a/{x}", files: 1, writes: "b/{merge}", command: "true"}`, known: "a/1"},
		{name: "a merge of all", steps: `{merge: "a/{x}", writes: "b", command: "true"}`},
		{name: "a split before the file is there", steps: `{each: "a/{x}", split: {of: lines, records: 1}, writes: "b/{x}.{chunk}", command: "true"}`},
		{name: "a split that is counted", steps: `{each: "a/{x}", split: {of: lines, records: 1}, writes: "b/{x}.{chunk}", command: "true"}`, commit: "a/1 b/1/records", known: "a/1"},
		{name: "read by its name", steps: `{each: "more/{x}", reads: "a/{x}", writes: "b/{x}", command: "true"}`, arrive: "more/1", known: "a/1"},
		{name: "read by its name, not yet", steps: `{each: "more/{x}", reads: "a/{x}", writes: "b/{x}", command: "true"}`},
		{name: "read by its name, by several", steps: `{each: "pairs/{x}.{y}", reads: "a/{x}", writes: "b/{x}.{y}", command: "true"}`, arrive: "pairs/1.p"},
		{name: "read in two ways", steps: `{each: "a/{x}", reads: "a/1", writes: "b/{x}", command: "true"}`},
		{name: "read once", steps: `{reads: "a/1", writes: "b", command: "true"}`, known: "a/1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := newWorld(t, `
workflow: w
inputs:
  in: {watch: "in/{x}", as: "in/{x}"}
  more: {watch: "more/{x}", as: "more/{x}", may_be_empty: true}
  pairs: {watch: "pairs/{x}.{y}", as: "pairs/{x}.{y}", may_be_empty: true}
steps:
  a: {each: "in/{x}", writes: "a/{x}", storage: temporary, command: "true"}
  b: `+c.steps+"\n", nil)
			x.produce = func(workflow.NewJob, string) []string { return []string{logical.CountFolder + "b/1/records/3"} }
			x.arrive("in", "in/1")
			if input, _, ok := strings.Cut(c.arrive, "/"); ok {
				x.arrive(input, c.arrive)
			}
			for _, name := range strings.Fields(c.commit) {
				x.commit(name)
			}
			x.reload()
			if got := strings.Join(slices.Sorted(maps.Keys(x.known)), " "); got != c.known {
				t.Errorf("known are the readers of %q, want %q", got, c.known)
			}
			x.produce = produced
			x.commitAll(first)
			x.close("in")
			x.close("more")
			x.close("pairs")
			x.commitAll(first)
			if x.finished && !slices.Equal(slices.Sorted(maps.Keys(x.known)), []string{"a/1"}) {
				t.Errorf("finished, and the readers of %q are known", slices.Sorted(maps.Keys(x.known)))
			}
		})
	}
}
