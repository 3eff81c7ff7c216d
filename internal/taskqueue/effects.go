package taskqueue

import "time"

// Effects is what one input leads to. The slices are valid until the next
// Step. The caller's duties stand in the package comment.
type Effects struct {
	Persist []Record // make durable first
	Replies []Reply  // to pilots whose Sync waits
	Start   []Start  // pilots to submit to batch systems
	Stop    []string // launches to withdraw from batch systems
	// Publish has committed versions appear under their plain names, in order; each until
	// Published is stepped, also after Load. Versions of one LFN come one at a time: the next
	// when the one before is Published. One that is older than what stands there is skipped.
	Publish []StoredFile
	Remove  []string  // physical files that nobody needs; each until Removed is stepped, also after Load
	Events  []Event   // for flow, progress and logs, in order
	WakeAt  time.Time // zero: no Tick is needed
}

// Reply answers the pilot's Sync numbered Seq. A pilot without a Reply is
// parked: its Sync is held until a later step replies.
type Reply struct {
	Pilot  PilotID
	Seq    uint64
	Answer Answer
}

// Answer is the desired state of a pilot. Everything in it is idempotent.
type Answer struct {
	Number     uint64 // LastAnswer of the next Sync
	Seen       uint64 // the Sync up to which changes and results are durable
	NeedFull   bool   // the base is unknown: send the whole state
	TellCache  uint64 // not 0: tell all of the cache anew, in as many Syncs as that takes; the number tells this request from others
	Run        []Assignment
	End        []AttemptID // running ones are ended, queued ones recalled
	GiveBack   []AttemptID // the same, but not of those whose command has begun
	Prefetch   []InputFile // for jobs that are queued there, repeated until they are in the cache
	Evict      []FileRef   // files in the order in which they may go, before all others; empty: as before
	Stale      int         // so many at the front of Evict nobody may read: they go first whatever the policy
	Peers      []string    // caches of the other pilots of the host (section IV-D), by CacheDir
	NextSync   time.Duration
	Lease      time.Duration // after NextSync, for which both sides wait for each other
	Leave      bool          // end when nothing runs any more
	LeaveNow   bool          // end what runs, then leave
	Why        string        // for a person: why it is to leave, where others stay
	Superseded bool          // a newer Sync has taken this one's place: ignore this answer

	// LookFor are programs that the pilot is to look for, and to tell of in a Hello that it has found,
	// with the number as Sync.LookedFor. They are repeated until it has.
	LookFor       []string
	LookForNumber uint64

	Begin []GangStart // members of gangs whose commands are to begin; repeated until Sync.Members says that they have
}

// Assignment is an attempt that a pilot is to run.
type Assignment struct {
	Job      JobID
	Attempt  AttemptID
	Name     string
	Step     string
	Try      int // 1 for the first attempt of the job
	Payload  []byte
	Priority int       // it takes its turn before those of lower priority, and after others that came before it
	Needs    Resources // memory grown by retries
	Inputs   []InputFile
	Outputs  []OutputFile
	// Checkpoint is the folder that it is to store if it is ended before its time; what the attempt
	// before has saved stands in Inputs.
	Checkpoint string
	Private    bool // it is to read copies of its own: somebody wrote to what it shared
	GangPlace
	Tasks int  // of its gang; 0: it is of none
	Once  bool // the first member alone runs the command
}

// InputFile is the version of an input that belongs to the job's place, with
// the tag of the copies that the job may read.
type InputFile struct {
	File FileRef
	Size int64
	PFN  string // empty: in caches only

	Adler32 uint32 // of an output of a job, whose Size is known too; 0: unknown
	// Written is that of [WrittenFile], of an output without sums.
	Written uint32
	Hash    string // that copies in caches must have; empty: unknown
	Access  Access // how the command gets it; for a prefetch of no matter

	// Committed says that Hash stands in the commit of an output, so that it alone proves what
	// the output is. Else some pilot has told Hash, and proves nothing beside Adler32.
	Committed bool

	Source *Source // where to try first; nil: where the PFN says

	// Known is what the key of the result knows an existing file by ([logical.Known]), where that tells
	// what the file holds and other runs take results; zero: of no matter.
	Known [16]byte
}

