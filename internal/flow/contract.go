package flow

import (
	"time"

	"fairway/internal/flow/workflow"
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
	Submit   []workflow.NewJob // in the canonical order

	// ReadersKnown are temporary outputs that no further job will read: all that do, if any
	// does, are submitted. Each is told once, none that is rewritten.
	ReadersKnown []string

	Persist  []taskqueue.Record
	Final    []string  // steps that will create no more jobs; each is reported once
	WakeAt   time.Time // step a Tick then, at once if it is Unfinished; zero: none is needed
	Finished bool      // all steps are final: no more jobs will be created
	Notes    []string  // for a person: what went another way than the workflow says
}

// add takes in the effects of the next step.
func (e *Effects) add(next *Effects) {
	e.AddFiles = append(e.AddFiles, next.AddFiles...)
	e.Submit = append(e.Submit, next.Submit...)
	e.ReadersKnown = append(e.ReadersKnown, next.ReadersKnown...)
	e.Persist = append(e.Persist, next.Persist...)
	e.Final = append(e.Final, next.Final...)
	e.Notes = append(e.Notes, next.Notes...)
	e.WakeAt, e.Finished = next.WakeAt, next.Finished
}
