package dispatch

import "time"

// JobID names a job for ever. The upper 32 bits are its run; the lower ones are its
// number: its place in the order in which the jobs of the run were submitted, from 1.
type JobID uint64

// NewJobID names a job by its run and its number there.
func NewJobID(run RunID, number uint32) JobID { return JobID(run)<<32 | JobID(number) }

// Run is the run that the job belongs to.
func (id JobID) Run() RunID { return RunID(id >> 32) }

// Number is the place of the job in its run, as people know it.
func (id JobID) Number() uint32 { return uint32(id) }

// AttemptID names one execution of a job, and is its fencing token: unique
// and growing over all jobs and all incarnations of a Core. The upper 32 bits
// are the incarnation, which is durable; so an assignment need not be.
type AttemptID uint64

// PilotID names a pilot; the pilot chooses it, unique for ever.
type PilotID string

// Version counts the writes of one file. Version 0 is what existed before the
// first writer; each write request takes the next number when it is inserted.
// What is written through a pattern takes the number of its job instead, and
// so do later writes of such a file.
type Version uint32

// FileRef names one version of a logical file of a run, or a copy of it in a cache.
// Caches are shared by runs, and their copies are known by their tags: so the name of a
// copy has a Tag and no Run.
type FileRef struct {
	Run     RunID
	LFN     string
	Version Version
	Tag     Tag // 0 where the version is meant, whatever its contents
}

// Tag tells what a copy of a version holds apart from what others of the same
// name hold or held: an output bears its attempt, since several may write one
// version and only one of them counts; a file that existed before bears what
// its [ExistingFile] says, which changes whenever the file does. Pilots keep
// copies under it and tell of them with it. A copy with another tag than that
// of its version is never read.
type Tag uint64

// Resources is what a job needs or what a pilot has. The zero value of a need
// means that any pilot will do.
type Resources struct {
	MilliCPUs int64            // thousandths of a processor
	Memory    int64            // bytes
	Disk      int64            // bytes in the sandbox
	Time      time.Duration    // wall clock; of a pilot: its remaining life, 0 for unlimited
	Countable map[string]int64 // whatever else a site names: gpu, licence
}

// Storage says where an output lives for good.
type Storage uint8

// An output is staged out to the storage element, or stays in the caches of
// the pilots only and is made again if all of them lose it.
const (
	StorageElement Storage = iota
	StorageCache
)

// Output is one file, or one pattern of files, that a job promises to write.
type Output struct {
	LFN     string // a name, or a pattern with '*' if Pattern
	Pattern bool   // which files match is known only when the job has ended
	Storage Storage
	Publish bool // the server publishes the committed file under its plain name
}

// Access says how a command gets an input.
type Access uint8

// An input is linked into the sandbox, from a cache if there is one; is copied there, for
// the command alone; or is read by the command itself from where it is stored. A folder,
// and a version that is in caches only, is never streamed.
const (
	AccessLink Access = iota
	AccessCopy
	AccessStream
)

func (a Access) String() string { return [...]string{"link", "copy", "stream"}[a] }

// Retry says how often and when a failed attempt is repeated.
type Retry struct {
	Attempts     int           // attempts in all; 0 means the core's default
	Backoff      time.Duration // before the second attempt; doubles each time; 0 means the core's default
	ExitCodes    []int         // retry only these; empty means any
	MemoryFactor float64       // memory grows by this after an out-of-memory end; 0 means the core's default
}

// Job is what a submitter wants done.
type Job struct {
	Name        string // unique in its run; the same in every run of the workflow
	Step        string
	Payload     []byte // what the pilot runs; opaque to dispatch
	Digest      string // of all that decides the outputs, besides the contents of Reads
	Reads       []string
	Access      []Access // one for each of Reads; nil: all are linked
	Writes      []Output
	Needs       Resources
	Tools       []string // programs that the environment check must have found
	Site        string   // preferred site; other sites may run it once WaitForData has passed
	Priority    int      // higher first
	Retry       Retry
	WaitForData time.Duration // how long to be kept for a pilot that holds more input; 0 means the core's default, negative never
}

// State is where a job stands.
type State uint8

// The states of a job, as in the design: waiting for its requests and input
// versions, ready to be matched, assigned to a pilot, running, committing,
// and the ends.
const (
	Waiting State = iota
	Ready
	Assigned
	Running
	Committing
	Done
	Failed    // its retries are spent
	Blocked   // a version that it reads will not come
	Cancelled // by a person
)

var stateNames = [...]string{
	Waiting: "waiting", Ready: "ready", Assigned: "assigned", Running: "running", Committing: "committing",
	Done: "done", Failed: "failed", Blocked: "blocked", Cancelled: "cancelled",
}

// String returns the state in a word, as people see it.
func (s State) String() string { return nameOf(stateNames[:], int(s)) }

func nameOf(names []string, i int) string {
	if i < 0 || i >= len(names) {
		return "unknown"
	}
	return names[i]
}
