package taskqueue

import "time"

// JobView is what there is to say of a job.
type JobView struct {
	ID        JobID
	Name      string
	Step      string
	State     State
	Priority  int // its own: as submitted, or as a person has given it since
	Effective int // inherited from jobs that wait for it
	Reason    string
	Reused    bool
	Submitted time.Time
	Tasks     int           // of a gang; 0: it is none
	Attempts  []AttemptView // that have not ended; of a gang by task
	Committed AttemptID     // 0 if none
}

// AttemptView is an attempt that has not ended, or one task of one.
type AttemptView struct {
	Attempt AttemptID
	Pilot   PilotID
	GangPlace
	Phase Phase
	// Silent is since when its pilot is not heard of; zero: it is.
	Silent time.Time
}

// Phase is how far an attempt has come at its pilot.
type Phase int

// A pilot is given an attempt, starts it, and tells of a task of a gang when it has its inputs and
// ports. The command of any other attempt begins without that: it runs from its start.
const (
	PhaseAssigned Phase = iota // the pilot has not started it
	PhaseStaging               // of a gang: it gets its inputs and ports
	PhaseReady                 // of a gang: it waits for other tasks
	PhaseRunning
)

// String returns the phase in a word.
func (p Phase) String() string { return [...]string{"assigned", "staging", "ready", "running"}[p] }

// FileView is a version of a file, as a job reads or writes it.
type FileView struct {
	File      FileRef
	Pattern   bool
	Size      int64
	Adler32   uint32 // 0 where it is not known
	Written   uint32 // that of [WrittenFile], of an output without sums
	PFN       string
	Available bool
	Access    Access // how the job reads it
	Publish   bool   // the job that writes it wants it to be published
	Published bool   // it was, or a later version was
	Temporary bool   // it goes when all jobs that read it are done, of which there are some
	Writer    JobID  // 0 if it existed before
	// Mark tells contents apart, for a person; empty while they are not known.
	Mark string
	// Identity is what keys of results know the contents by; zero while they are not known.
	Identity [16]byte
}

// JobDetail is all that is known of a job.
type JobDetail struct {
	JobView
	Payload []byte
	Digest  string    // as it was submitted
	Needs   Resources // memory grown by retries
	Site    string
	Reads   []FileView
	Writes  []FileView // what patterns have matched follows the patterns
	// Key is that of the job's result; empty before the job has come to its turn.
	Key string
	// Taken says who made the result that the job has taken; nil if it has taken none, or that is
	// not known.
	Taken *Origin
}

// Inputs are what the attempts of a job have to read, as far as it is known, and since when.
type Inputs struct {
	Files     int
	Bytes     int64
	Unsized   bool // the size of one is not known before it is read
	Submitted time.Time
}

// PilotView is what there is to say of a registered pilot.
type PilotView struct {
	Pilot    PilotID
	Info     PilotInfo
	Running  int
	Assigned int // besides those that run
	Cached   int // files
	Parked   bool
	Silent   time.Time // when it was to be heard, and was not; zero: it is heard
	// Doubted says why its node gets no jobs that can run elsewhere, or few; empty: it does.
	Doubted string
}

// LaunchView is a pilot that a batch system has, as far as is known.
type LaunchView struct {
	Launch string
	Site   string
	Came   bool // a pilot of it has registered, perhaps before a restart
}

// NodeView is what the caches of the pilots on one node hold. A copy that several pilots
// share counts once.
type NodeView struct {
	Host   string
	Pilots int
	Kinds  []string // of the pilots' caches: none, pilot, host or global; sorted, each once
	Limit  int64    // bytes
	Copies []CopyView
}

// CopyView is a copy in the caches of a node.
type CopyView struct {
	File   FileRef
	Size   int64
	Pinned bool    // a job that runs reads it
	Stale  bool    // nobody may read it
	Pilot  PilotID // that holds it; one of those that do
	Runs   []RunID // in which it is a version of a file; none: it is not known in which
}

// VersionView is where the copies of a version are, and which jobs make and read it.
type VersionView struct {
	FileView
	State      string   // pending, present, gone or missing: as for dispatch itself
	Newest     bool     // it is what the file holds now
	Lost       bool     // its stored file was lost
	CachesOnly bool     // its writer does not have it stored
	Hosts      []string // of the pilots that have it in their caches, sorted
	MadeBy     JobRef   // the zero value if it existed before

	// Readers are jobs that read it and have not ended, at most maxExplained: first those
	// in the file's FIFO, in its order, then those that have left it, in none.
	// ReadersLeft counts all of them.
	Readers     []JobRef
	ReadersLeft int
}

// JobRef names a job, and says how it stands.
type JobRef struct {
	ID    JobID
	Name  string
	State State
}

// SiteView is how the pilots of a site stand.
type SiteView struct {
	Name string
	Min  int // pilots that are always there
	Max  int
	// Wanted is how many pilots the last plan wants besides those that have registered.
	Wanted   int
	Inactive int // submitted, and not registered
	Idle     int
	Busy     int // or they take no jobs
	Failures int // pilots in a row that could not work
	// NotBefore is when the next pilot is submitted at the earliest; zero: at any time.
	NotBefore time.Time
}
