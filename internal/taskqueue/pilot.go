package taskqueue

import (
	"time"

	"fairway/internal/logical"
)

// MaxTasks bounds the tasks of a gang.
const MaxTasks = 4096

// GangPlace names an attempt as a member of a gang; the zero value is of none.
type GangPlace struct {
	Leader AttemptID // the attempt of task 0
	Task   int
}

// MemberState tells of a member that is ready, or whose command has begun.
type MemberState struct {
	Attempt AttemptID
	Host    string // an address of its node that the others reach
	Ports   []int  // that are free there
	Begun   bool   // it has been told of the others
}

// GangStart tells a member of all members, so that its command begins.
type GangStart struct {
	Attempt AttemptID
	GangPlace
	Members []Member // by task
}

// Member is where a member of a gang is reached.
type Member struct {
	Task  int
	Host  string
	Ports []int
}

// Sync is one call of a pilot (docs/dispatch.md). Changes are since
// the last sync that an Answer acknowledged; they are idempotent.
type Sync struct {
	Pilot      PilotID
	Seq        uint64 // grows with each call; a newer one supersedes the one held
	LastAnswer uint64 // number of the last answer that the pilot has carried out
	Full       bool   // Hello, Queued, Started and Ended are the whole state, and what is said of the cache
	Hello      *PilotInfo
	Queued     []AttemptRef // full only: assigned, not started
	Started    []AttemptRef // full: all that run
	Ended      []Result     // until acknowledged
	CacheAdded []CachedFile // full without Cache: all of the cache
	CacheGone  []FileRef
	Cache      *Copies   // full: what the cache holds, with the changes of this Sync
	CacheTold  uint64    // the Answer.TellCache since which all of the cache was told, with this Sync; 0: none
	Draining   bool      // takes no more jobs
	Leaving    bool      // ends after this sync; what it still has is lost
	Hold       bool      // the pilot is ready to wait for the answer
	LookedFor  uint64    // the Answer.LookForNumber up to which Hello tells what was found; 0: none
	Unserved   []PilotID // sources that could not be reached, refused, broke off or sent something else
	// Members are all attempts of gangs there that have their inputs and ports, whether or not their
	// commands have begun; in each Sync.
	Members []MemberState
	// Saved is the last state that each attempt there which runs has saved, if any; in each Sync.
	Saved []SavedState
	// Waiting are the inputs that attempts there wait for and that did not come at once, and Away the servers of
	// files that cannot be reached from there; in each Sync.
	Waiting []WaitingInput
	Away    []AwayServer
	// MovesFiles are the attempts there that began, and whose needs bound their time, while their commands do not
	// run: they read inputs, or store outputs; in each Sync.
	MovesFiles []AttemptID
}

// WaitingInput is an input that an attempt waits for.
type WaitingInput struct {
	Attempt AttemptID
	LFN     string
	Source  string // the pilot from whose cache it comes, or the server of files (with "://"); empty: from storage
	Bytes   int64  // that have come, if that is known
	For     time.Duration
}

// AwayServer is a server of files that cannot be reached, and that is waited for.
type AwayServer struct{ Server, Reason string }

// SavedState is a state that an attempt with a checkpoint has saved while it runs. The versions of
// the file grow.
type SavedState struct {
	Of   AttemptRef
	File WrittenFile
}

// HangUp says that the connection broke on which a Sync of a pilot was held: an answer to
// it would not arrive.
type HangUp struct {
	Pilot PilotID
	Seq   uint64 // of that Sync
}

// Refused says that what a pilot said was refused, of which it was told. Nothing of it is believed any more: others get
// its jobs at once, and if it has not left after Config.Silence its launch is to stop.
type Refused struct{ Pilot PilotID }

// Copies is the digest of what a cache holds, which both sides make by LFN, version and tag.
type Copies = logical.Copies

// AttemptRef names an attempt together with its job: assignments are not
// durable, so after dispatch.Load an attempt is known only from its pilot.
type AttemptRef struct {
	Job     JobID
	Attempt AttemptID
	GangPlace
	Running time.Duration // of Started: since it began, where that is long ago
}

// PilotInfo is what a pilot says of itself when it registers (section IV).
type PilotInfo struct {
	Host      string
	Machine   string // tells hosts of one name from each other; empty: the name does
	Site      string
	Launch    string // the name under which the batch system started it
	Tools     []string
	Has       Resources // all it has, not what is free
	Expires   time.Time // zero: unlimited
	CacheDir  string    // for the other pilots of the host; empty: does not share
	CacheSize int64
	Address   string        // at which it serves its cache to pilots of other hosts; empty: it does not
	Pin       string        // of its certificate there
	Lease     time.Duration // for which it would go on without the TaskQueue; 0: Config.PilotLease
	Error     string        // its environment check failed: it registers only to say so, and ends
}

// NodeSeparator stands in no name of a host.
const NodeSeparator = " "

// Node tells the host of the pilot from all others, also from those of its name.
func (i *PilotInfo) Node() string {
	if i.Machine == "" {
		return i.Host
	}
	return i.Host + NodeSeparator + i.Machine
}

// CachedFile is a copy in a pilot's cache.
type CachedFile struct {
	File FileRef
	Size int64
	Hash string // as the pilot has found it when it brought the file in; empty: it does not say
}

// AttemptID names one execution of a job, and is its fencing token: unique
// and growing over all jobs and all incarnations of a Core. The upper 32 bits
// are the incarnation, which is durable; so an assignment need not be.
type AttemptID uint64

// PilotID names a pilot; the pilot chooses it, unique for ever.
type PilotID string

// CacheKind says who else reads the cache of the pilot: global, host, pilot; or none where it has none.
func (i *PilotInfo) CacheKind() string {
	switch {
	case i.Address != "":
		return "global"
	case i.CacheDir != "":
		return "host"
	case i.CacheSize > 0:
		return "pilot"
	}
	return "none"
}
