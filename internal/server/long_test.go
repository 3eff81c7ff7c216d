package server

import (
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"fairway/internal/wire"
	"fairway/test/files"
)

// How many jobs a short workflow has, and a long one.
const (
	fewJobs  = 50
	manyJobs = 500
)

// cost is what a server and its pilots took.
type cost struct {
	allocated float64 // bytes
	computed  float64 // seconds of a processor
}

// forEach is what each of so many jobs cost, above what a run of one costs.
func (c cost) forEach(jobs int, one cost) cost {
	return cost{(c.allocated - one.allocated) / float64(jobs-1), (c.computed - one.computed) / float64(jobs-1)}
}

// How many times as much for each job of the long workflow is more than chance.
// What is looked at for each job, and grows with their number, would be ten times
// as much.
const (
	tooMuchAllocated = 2
	tooMuchComputed  = 5
)

// A job of a long workflow costs as much as one of a short one, with many files
// and with many steps, each of which reads what the one before wrote.
func TestLongWorkflowsCostNoMoreForEachJob(t *testing.T) {
	for name, workflow := range map[string]func(jobs int) (text string, files map[string]string){
		"files": manyFiles,
		"chain": manySteps,
	} {
		t.Run(name, func(t *testing.T) {
			one := costOf(t, 1, workflow)
			few, many := costOf(t, fewJobs, workflow).forEach(fewJobs, one), costOf(t, manyJobs, workflow).forEach(manyJobs, one)
			t.Logf("for each of few jobs %+v, of many %+v", few, many)
			if many.allocated > tooMuchAllocated*few.allocated || many.computed > tooMuchComputed*few.computed {
				t.Errorf("a job costs %+v where there are %d, and %+v where there are %d", few, fewJobs, many, manyJobs)
			}
		})
	}
}

func manyFiles(jobs int) (text string, files map[string]string) {
	files = map[string]string{}
	for n := range jobs {
		files[fmt.Sprintf("in/%d.txt", n)] = "text"
	}
	return `
workflow: files
inputs:
  texts: {files: "in/{n}.txt", as: "in/{n}.txt"}
steps:
  copy: {each: "in/{n}.txt", writes: "out/{n}.txt", command: cp}
`, files
}

func manySteps(jobs int) (text string, files map[string]string) {
	var steps strings.Builder
	steps.WriteString("workflow: chain\ninputs:\n  first: {files: 0.txt}\nsteps:\n")
	for n := range jobs {
		fmt.Fprintf(&steps, "  s%d: {each: %d.txt, writes: %d.txt, command: cp}\n", n, n, n+1)
	}
	return steps.String(), map[string]string{"0.txt": "text"}
}

// costOf runs a workflow of so many jobs.
func costOf(t *testing.T, jobs int, workflow func(int) (string, map[string]string)) cost {
	t.Helper()
	text, inputs := workflow(jobs)
	r := newRun(t, files.Folder(t, inputs), text, func(a *wire.Assignment,
		read func(string) string) (map[string]string, int) {
		return map[string]string{a.GetOutputs()[0].GetLfn(): read(a.GetInputs()[0].GetFile().GetLfn())}, 0
	})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began := processorTime(t)
	r.mustSucceed()
	computed := processorTime(t) - began
	runtime.ReadMemStats(&after)
	if r.pilots.total() != jobs {
		t.Fatalf("%d executions in %s, want %d", r.pilots.total(), filepath.Base(r.folder), jobs)
	}
	return cost{float64(after.TotalAlloc - before.TotalAlloc), computed.Seconds()}
}

// processorTime is what this process has used.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		t.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
