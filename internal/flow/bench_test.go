package flow

import (
	"fmt"
	"strings"
	"testing"

	"fairway/internal/flow/workflow"
)

// BenchmarkJob measures one job through Flow, commit included, in small and
// large workflows: the time must not grow with the number of files or steps.
func BenchmarkJob(b *testing.B) {
	for _, files := range []int{200, 20_000} {
		b.Run(fmt.Sprintf("joined/files=%d", files), func(b *testing.B) { benchmarkRuns(b, joined, files) })
		b.Run(fmt.Sprintf("sized/files=%d", files), func(b *testing.B) { benchmarkRuns(b, sized, files) })
		b.Run(fmt.Sprintf("rewritten/files=%d", files), func(b *testing.B) { benchmarkRuns(b, rewriting, files) })
	}
	for _, steps := range []int{10, 1000} {
		b.Run(fmt.Sprintf("chain/steps=%d", steps), func(b *testing.B) { benchmarkRuns(b, chain(steps), 20) })
	}
}

const rewriting = `
workflow: w
inputs: {raw: {files: "raw/{n}", as: "raw/{n}"}, s: {files: state}}
steps:
  a: {each: "raw/{n}", writes: "a/{n}.{m}", command: "true"}
  b: {each: "a/{n}.{m}", reads: state, writes: "b/{n}.{m}", command: "true"}
  c: {each: "b/{n}.{m}", rewrites: state, command: "true"}
`

func chain(steps int) string {
	var s strings.Builder
	s.WriteString("workflow: w\ninputs: {raw: {files: \"raw/{n}\", as: \"s0/{n}\"}}\nsteps:\n")
	for i := 1; i <= steps; i++ {
		fmt.Fprintf(&s, "  s%d: {each: \"s%d/{n}\", writes: \"s%d/{n}\", command: \"true\"}\n", i, i-1, i)
	}
	return s.String()
}

func benchmarkRuns(b *testing.B, text string, files int) {
	jobs := 0
	for b.Loop() {
		x := newWorld(b, text, nil)
		x.produce = func(j workflow.NewJob, pattern string) []string {
			return []string{strings.ReplaceAll(pattern, "*", "x")}
		}
		names := make([]string, files)
		for i := range names {
			names[i] = fmt.Sprintf("%s%d", strings.TrimSuffix(x.w.Inputs[0].Names[0].Text, "{n}"), i)
		}
		for _, in := range x.w.Inputs[1:] {
			x.arrive(in.Name, "state")
			x.close(in.Name)
		}
		x.arrive(x.w.Inputs[0].Name, names...)
		x.close(x.w.Inputs[0].Name)
		for i := 0; i < len(x.submitted); i++ {
			x.step(Happened{x.event(x.jobs[x.submitted[i]])})
		}
		if !x.finished {
			b.Fatal("not finished")
		}
		jobs += len(x.submitted)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(jobs), "ns/job")
}
