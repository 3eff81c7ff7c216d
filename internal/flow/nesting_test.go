package flow

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"fairway/internal/flow/workflow"
)

// Only the data shows that one output is a folder of another: it is told,
// whichever comes first, and the run does not finish.
func TestFilesAreNoFoldersOfOthers(t *testing.T) {
	for _, c := range []struct {
		steps, input string
		jobs         int
		want         string
	}{
		{"a: {each: '{n}', writes: 'o/{n}', command: x}\n  b: {each: '{n}', writes: 'o/x/{n}', command: x}", "x", 1, "o/x is a file, and o/x/x one in a folder of that name"},
		{"a: {each: '{n}', writes: 'o/x/y/{n}', command: x}\n  b: {each: '{n}', writes: 'o/{n}', command: x}", "x", 1, "o/x is a file, and o/x/y/x one in a folder of that name"},
		{"a: {each: '{n}', writes: 'o/{n}', command: x}", "o", 0, "o is a file, and o/o one in a folder of that name"},
		{"a: {each: '{n}', rewrites: 'o/{n}', command: x}\n  b: {each: '{n}', writes: 'o/x/{n}', command: x}", "x", 1, "o/x is a file, and o/x/x one in a folder of that name"},
		{"a: {each: '{n}', writes: 'o/{n}', command: x}\n  b: {each: '{n}', writes: 'o/x/{m}_{n}', command: x}", "x", 2, "o/x is a file, and o/x/1_x one in a folder of that name"},
	} {
		x := newWorld(t, "workflow: w\ninputs: {i: {files: 'in/{n}'}}\nsteps:\n  "+c.steps+"\n", nil)
		x.produce = func(_ workflow.NewJob, pattern string) []string {
			return []string{strings.Replace(pattern, "*", "1", 1)}
		}
		x.arriveAt("i", "in/"+c.input)
		x.commitAll(first)
		if x.finished || len(x.jobs) != c.jobs || !strings.Contains(strings.Join(x.flow.Refused(), "\n"), c.want) {
			t.Errorf("%s: jobs %v, finished %v, refused %q", c.steps, slices.Sorted(maps.Keys(x.jobs)), x.finished,
				x.flow.Refused())
		}
	}
}
