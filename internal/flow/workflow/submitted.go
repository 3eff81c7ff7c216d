package workflow

import (
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/zeebo/blake3"

	"fairway/internal/flow/pattern"
	"fairway/internal/logical"
	"fairway/internal/taskqueue"
)

// Submitted makes a job of an open workflow of what a program asks for. It gives the command
// the variables in and out, as a step has them, unless the program gives its own, and the job
// its digest. The error says why no job can be like that.
func Submitted(job taskqueue.Job, command Command) (NewJob, error) {
	if job.Step == "" {
		job.Step = SubmittedJobs
	}
	if !wordName.MatchString(job.Step) {
		return NewJob{}, fmt.Errorf("%q is no name for a step: use letters, digits, '_', '-' and '.'", job.Step)
	}
	if (command.Shell == "") == (len(command.Argv) == 0) {
		return NewJob{}, errors.New("it must say what to execute, once: give shell or argv")
	}
	if log := command.Log; log != "" && !slices.ContainsFunc(job.Writes,
		func(w taskqueue.Output) bool { return w.LFN == log }) {
		return NewJob{}, fmt.Errorf("its log %q is none of its outputs: name it under writes too", log)
	}
	if err := errors.Join(checkNames(&job), checkTasks(&job, &command), checkInside(&job, &command)); err != nil {
		return NewJob{}, err
	}
	for name := range command.Environment {
		if !pattern.PlaceholderName.MatchString(name) || name != "in" && name != "out" && isReserved(name) {
			return NewJob{}, fmt.Errorf("%q cannot be a variable of its command: it is no name of one, or would hide one that "+
				"commands have anyhow", name)
		}
	}
	command.Decisive = nil
	if command.Worker != "" {
		command.Decisive = sortedKeys(command.Environment)
	}
	files := commandFiles(&job, &command)
	for name, value := range files {
		if _, given := command.Environment[name]; !given {
			if command.Environment == nil {
				command.Environment = map[string]string{}
			}
			command.Environment[name] = value
		}
	}
	made := NewJob{Job: job, Command: command}
	made.Job.Digest = Digest(made)
	return made, nil
}

func checkTasks(job *taskqueue.Job, command *Command) error {
	switch {
	case job.Tasks < 0 || job.Tasks > taskqueue.MaxTasks:
		return fmt.Errorf("it has %d tasks, and may have up to %d", job.Tasks, taskqueue.MaxTasks)
	case job.Tasks < 2:
		return nil
	case job.Once && command.Container != nil:
		return errors.New("it runs its command once, and what that starts on other nodes would run in no container")
	case command.Worker != "":
		return fmt.Errorf("it has a worker, which cannot begin jobs of %d tasks", job.Tasks)
	case slices.ContainsFunc(job.Writes, func(w taskqueue.Output) bool { return w.Storage == taskqueue.StorageCache }):
		return fmt.Errorf("it has %d tasks, and what it writes would stay in caches only; store it", job.Tasks)
	}
	return nil
}

func checkInside(job *taskqueue.Job, command *Command) error {
	if c := command.Container; c != nil {
		if command.Worker != "" {
			return errors.New("it has a worker and a container, and a worker begins jobs outside of containers: leave one out")
		}
		if c.Runtime == "" {
			c.Runtime = DefaultRuntime
		}
		if _, err := parseRuntime(c.Runtime); err != nil {
			return fmt.Errorf("the runtime of its container: %w", err)
		}
		if !slices.Contains(job.Reads, c.Image) {
			return fmt.Errorf("the image %q of its container is none of its inputs: name it under reads too", c.Image)
		}
		job.Tools = append(job.Tools, c.tools()...)
	}
	if e := command.EnvironmentFolder; e != "" && (!slices.Contains(job.Reads, e) || !logical.IsFolder(e)) {
		return fmt.Errorf("the environment %q is no folder among its inputs", e)
	}
	return nil
}

// NameOf makes the name of a submitted job of a label for people and of all that decides its
// outputs. So the same job has the same name, and another one if an input changes. marks tell
// what each of its inputs holds, in the order of Reads.
func NameOf(job *taskqueue.Job, label string, marks []string) string {
	sum := blake3.Sum256(digested{}.text(job.Digest).list(marks))
	return label + "." + hex.EncodeToString(sum[:8])
}

func checkNames(job *taskqueue.Job) error {
	if strings.ContainsAny(job.Name, "\x00\n\r") || len(job.Name) > maxJobName {
		return fmt.Errorf("its name has a line break, or more than %d bytes", maxJobName)
	}
	if job.Checkpoint != "" {
		if _, err := parseCheckpoint(job.Checkpoint); err != nil {
			return fmt.Errorf("its checkpoint: %w", err)
		}
	}
	names := slices.Clone(job.Reads)
	for _, w := range job.Writes {
		if w.Pattern && logical.Star(w.LFN) < 0 {
			return fmt.Errorf("the output %q is a pattern, and has no '*': name the file, and say that it is none", w.LFN)
		}
		names = append(names, seenName(&w))
	}
	for _, lfn := range names {
		if job.Checkpoint != "" && strings.HasPrefix(lfn+"/", job.Checkpoint) {
			return fmt.Errorf("the file %q lies in its checkpoint %q; give the state a folder of its own", lfn, job.Checkpoint)
		}
		if why := logical.WhyNot(lfn); why != "" {
			return fmt.Errorf("the name %q of a file %s", lfn, why)
		}
		if part := logical.LongPart(lfn); part != "" {
			return fmt.Errorf("a part of the name %q of a file has %d bytes, the limit is %d", lfn, len(part), logical.MaxPart)
		}
	}
	return nil
}

// seenName is an output as the command sees it: of a pattern, without its escapes.
func seenName(w *taskqueue.Output) string {
	if w.Pattern {
		return logical.Unescape(w.LFN)
	}
	return w.LFN
}

const maxJobName = 1024

// commandFiles are the variables in and out of a command that reads and writes these files,
// as far as they fit.
func commandFiles(job *taskqueue.Job, command *Command) map[string]string {
	outputs := make([]string, 0, len(job.Writes))
	for _, w := range job.Writes {
		if w.LFN != command.Log {
			outputs = append(outputs, seenName(&w))
		}
	}
	env := map[string]string{}
	Listed(env, "in", job.Reads)
	Listed(env, "out", outputs)
	return env
}
