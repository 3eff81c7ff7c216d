package dispatch

import (
	"time"

	"fairway/internal/logical"
	"fairway/internal/taskqueue"
)

// Input is one thing that happened outside. The types of this file are all
// there are.
type Input interface{ isInput() }

// AddFiles makes files known that exist already, as version 0 or, for a file
// known before, as a new version at the tail of its FIFO. One that is known with
// the same identity is that version, under the PFN and with the tag that it has
// now.
type AddFiles struct {
	Run   taskqueue.RunID
	Files []ExistingFile
}

// ExistingFile is a file that no job of its run wrote.
type ExistingFile struct {
	LFN      string
	PFN      string
	Size     int64
	Identity string // changes when the content changes
	Tag      Tag    // by which a pilot that reads the file finds out that it is this one; above all attempts
}

// SetRun begins a run that has the number [Core.NextRun], or changes what is said of one
// that was not retired, and has it go on where it was halted or has ended.
type SetRun struct{ Run Run }

// CompleteRun says that no more files and jobs of a run will come. When its jobs have
// come to their ends, the run ends. Of none of its files readers are to come: a run whose
// jobs are not all known is ended by StopRun.
type CompleteRun struct{ Run taskqueue.RunID }

// ReadersKnown says of files of a run that no job that is submitted later reads them.
// Temporary ones are removed when those before are done. It is not durable: the caller
// steps it again after each Load. Files that nobody has named yet are passed over.
type ReadersKnown struct {
	Run  taskqueue.RunID
	LFNs []string
}

// StopRun has nothing more of a run started, and ends it when nothing of it runs any
// more: Drain lets running attempts finish, else they are ended. Other runs go on.
type StopRun struct {
	Run   taskqueue.RunID
	Drain bool
}

// RetireRun forgets a run that has ended, and deletes its records: its jobs and files are
// known no more. Its results stay for later runs; what it had stored besides is removed.
// A run is refused while something that it published is not confirmed.
//
// A lasting server steps it (docs/decisions/0136-lasting-servers.md). A server of one workflow
// begins each run with a store of which [Fresh] has retired all others.
type RetireRun struct {
	Run taskqueue.RunID
	// Keep has its results named by the run on, so that none of them is forgotten before
	// ReleaseRun.
	Keep bool
	// Swept says that the caller deletes what the run has in [Tables], which may be much: the Core is
	// loaded without these records from when this step is durable.
	Swept bool
}

// KeepResults makes the results of some jobs of a run that has ended records of their own, named by the
// run, as RetireRun with Keep does for all that are left. Whoever steps it for one part of a large run after
// the other keeps nobody waiting for long. It may be stepped again, and the run may go on after it.
type KeepResults struct {
	Run  taskqueue.RunID
	From uint32 // the number of the first job
	Jobs int    // how many are looked at
}

// ReleaseRun has a run that was retired name no results any more. Those that no other run names
// are kept for as long as a policy says ([Core.Forgettable]).
type ReleaseRun struct {
	Run taskqueue.RunID
	// Results are some of those that it names ([Core.KeysNamedBy]), which alone it names no more; nil: all.
	Results []string
}

// LookFor has pilots look for programs that jobs to come will name, and once more for those that were
// not found.
type LookFor struct{ Tools []string }

// ForgetResults forgets results of earlier runs, by their keys ([UnusedResult]), and removes what is
// stored of them. One that a run names, or that is not known, is passed over.
type ForgetResults struct{ Keys []string }

