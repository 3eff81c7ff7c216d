package workflow

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"fairway/internal/taskqueue"
)

// submittable is a job that a program may submit, with a command.
func submittable() (taskqueue.Job, Command) {
	return taskqueue.Job{
		Name: "j", Reads: []string{"i", "image.sif", "modules/"}, Writes: []taskqueue.Output{{LFN: "o"}, {LFN: "log"}},
	}, Command{Argv: []string{"cp"}, Log: "log"}
}

// What decides the outputs of a submitted job is in its digest, and nothing else. Each change here
// makes another digest.
func TestDigestsOfSubmittedJobsDiffer(t *testing.T) {
	digests := map[string]string{}
	note := func(what string, change func(j *taskqueue.Job, c *Command), same string) {
		t.Helper()
		job, command := submittable()
		change(&job, &command)
		made, err := Submitted(job, command)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		before := digests[made.Job.Digest]
		if before != same {
			t.Errorf("%s has the digest of %q, want that of %q", what, before, same)
		}
		if before == "" {
			digests[made.Job.Digest] = what
		}
	}
	for _, c := range []struct {
		what   string
		change func(j *taskqueue.Job, c *Command)
		same   string // what has the same digest, if anything
	}{
		{"plain", func(*taskqueue.Job, *Command) {}, ""},
		{"a name", func(j *taskqueue.Job, _ *Command) { j.Name = "k" }, "plain"},
		{"needs", func(j *taskqueue.Job, _ *Command) { j.Needs.Memory = 1 }, "plain"},
		{"one task", func(j *taskqueue.Job, _ *Command) { j.Tasks = 1 }, "plain"},
		{"two tasks", func(j *taskqueue.Job, _ *Command) { j.Tasks = 2 }, ""},
		{"three tasks", func(j *taskqueue.Job, _ *Command) { j.Tasks = 3 }, ""},
		{"two tasks, once", func(j *taskqueue.Job, _ *Command) { j.Tasks, j.Once = 2, true }, ""},
		{"a container", func(_ *taskqueue.Job, c *Command) { c.Container = &Container{Image: "image.sif"} }, ""},
		{"another container", func(_ *taskqueue.Job, c *Command) { c.Container = &Container{Image: "i"} }, ""},
		{"an environment", func(_ *taskqueue.Job, c *Command) { c.EnvironmentFolder = "modules/" }, ""},
		{"both", func(_ *taskqueue.Job, c *Command) {
			c.EnvironmentFolder, c.Container = "modules/", &Container{Image: "i"}
		}, ""},
		{"a worker", func(_ *taskqueue.Job, c *Command) { c.Worker = "python" }, ""},
		{"a variable", func(_ *taskqueue.Job, c *Command) { c.Environment = map[string]string{"A": "1"} }, ""},
		{"another value", func(_ *taskqueue.Job, c *Command) { c.Environment = map[string]string{"A": "2"} }, ""},
		{"a variable from outside", func(_ *taskqueue.Job, c *Command) { c.Variables = []string{"A"} }, ""},
		{"a shell", func(_ *taskqueue.Job, c *Command) { c.Shell, c.Argv = "cp", nil }, ""},
		{"no log", func(_ *taskqueue.Job, c *Command) { c.Log = "" }, ""},
		{"another output", func(j *taskqueue.Job, _ *Command) { j.Writes[0].LFN = "p" }, ""},
		{"another order", func(j *taskqueue.Job, _ *Command) { slices.Reverse(j.Reads) }, ""},
	} {
		note(c.what, c.change, c.same)
	}
}

// The command of a submitted job has what it reads and writes as variables, but its log, unless the
// program has set them.
func TestSubmittedCommandsHaveTheirFiles(t *testing.T) {
	job, command := submittable()
	made, err := Submitted(job, command)
	if want := map[string]string{"in": "i image.sif modules", "out": "o"}; err != nil ||
		!maps.Equal(made.Command.Environment, want) {
		t.Errorf("%v %v, want %v", made.Command.Environment, err, want)
	}
	command.Environment = map[string]string{"in": "other", "A": "1"}
	made, err = Submitted(job, command)
	if want := map[string]string{"in": "other", "out": "o", "A": "1"}; err != nil ||
		!maps.Equal(made.Command.Environment, want) {
		t.Errorf("%v %v, want %v", made.Command.Environment, err, want)
	}
	if made.Job.Step != SubmittedJobs {
		t.Errorf("it is of the step %q", made.Job.Step)
	}
}

