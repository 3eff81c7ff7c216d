package flow

import (
	"strings"
	"testing"

	"fairway/internal/flow/workflow"
	"fairway/internal/logical"
)

// A run that made nothing of something says so and is not finished, and says it
// once; may_be_empty permits it.
func TestNothingIsMadeInSilence(t *testing.T) {
	for _, c := range []struct {
		name, inputs, steps string // with EMPTY where the key stands
		arrive              map[string][]string
		want                string
	}{
		{"an input", "i: {watch: 'i/{n}', as: 'i/{n}', EMPTY}", "s: {each: 'i/{n}', writes: 's/{n}', command: x}", nil, "the input i ended without a file (i/{n})"},
		{"files", "i: {files: 'i/{n}', as: 'i/{n}', EMPTY}", "s: {each: 'i/{n}', writes: 's/{n}', command: x}", nil, "the input i ended without a file (i/{n})"},
		{"a list", "i: {url_list: all.txt, as: 'i/{n}', match: '{n}', EMPTY}", "s: {merge: 'i/{n}', writes: s, command: x}", nil, "the input i ended without a file (all.txt)"},
		{"records", "i: {files: 'i/{n}', as: 'i/{n}'}", "s: {each: 'i/{n}', split: {records: 1, count: x}, writes: 's/{n}/{chunk}', command: x, EMPTY}", map[string][]string{"i": {"i/a", "i/b"}}, "step s makes no job of i/a, which has no records"},
		{"bytes", "i: {files: 'i/{n}', as: 'i/{n}'}", "s: {each: 'i/{n}', split: {records: 1, of: bytes=1}, writes: 's/{n}/{chunk}', command: x, EMPTY}", map[string][]string{"i": {"i/none"}}, "step s makes no job of i/none"},
		{"chosen names", "i: {files: 'i/{n}', as: 'i/{n}'}", "s: {each: 'i/{n}', writes: 's/{n}/{x}', command: x, EMPTY}\n  t: {each: 's/{n}/{x}', writes: 't/{n}/{x}', command: x}\n  u: {merge: 't/{n}/{x}', writes: u, command: x}", map[string][]string{"i": {"i/a"}}, `no job of step s wrote a file that fits "s/{n}/{x}"`},
		{"text that nothing fits", "i: {files: 'i/{n}', as: 'i/{n}'}", "s: {each: 'i/{n}', writes: 's/{n}.{k}', command: x}\n  t: {each: 's/{n}.1', writes: 't/{n}', command: x, EMPTY}", map[string][]string{"i": {"i/a"}}, `step t takes none of the files of step "s": none fits "s/{n}.1"`},
		{"partners", "i: {files: 'i/{n}', as: 'i/{n}'}\n  k: {files: 'k/{n}', as: 'k/{n}'}", "s: {each: ['i/{n}', 'k/{n}'], writes: 's/{n}', command: x, EMPTY}", map[string][]string{"i": {"i/a", "i/b", "i/c"}, "k": {"k/a"}}, "step s makes no job of i/b: no file of its other patterns fits it (nor 1 more)"},
	} {
		for _, permitted := range []bool{false, true} {
			key := "may_be_empty: false"
			if permitted {
				key = "may_be_empty: true"
			}
			x := newWorld(t, strings.ReplaceAll("workflow: w\ninputs:\n  "+c.inputs+"\nsteps:\n  "+c.steps+"\n", "EMPTY", key),
				nil)
			x.size = func(lfn string) int64 { return int64(strings.Count(lfn, "x")) }
			x.produce = func(j workflow.NewJob, pattern string) []string {
				switch {
				case strings.HasPrefix(pattern, logical.CountFolder):
					return []string{strings.Replace(pattern, "*", "0", 1)}
				case j.Job.Step == "s" && strings.Contains(c.name, "text"):
					return []string{strings.Replace(pattern, "*", "2", 1)}
				}
				return nil
			}
			x.step(Tick{})
			for _, in := range x.flow.Inputs() {
				if len(c.arrive[in.Name]) > 0 {
					x.arrive(in.Name, c.arrive[in.Name]...)
				}
				x.close(in.Name)
			}
			x.commitAll(first)
			refused := x.flow.Refused()
			if permitted && (len(refused) > 0 || !x.finished) {
				t.Errorf("%s, permitted: finished %v, refused %q", c.name, x.finished, refused)
			}
			if !permitted && (x.finished || len(refused) == 0 || !strings.Contains(refused[0], c.want)) {
				t.Errorf("%s: finished %v, refused %q", c.name, x.finished, refused)
			}
			if want := map[string]int{"records": 2}[c.name]; !permitted && len(refused) != max(want, 1) {
				t.Errorf("%s is told %d times: %q", c.name, len(refused), refused)
			}
			x.reload()
			if got := x.flow.Refused(); len(got) != len(refused) {
				t.Errorf("%s, loaded again: %q", c.name, got)
			}
		}
	}
}
