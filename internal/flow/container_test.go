package flow

import (
	"slices"
	"strings"
	"testing"
	"time"

	"fairway/internal/flow/workflow"
	"fairway/internal/quantity"
	"fairway/internal/taskqueue"
)

const inContainer = `workflow: w
steps:
  a:
    writes: a.txt
    container: images/a.sif
    command: tool > "$out"
  b:
    reads: a.txt
    writes: b.txt
    container: {image: ../root/, runtime: charliecloud}
    environment: requirements.txt
    script: b.py
    shell: python3
  c:
    writes: c.txt
    environment: requirements.txt
    command: python3 -c 1 > "$out"
`

// made are the jobs of a workflow whose inputs have a file each, by step.
func made(t *testing.T, text string) map[string]workflow.NewJob {
	t.Helper()
	w, err := workflow.Parse("t.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	f, err := New(w)
	if err != nil {
		t.Fatal(err)
	}
	jobs := map[string]workflow.NewJob{}
	step := func(in Input) {
		effects, err := f.Step(time.Time{}, in)
		if err != nil {
			t.Fatal(err)
		}
		for _, job := range effects.Submit {
			jobs[job.Job.Step] = job
		}
	}
	step(Tick{})
	for _, in := range f.Inputs() {
		name, _ := in.Names[0].Expand(nil)
		file := InputFile{ExistingFile: taskqueue.ExistingFile{LFN: name, PFN: "/" + name}, Path: in.Patterns[0]}
		step(Arrived{Input: in.Name, Files: []InputFile{file}})
		step(Closed{Input: in.Name})
	}
	return jobs
}

// GPUs are needed as whole ones, or as a share of one.
func TestGPUs(t *testing.T) {
	const text = `workflow: w
steps:
  two: {writes: a, needs: {gpu: 2}, command: "true"}
  half: {writes: b, needs: {gpu: 0.5}, command: "true"}
  large: {writes: c, needs: {gpu: {count: 0.333, memory: 20GB}}, command: "true"}
  one: {writes: d, needs: {gpu: {memory: 20GB}}, command: "true"}
  none: {writes: e, needs: {gpu: 0}, command: "true"}
`
	jobs := made(t, text)
	for step, want := range map[string][2]int64{
		"two": {2, 0}, "half": {0, 500}, "large": {0, 333}, "one": {1, 0}, "none": {0, 0},
	} {
		if needs := jobs[step].Job.Needs; [2]int64{needs.Countable[quantity.GPU], needs.GPUShare} != want {
			t.Errorf("%s needs %+v, want %d", step, needs, want)
		}
	}
	if tools := jobs["large"].Job.Tools; !slices.Equal(tools, jobs["one"].Job.Tools) || len(tools) != 1 {
		t.Errorf("a share of a large GPU asks for %q", tools)
	}
}

func TestContainersAndEnvironments(t *testing.T) {
	jobs := made(t, inContainer)
	a, b, c, e := jobs["a"], jobs["b"], jobs["c"], jobs["environment.requirements.txt"]
	if a.Command.Container == nil || *a.Command.Container != (workflow.Container{Image: "images/a.sif",
		Runtime: "bubblewrap"}) {
		t.Errorf("a runs in %v", a.Command.Container)
	}
	if !slices.Equal(a.Job.Tools, []string{"bwrap", "unsquashfs"}) || !slices.Equal(b.Job.Tools, []string{"ch-run"}) {
		t.Errorf("tools %q and %q", a.Job.Tools, b.Job.Tools)
	}
	if !slices.Equal(a.Job.Reads, []string{"images/a.sif"}) || a.Command.Environment["in"] != "" {
		t.Errorf("a reads %q, and its command %q", a.Job.Reads, a.Command.Environment["in"])
	}
	folder := "environments/requirements.txt/"
	if want := []string{"a.txt", "root/", folder, "b.py"}; !slices.Equal(b.Job.Reads, want) ||
		b.Command.Environment["in"] != "a.txt" || b.Command.EnvironmentFolder != folder {
		t.Errorf("b reads %q, its command %q, in the environment %q", b.Job.Reads, b.Command.Environment["in"],
			b.Command.EnvironmentFolder)
	}
	if len(jobs) != 4 || !slices.Equal(e.Job.Writes, []taskqueue.Output{{LFN: folder}}) ||
		e.Command.Environment["in"] != "requirements.txt" || c.Command.EnvironmentFolder != folder {
		t.Errorf("%d jobs; the environment writes %v and reads %q", len(jobs), e.Job.Writes, e.Job.Reads)
	}
	built := made(t, inContainer+"  d: {writes: images/a.sif, command: make}\n")
	if _, ok := built["a"]; !ok || len(built["a"].Job.Reads) != 1 {
		t.Error("an image that a step makes was taken for an input")
	}
	if other := made(t, strings.Replace(inContainer, "images/a.sif", "images/b.sif", 1)); other["a"].Job.Digest ==
		a.Job.Digest || other["c"].Job.Digest != c.Job.Digest {
		t.Error("another image makes no other job, or of another step")
	}
}

func TestWrongContainers(t *testing.T) {
	for text, want := range map[string]string{
		"container: 'a*.sif'":                  `"a*.sif" has a placeholder or a wildcard`,
		"container: {runtime: bubblewrap}":     "add image: FILE",
		"container: {image: a, runtime: runc}": `"runc" is none that is known`,
		"environment: '{x}.txt'":               "has a placeholder or a wildcard",
		"container: a\n    worker: python":     "has a worker and a container",
	} {
		_, err := workflow.Parse("t.yaml",
			[]byte("workflow: w\nsteps:\n  s:\n    writes: s\n    command: 'true'\n    "+text+"\n"))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\ngot  %v\nwant %s", text, err, want)
		}
	}
}
