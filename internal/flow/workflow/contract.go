package workflow

import (
	"time"

	"fairway/internal/taskqueue"
)

// NewJob is a job for dispatch without its payload, and what the payload is
// to be made of.
type NewJob struct {
	Job     taskqueue.Job
	Command Command
	From    int  // so many of Reads, the first, are the files that the job was made from
	Counts  bool // it only counts the records of the first, for a split
}

// Command is what an attempt of a job executes.
type Command struct {
	Shell       string   // text for Interpreter; before Script, to set a variable of a shell
	Script      string   // LFN of a file with such a text, or
	Interpreter string   // words of a program, see docs/workflows.md; empty: bash, or sh where there is none
	Argv        []string // executed without a shell, or
	Replay      *Replay  // done as a trace says
	Worker      string   // words of a program that starts the command, which a pilot starts once; may be empty
	Log         string   // LFN of the output that is kept when the job fails; may be empty
	Environment map[string]string
	Variables   []string // of the environment, whose values whoever runs the job has
	Decisive    []string // of the environment, which all jobs of its step have alike: Worker starts with them
	Strict      bool     // it sees only its own (sandbox: strict)
	WholeOutput bool     // all that it prints is kept, as far as the disk has room
	Unwatched   bool     // what it opens is not looked at, since it works in folders that are no sandbox

	Container *Container // it runs in one; nil: in none
	// EnvironmentFolder is the LFN of an input, a folder in which the command finds programs and
	// Python packages besides; empty: none.
	EnvironmentFolder string

	// InputVariables are those of Environment that name inputs of which any may be
	// streamed: such an input has no name in the sandbox.
	InputVariables []InputVariable
}

// InputVariable is a variable with the inputs that it names, in their order.
type InputVariable struct {
	Name string
	LFNs []string
}

// Replay stands for a task of a trace.
type Replay struct {
	Compute time.Duration
	Writes  []SizedFile // every output of the job
	Program string      // of the task, for people
}
