package flow

import (
	"time"

	"fairway/internal/taskqueue"
)

// Input is one thing that happened. The types of this file are all there are.
type Input interface{ isInput() }

// Arrived says that files of a declared input exist, in their order. A file
// that arrived before is passed over, so that the caller may enumerate again
// after a restart.
type Arrived struct {
	Input string
	Files []InputFile
}

// InputFile is a file of a declared input.
type InputFile struct {
	taskqueue.ExistingFile

	// Path is what [DeclaredInput.Name] was asked for: it tells the values of
	// placeholders, also of those that the logical name leaves out. Where it is
	// empty they are read from the logical name.
	Path string `json:",omitempty"`

	// Unsized says that nobody tells the size: a split by bytes has a job find
	// out, a merge by size refuses the file.
	Unsized bool `json:",omitempty"`
}

// Closed says that a declared input gets no more files. An input that is not
// watched is closed once its files arrived.
type Closed struct{ Input string }

// Happened passes on what dispatch reports. Only commits matter.
type Happened struct{ Event taskqueue.Event }

// Tick lets time pass; the first step of a Flow without inputs is a Tick.
type Tick struct{}

func (Arrived) isInput()  {}
func (Closed) isInput()   {}
func (Happened) isInput() {}
func (Tick) isInput()     {}

// Effects is what one input leads to. The caller steps AddFiles, then Submit, and
// then ReadersKnown to dispatch, and makes Persist durable in the same transaction as
// the records that dispatch returns for them.
type Effects struct {
	AddFiles []taskqueue.ExistingFile
	Submit   []NewJob // in the canonical order

	// ReadersKnown are temporary outputs that no further job will read: all that do, if any
	// does, are submitted. Each is told once, none that is rewritten.
	ReadersKnown []string

	Persist  []taskqueue.Record
	Final    []string  // steps that will create no more jobs; each is reported once
	WakeAt   time.Time // step a Tick then; zero: none is needed
	Finished bool      // all steps are final: no more jobs will be created
	Notes    []string  // for a person: what went another way than the workflow says
}

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
