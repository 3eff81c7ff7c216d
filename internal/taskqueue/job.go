package taskqueue

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"time"

	"fairway/internal/logical"
	"fairway/internal/quantity"
)

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

// Compare orders copies by name, version and tag.
func (r FileRef) Compare(o FileRef) int {
	return cmp.Or(cmp.Compare(r.LFN, o.LFN), cmp.Compare(r.Version, o.Version), cmp.Compare(r.Tag, o.Tag))
}

// Tag tells what a copy of a version holds apart from what others of the same
// name hold or held: an output bears its attempt, since several may write one
// version and only one of them counts; a file that existed before bears what
// its [ExistingFile] says, which changes whenever the file does. Pilots keep
// copies under it and tell of them with it. A copy with another tag than that
// of its version is never read.
type Tag uint64

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

// String returns the way in a word.
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
	Name    string // unique in its run; the same in every run of the workflow
	Step    string
	Payload []byte // what the pilot runs; opaque to dispatch
	Digest  string // of all that decides the outputs, besides the contents of Reads
	Reads   []string
	Access  []Access // one for each of Reads; nil: all are linked
	Writes  []Output
	Needs   Resources
	Tools   []string // programs that the environment check must have found
	Site    string   // preferred site; other sites may run it once WaitForData has passed
	// Placement is the rule by which it goes to pilots' caches, whatever its site says.
	Placement Placement
	Priority  int // higher first
	Retry     Retry
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

// JobID names a job for ever. The upper 32 bits are its run; the lower ones are its
// number: its place in the order in which the jobs of the run were submitted, from 1.
type JobID uint64

// NewJobID names a job by its run and its number there.
func NewJobID(run RunID, number uint32) JobID { return JobID(run)<<32 | JobID(number) }

// Run is the run that the job belongs to.
func (id JobID) Run() RunID { return RunID(id >> 32) }

// Number is the place of the job in its run, as people know it.
func (id JobID) Number() uint32 { return uint32(id) }

// Totals counts jobs by state.
type Totals struct {
	Jobs    int
	ByState [Cancelled + 1]int
	Reused  int // of Done: results of earlier runs as they were, and not made again since
}

// Summed are the totals of several steps together.
func Summed(steps []StepTotals) (sum Totals) {
	for i := range steps {
		t := &steps[i].Totals
		sum.Jobs, sum.Reused = sum.Jobs+t.Jobs, sum.Reused+t.Reused
		for state, n := range t.ByState {
			sum.ByState[state] += n
		}
	}
	return sum
}

// StepTotals are the totals of one step of a run.
type StepTotals struct {
	Step string
	Totals
}

// TwoWriters says that two jobs write a file in no order, and what to write
// instead. It says the same whichever is given first.
func TwoWriters(lfn, one, other string) string {
	return fmt.Sprintf("%s is an output of both %s and %s: let the names differ, as by a folder for each placeholder "+
		"(writes: {a}/{b} in place of {a}.{b})",
		lfn, min(one, other), max(one, other))
}

// MaxAssignment is how many bytes a pilot may have to read to learn of a job, or of the jobs of
// one answer, as far as it can be told: a file that is read takes twice its name and 1000
// bytes, one that is written its name and 200.
const MaxAssignment = 448 << 20

const (
	readBytes    = 1000 // where it is stored, the tickets for it, and two sources of it
	writtenBytes = 200
)

// AssignmentSize is how large the description of a job is, as far as it can be told.
func AssignmentSize(payload []byte, reads iter.Seq[string], writes []Output) int {
	size := len(payload)
	for lfn := range reads {
		size += 2*len(lfn) + readBytes
	}
	for i := range writes {
		size += len(writes[i].LFN) + writtenBytes
	}
	return size
}

// TooLarge says why no pilot could be told of a job, which has too many files; "" otherwise.
func (j *Job) TooLarge() string {
	if AssignmentSize(j.Payload, slices.Values(j.Reads), j.Writes) <= MaxAssignment {
		return ""
	}
	return fmt.Sprintf("it reads %d files and writes %d: a pilot could not be told of so many; give it fewer, for "+
		"example by a merge of at most 10000 files each and another one of what these make",
		len(j.Reads), len(j.Writes))
}

// Check refuses a job that contradicts itself, or that no pilot could be told of.
func (j *Job) Check() error {
	if j.Name == "" {
		return Refuse("dispatch: a job of step %s has no name", j.Step)
	}
	if lfn := repeated(j.Reads, func(s string) string { return s }); lfn != "" {
		return Refuse("dispatch: job %s reads %s twice", j.Name, lfn)
	}
	if lfn := repeated(j.Writes, func(o Output) string { return o.LFN }); lfn != "" {
		return Refuse("dispatch: job %s writes %s twice", j.Name, lfn)
	}
	if slices.Contains(j.Reads, "") {
		return Refuse("dispatch: job %s reads a file without a name", j.Name)
	}
	if j.Access != nil && len(j.Access) != len(j.Reads) ||
		slices.ContainsFunc(j.Access, func(a Access) bool { return a > AccessStream }) {
		return Refuse("dispatch: job %s does not say how it reads each of its inputs", j.Name)
	}
	for _, w := range j.Writes {
		if w.LFN == "" {
			return Refuse("dispatch: job %s writes a file without a name", j.Name)
		}
		if w.Pattern && logical.Star(w.LFN) < 0 {
			return Refuse("dispatch: job %s: pattern %s has no *", j.Name, w.LFN)
		}
	}
	if why := j.TooLarge(); why != "" {
		return Refuse("dispatch: job %s cannot be run: %s", j.Name, why)
	}
	if j.Tasks < 0 || j.Tasks > MaxTasks {
		return Refuse("dispatch: job %s has %d tasks, and a job may have %d", j.Name, j.Tasks, MaxTasks)
	}
	if j.Tasks > 1 && slices.ContainsFunc(j.Writes, func(o Output) bool { return o.Storage == StorageCache }) {
		return Refuse("dispatch: job %s has several tasks, and what it writes would stay in caches only: store it", j.Name)
	}
	n := j.Needs
	if n.MilliCPUs < 0 || n.Memory < 0 || n.Disk < 0 || n.Time < 0 {
		return Refuse("dispatch: job %s needs a negative amount", j.Name)
	}
	for name, count := range n.Countable {
		if count < 0 {
			return Refuse("dispatch: job %s needs a negative amount of %s", j.Name, name)
		}
	}
	if n.GPUShare < 0 || n.GPUShare >= quantity.WholeGPU || n.GPUShare > 0 && n.Countable[quantity.GPU] > 0 {
		return Refuse("dispatch: job %s: a share is less than a GPU, and there are none beside whole GPUs", j.Name)
	}
	if n.GPUShare > 0 && j.Tasks > 1 { // a pilot may have room for shares together, and no device for one of them
		return Refuse("dispatch: job %s has several tasks, which need whole GPUs and no shares", j.Name)
	}
	if int(int32(j.Priority)) != j.Priority {
		return Refuse("dispatch: job %s: priority %d is out of range", j.Name, j.Priority)
	}
	return nil
}

// repeated returns a name that occurs twice, or "". Most lists are short.
func repeated[T any](list []T, name func(T) string) string {
	if len(list) > few {
		seen := make(map[string]bool, len(list))
		for _, x := range list {
			if seen[name(x)] {
				return name(x)
			}
			seen[name(x)] = true
		}
		return ""
	}
	for i, x := range list {
		for _, y := range list[:i] {
			if name(x) == name(y) {
				return name(x)
			}
		}
	}
	return ""
}

// few is up to how many names are compared one by one.
const few = 16