// Submit inserts jobs of a run in order, all or none. Refused, with an error that
// names the job and the file: a read with neither a version nor a writer
// before it, a name used twice. Files are those of AddFiles, which the jobs read: they become
// known with the jobs, or not at all.
type Submit struct {
	Run   taskqueue.RunID
	Files []ExistingFile
	Jobs  []Job
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
	Source  PilotID // from whose cache it comes; empty: from storage
	Bytes   int64   // that have come, if that is known
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
// durable, so after [Load] an attempt is known only from its pilot.
type AttemptRef struct {
	Job     JobID
	Attempt AttemptID
	GangPlace
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

// nodeSeparator stands in no name of a host.
const nodeSeparator = " "

// node tells the host of the pilot from all others, also from those of its name.
func (i *PilotInfo) node() string {
	if i.Machine == "" {
		return i.Host
	}
	return i.Host + nodeSeparator + i.Machine
}

// CachedFile is a copy in a pilot's cache.
type CachedFile struct {
	File FileRef
	Size int64
	Hash string // as the pilot has found it when it brought the file in; empty: it does not say
}

// Outcome is how an attempt ended.
type Outcome uint8

// Outcomes of an attempt, as the pilot saw it.
const (
	Succeeded      Outcome = iota
	Exited                 // a non-zero exit code
	Signalled              // by a signal that the pilot did not send
	OutOfMemory            // over its memory limit
	OutOfTime              // over its time limit
	OutOfDisk              // no room in sandbox or cache
	MissingOutput          // exit 0 without an output that it promised
	StageInFailed          // an input could not be had
	StageOutFailed         // an output could not be stored
	Ended                  // because the TaskQueue said so
	Lost                   // its pilot is gone
	InputChanged           // it wrote to an input in place, or an input is no longer the one that was added
	InputLost              // the copy of an input that a job made was lost, or somebody wrote to it; it is not known to be this one
)

var outcomeNames = [...]string{
	Succeeded: "succeeded", Exited: "exited", Signalled: "signalled", OutOfMemory: "out of memory",
	OutOfTime: "out of time", OutOfDisk: "out of disk", MissingOutput: "missing output",
	StageInFailed: "stage-in failed", StageOutFailed: "stage-out failed", Ended: "ended", Lost: "lost",
	InputChanged: "input changed", InputLost: "input lost",
}

// String returns the outcome in words.
func (o Outcome) String() string { return nameOf(outcomeNames[:], int(o)) }

// Result is the end of an attempt.
type Result struct {
	Job      JobID
	Attempt  AttemptID
	Outcome  Outcome
	ExitCode int
	Signal   int
	Message  string        // one line for a person
	Notes    []string      // one line each for a person; they decide nothing
	Outputs  []WrittenFile // of one that did not succeed: its checkpoint only
	Usage    Usage
	Lost     []LostFile // inputs that it found lost, or damaged meanwhile; others do not count
	GangPlace
}

// WrittenFile is an output of an attempt, stored but not yet visible.
type WrittenFile struct {
	LFN     string
	Version Version // as assigned; of a pattern's files: that of the pattern
	PFN     string  // unique to version and attempt; empty if in caches only
	Size    int64
	Adler32 uint32 // of the contents; 0: the pilot has not read them, and tells Written
	Hash    string // BLAKE3 of the contents, in hexadecimal; empty: the pilot does not serve its cache
	Records int64  // as the job reported, 0 if it did not
	// Written stands for the time of modification of the stored file (storage.Written). By it and the
	// size a file without sums is known again, to which nobody may write; 0: it has sums.
	Written uint32
}

// Usage is what an attempt took. Instants are the pilot's clock.
type Usage struct {
	StageInStart time.Time
	Start        time.Time
	End          time.Time
	StageOutEnd  time.Time
	StagedAhead  time.Duration // of its stage-in, before StageInStart
	CPU          time.Duration
	MaxRSS       int64 // bytes; 0 where it was less than the pilot itself had
	BytesStaged  int64 // read from storage
	BytesCached  int64 // read from caches
	BytesWritten int64
	CacheHits    int // neither counts what is streamed
	CacheMisses  int

	// Of the hits, those from caches of other hosts, and those that had been prefetched
	// and were read for the first time. None is both.
	RemoteHits, PrefetchHits     int
	BytesRemote, BytesPrefetched int64 // of BytesCached
}

// took is how long the attempt kept its pilot; 0 if the pilot does not say.
func (u *Usage) took() time.Duration {
	if u.StageInStart.IsZero() {
		return 0
	}
	last := u.StageOutEnd
	if last.IsZero() {
		last = u.End
	}
	return max(0, last.Sub(u.StageInStart))
}

// Cancel ends jobs. A running attempt is ended; what waits for the outputs
// becomes Blocked.
type Cancel struct{ Jobs []JobID }

// RetryJobs lets Failed and Cancelled jobs run again, with fresh retries, and Done ones
// of whose stored outputs some were lost.
type RetryJobs struct{ Jobs []JobID }

// Prioritize gives jobs of a run another priority, for good; those that are done are passed over. Of no jobs it
// sets what is added to the priority that all jobs of the run were submitted with, or will be; those that were
// given one themselves keep it. What waits at a pilot is taken back, and given out by its new priority.
type Prioritize struct {
	Run      taskqueue.RunID
	Jobs     []JobID
	Priority int
}

// SetSite makes a site known or changes its limits.
type SetSite struct{ Site Site }

// Site is a batch system with its limits (section IV-A).
type Site struct {
	Name          string
	MinPilots     int
	MaxPilots     int
	MinIdlePilots int
	IdleTime      time.Duration // after which idle pilots that it does not keep leave; 0: never
	Pilot         Resources     // what one pilot of this site has
	Tools         []string
	FindsTools    bool          // its pilots look for other programs that jobs name (Answer.LookFor): it may have them
	Most          Resources     // that one pilot may say that it has; an amount of 0, or a thing without one: as it says, at most MaxPilotCPUs
	Lease         time.Duration // the longest that one may ask for; 0: Config.MaxPilotLease
	GroupCache    bool          // its pilots of several users read each other's files on a host, if a hash proves them
	CacheWith     []string      // sites whose pilots exchange cached files with those here, if they name this one too

	// What Config.Sites weighs.
	Storage   string        // how the PFNs begin that are in its own storage element; empty: none do
	Price     float64       // of one processor for an hour, in any unit of money
	QueueWait time.Duration // of a pilot in the batch system, until pilots have shown it
}

// PilotSubmitted says that the batch system accepted a pilot: inactive until
// it registers with this Launch.
type PilotSubmitted struct{ Site, Launch string }

// PilotEnded says that the batch system no longer has the pilot.
type PilotEnded struct{ Launch, Reason string }

// LoseFiles says of stored files that they are not there, or hold other bytes than were
// stored. What a Result tells so need not be said again.
type LoseFiles struct{ Files []LostFile }

// LostFile is a stored file that is lost. Of a result of an earlier run the PFN says it
// all. Without a PFN, which only a Result has, the pilot has found no copy in the caches
// that it shares.
type LostFile struct {
	File FileRef
	PFN  string
	Why  string // for a person: is not there, has 3 bytes and should have 7
}

// Published says that a version stands under its plain name.
type Published struct{ File FileRef }

// Removed says that a physical file is gone.
type Removed struct{ PFN string }

// Stop asks for an orderly end of the TaskQueue, whatever becomes of its runs: Drain lets
// running attempts finish, else they are ended. Nothing is assigned any more; pilots are
// told to leave.
type Stop struct{ Drain bool }

// Tick lets time pass.
type Tick struct{}

func (AddFiles) isInput()       {}
func (SetRun) isInput()         {}
func (CompleteRun) isInput()    {}
func (ReadersKnown) isInput()   {}
func (StopRun) isInput()        {}
func (RetireRun) isInput()      {}
func (KeepResults) isInput()    {}
func (ReleaseRun) isInput()     {}
func (ForgetResults) isInput()  {}
func (LookFor) isInput()        {}
func (Submit) isInput()         {}
func (Sync) isInput()           {}
func (HangUp) isInput()         {}
func (Refused) isInput()        {}
func (Cancel) isInput()         {}
func (RetryJobs) isInput()      {}
func (Prioritize) isInput()     {}
func (SetSite) isInput()        {}
func (PilotSubmitted) isInput() {}
func (PilotEnded) isInput()     {}
func (Published) isInput()      {}
func (LoseFiles) isInput()      {}
func (Removed) isInput()        {}
func (Stop) isInput()           {}
func (Tick) isInput()           {}

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
	Run     taskqueue.RunID
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
	// GPUShare is what a job needs of one GPU that others may share, in thousandths, below 1000.
	// Whole ones are among Countable, as quantity.GPU, and beside them there is no share. Pilots have
	// whole ones only.
	GPUShare int64
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
	LFN     string // a name, or a pattern of package logical if Pattern
	Pattern bool   // which files match is known only when the job has ended
	Storage Storage
	// Temporary has the stored copy removed when no job reads it any more, or will: not
	// before ReadersKnown or CompleteRun says so. It is made again for one that needs it
	// later. What no job reads stays.
	Temporary bool
	Publish   bool // the server publishes the committed file under its plain name
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
	Name     string // unique in its run; the same in every run of the workflow
	Step     string
	Payload  []byte // what the pilot runs; opaque to dispatch
	Digest   string // of all that decides the outputs, besides the contents of Reads
	Reads    []string
	Access   []Access // one for each of Reads; nil: all are linked
	Writes   []Output
	Needs    Resources
	Tools    []string // programs that the environment check must have found
	Site     string   // preferred site; other sites may run it once WaitForData has passed
	Priority int      // higher first
	Retry    Retry
	// Checkpoint is a folder, as a/, in which the command saves its state: the next attempt begins
	// with what one has saved that was ended before its time. Needs.Time is that of an attempt then.
	Checkpoint string
	// Tasks above 1 make the job a gang: so many attempts, its members, each with Needs of its own, are
	// given out together, begin together, and succeed together. With Apart each has a host of its own,
	// with Once the first alone runs the command, and the others end with it.
	Tasks       int
	Apart       bool
	Once        bool
	WaitForData time.Duration // how long to be kept for a pilot that holds more input; 0 means the core's default, negative never
}

// State is where a job stands.
type State uint8

// The states of a job: waiting for its requests and input versions, ready to be
// matched, assigned to a pilot, running, and the ends. Records hold the numbers.
const (
	Waiting State = iota
	Ready
	Assigned
	Running
	_
	Done
	Failed    // its retries are spent
	Blocked   // a version that it reads will not come
	Cancelled // by a person
)

var stateNames = [...]string{
	Waiting: "waiting", Ready: "ready", Assigned: "assigned", Running: "running",
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