// Source is a pilot that holds a file in its cache, or is about to.
type Source struct {
	Pilot   PilotID
	Address string
	Pin     string  // of its certificate
	Origin  *Source // tells the hash when it has all; nil: that is known
}

// OutputFile is an output with the version that its place gives it.
type OutputFile struct {
	Output
	Version Version
}

// Start asks for pilots at a site; the caller steps a PilotSubmitted for each
// that the batch system took.
type Start struct {
	Site  string
	Count int
}

// EventKind says what an Event tells.
type EventKind uint8

// What a caller may want to know.
const (
	JobSubmitted EventKind = iota
	JobReady
	JobStarted
	JobCommitted
	JobRetried // an attempt failed and another will follow
	JobFailed
	JobBlocked
	JobUnblocked
	JobCancelled
	PilotRegistered
	PilotGone
	JobRegenerating // it is Done, but runs again because caches lost its outputs
	JobRegenerated  // what it had written can be had again, or nobody needs it; then without a Result
	FileLost        // the stored file of an output of the job is not there, or was changed; Reason says which and why
	CopyDiffers     // the pilot holds other bytes of a file than another has told of before; Reason names the file
	RunOver         // the Run has ended; Name is its name, and Reason says why it did not come to its end by itself
	PilotSilent     // its Sync has not come in time; what it has not started is given to others
	PilotHeard      // it was silent, and is not any more
	NodeDoubted     // jobs fail on the Host, and may go well elsewhere: it gets no more for a while; Reason says why
	NodeTrusted     // it gets jobs again
	ServerAway      // the pilot cannot reach the server of files that Name says, and waits for it; Reason says why
	SourceCut       // the pilot got nothing from the cache of the pilot Name: its Host is not offered that one any more
)

var eventNames = [...]string{
	JobSubmitted: "submitted", JobReady: "ready", JobStarted: "started", JobCommitted: "committed",
	JobRetried: "retried", JobFailed: "failed", JobBlocked: "blocked", JobUnblocked: "unblocked",
	JobCancelled: "cancelled", PilotRegistered: "pilot registered", PilotGone: "pilot gone",
	JobRegenerating: "regenerating", JobRegenerated: "regenerated", FileLost: "file lost",
	CopyDiffers: "copy differs", RunOver: "run over", PilotSilent: "pilot silent", PilotHeard: "pilot heard",
	NodeDoubted: "node doubted", NodeTrusted: "node trusted", ServerAway: "server away",
	SourceCut: "source cut",
}

// String returns the kind in words.
func (k EventKind) String() string { return nameOf(eventNames[:], int(k)) }

// Event tells of a change. Result is set where an attempt ended; Files are
// the outputs that became visible with JobCommitted, in the order of Writes
// and by name within a pattern.
type Event struct {
	Kind   EventKind
	At     time.Time
	Run    RunID // with RunOver; that of jobs is in their IDs
	Job    JobID
	Name   string
	Step   string
	Pilot  PilotID
	Launch string // of the pilot, where the event is about one; empty if no batch system started it
	Site   string // the same, but with PilotGone
	Host   string // of the pilot, as Site
	Result *Result
	Files  []CommittedFile
	Reused bool   // committed from an earlier run, nothing was executed
	Reason string // for a person: why it failed, is blocked, was lost
	// Ago is how long before At, with JobStarted, where the pilot could not tell it at once.
	Ago time.Duration
}

// CommittedFile is a version that is visible.
type CommittedFile struct {
	File    FileRef
	Pattern string // the pattern of Writes that it matched, or empty
	PFN     string
	Size    int64
	Records int64
}
