package taskqueue

import (
	"fmt"
	"time"
)

// StoredFile is a version as it is stored.
type StoredFile struct {
	File    FileRef
	PFN     string
	Size    int64
	Adler32 uint32 `json:",omitempty"` // of the contents; 0 where that is not known
	// Written is that of [WrittenFile].
	Written uint32 `json:",omitempty"`
}

// Made tells what a result was made from, and by which attempt: what a person
// wants to know of it when the job itself is no longer recorded.
type Made struct {
	Key     string // of the result, as in [UnusedResult] and [JobDetail]
	Name    string
	Attempt AttemptID
	Payload []byte
	Reads   []string
	Marks   []string // of the contents of Reads, as in [FileView]
}

// NamedResult is a result that a run names, and what would become of it without the run.
type NamedResult struct {
	Job    string // of the run that made it
	Files  []StoredFile
	Bytes  int64     // of these
	Others []RunID   // that name it too, in ascending order
	Until  time.Time // a policy would keep it until then; zero: it would go at once, unless Others name it
	// Promised says that this is the policy of the group. Otherwise it may go before, for want of room.
	Promised bool
}

// Origin is who made a result: a job of a run, and whose the run is.
type Origin struct {
	Run     RunID
	Account Account
	Job     string
}

// String names the origin for a person.
func (o *Origin) String() string {
	text := fmt.Sprintf("job %s of run %d", o.Job, o.Run)
	if o.Account.User != "" {
		text += fmt.Sprintf(" of %s", o.Account.User)
	}
	return text
}

// UnusedResult is a result of an earlier run that no run names.
type UnusedResult struct {
	Record Record   // deletes it; its key is that of the result
	Job    string   // that it was made by
	PFNs   []string // of its outputs
	Bytes  int64    // of these
}

// Run is what a caller says of a run: one submission of a workflow, with jobs and files
// of its own.
type Run struct {
	ID   RunID
	Name string // for people
	// Account is to whom it belongs, for good: whose share its jobs take.
	Account Account
	// Limits bound what all its attempts together may hold of a resource that a name in
	// Resources.Countable stands for, as those of Shares do for all runs.
	Limits map[string]int64
	// Scope says with whom it shares results, for good: runs of one Scope take each other's, and execute a
	// job once that several have. Empty: it takes those that earlier runs of the workflow left.
	Scope string
	// NoReuse has it take no result of another run, for good. Where runs share results, it leaves none
	// to others either.
	NoReuse bool
	// KeepGoing has the run go on after one of its jobs has failed for good. Otherwise
	// nothing more of it is started then.
	KeepGoing bool
}

// RunState is where a run stands.
type RunState uint8

// The states of a run. Only jobs of a run that is Going are given to pilots; Ready ones
// of the others stay Ready.
const (
	RunGoing    RunState = iota
	RunDraining          // what runs may end, nothing more is started
	RunStopping          // what runs is ended
	RunEnded             // nothing of it runs, and nothing will before a SetRun
)

var runStateNames = [...]string{RunGoing: "going", RunDraining: "draining", RunStopping: "stopping", RunEnded: "ended"}

// String returns the state in a word.
func (s RunState) String() string { return nameOf(runStateNames[:], int(s)) }

// Standing says for people what the state means for what is ready.
func (s RunState) Standing() string {
	switch s {
	case RunGoing:
		return "goes on"
	case RunEnded:
		return "has ended"
	}
	return "is being ended"
}

// RunView is what there is to say of a run.
type RunView struct {
	Run
	State    RunState
	Complete bool   // no more jobs will be submitted
	Reason   string // why it does not go on; empty if it came to its end by itself
	Totals   Totals

	// Temporary outputs whose stored copies were removed since the Core was made or loaded.
	Removed      int
	RemovedBytes int64
}