// The same job of the same inputs has one name; the name tells other inputs and other jobs apart.
func TestNamesOfSubmittedJobs(t *testing.T) {
	job := taskqueue.Job{Digest: "d"}
	name := NameOf(&job, "label", []string{"a", "b"})
	if !strings.HasPrefix(name, "label.") || name != NameOf(&job, "label", []string{"a", "b"}) {
		t.Errorf("its name is %q", name)
	}
	others := []string{
		NameOf(&job, "label", []string{"a", "c"}), NameOf(&job, "label", []string{"ab"}),
		NameOf(&taskqueue.Job{Digest: "e"}, "label", []string{"a", "b"}),
	}
	if slices.Contains(others, name) {
		t.Errorf("another job is called %q too, of %q", name, others)
	}
}

func TestSubmittedJobsAreChecked(t *testing.T) {
	for _, c := range []struct {
		change func(j *taskqueue.Job, c *Command)
		want   string // a part of the error; "": it is taken
	}{
		{func(j *taskqueue.Job, _ *Command) { j.Step = "a b" }, `"a b" is no name for a step`},
		{func(_ *taskqueue.Job, c *Command) { c.Shell = "true" }, "what to execute, once"},
		{func(_ *taskqueue.Job, c *Command) { c.Argv = nil }, "what to execute, once"},
		{func(_ *taskqueue.Job, c *Command) { c.Log = "lag" }, `its log "lag" is none of its outputs`},
		{func(_ *taskqueue.Job, c *Command) { c.Environment = map[string]string{"a b": ""} }, `"a b" cannot be a variable`},
		{func(_ *taskqueue.Job, c *Command) { c.Environment = map[string]string{"PATH": ""} }, `"PATH" cannot be a variable`},
		{func(j *taskqueue.Job, _ *Command) { j.Tasks = taskqueue.MaxTasks }, ""},
		{func(j *taskqueue.Job, _ *Command) { j.Tasks = taskqueue.MaxTasks + 1 }, "tasks, and may have up to"},
		{func(j *taskqueue.Job, _ *Command) { j.Tasks = -1 }, "it has -1 tasks"},
		{func(j *taskqueue.Job, c *Command) { j.Tasks, j.Once, c.Container = 2, true, &Container{Image: "i"} },
			"would run in no container"},
		{func(j *taskqueue.Job, c *Command) { j.Tasks, c.Container = 2, &Container{Image: "i"} }, ""},
		{func(j *taskqueue.Job, c *Command) { j.Tasks, c.Worker = 2, "python" }, "cannot begin jobs of 2 tasks"},
		{func(j *taskqueue.Job, _ *Command) { j.Tasks, j.Writes[0].Storage = 2, taskqueue.StorageCache },
			"would stay in caches only"},
		{func(j *taskqueue.Job, _ *Command) { j.Tasks, j.Writes[0].Storage = 1, taskqueue.StorageCache }, ""},
		{func(_ *taskqueue.Job, c *Command) { c.Worker, c.Container = "python", &Container{Image: "i"} },
			"a worker and a container"},
		{func(_ *taskqueue.Job, c *Command) { c.Container = &Container{Image: "i", Runtime: "runc"} }, "runc"},
		{func(_ *taskqueue.Job, c *Command) { c.Container = &Container{Image: "k"} }, `the image "k" of its container is none`},
		{func(_ *taskqueue.Job, c *Command) { c.EnvironmentFolder = "i" }, `the environment "i" is no folder`},
		{func(_ *taskqueue.Job, c *Command) { c.EnvironmentFolder = "k/" }, `the environment "k/" is no folder`},
		{func(j *taskqueue.Job, _ *Command) { j.Name = "a\nb" }, "line break"},
		{func(j *taskqueue.Job, _ *Command) { j.Name = strings.Repeat("a", maxJobName+1) }, "more than 1024 bytes"},
		{func(j *taskqueue.Job, _ *Command) { j.Name = strings.Repeat("a", maxJobName) }, ""},
		{func(j *taskqueue.Job, _ *Command) { j.Checkpoint = "state" }, `its checkpoint: "state" is no folder`},
		{func(j *taskqueue.Job, _ *Command) { j.Checkpoint = "state/" }, ""},
		{func(j *taskqueue.Job, _ *Command) { j.Checkpoint, j.Reads[0] = "state/", "state/i" }, "lies in its checkpoint"},
		{func(j *taskqueue.Job, _ *Command) { j.Writes[0].Pattern = true }, "is a pattern, and has no '*'"},
		{func(j *taskqueue.Job, _ *Command) { j.Writes[0] = taskqueue.Output{LFN: "o/*", Pattern: true} }, ""},
		{func(j *taskqueue.Job, _ *Command) { j.Reads[0] = "../i" }, `the name "../i" of a file`},
		{func(j *taskqueue.Job, _ *Command) { j.Writes[0].LFN = strings.Repeat("a", 256) }, "a part of 256 bytes"},
	} {
		job, command := submittable()
		c.change(&job, &command)
		_, err := Submitted(job, command)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %q", err, c.want)
		}
	}
}
