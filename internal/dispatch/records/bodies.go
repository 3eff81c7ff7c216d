package records

import (
	"reflect"
	"time"

	"fairway/internal/taskqueue"
)

// Meta is the body of the record in TableMeta.
type Meta struct {
	Incarnation uint64          `json:"n"`
	Since       uint64          `json:"s,omitempty"` // first incarnation of the store
	LastRun     taskqueue.RunID `json:"r,omitempty"` // number of the last run that was begun
}

// Run is the body of a record in TableRun.
type Run struct {
	Name      string             `json:"n,omitempty"`
	KeepGoing bool               `json:"k,omitempty"`
	State     taskqueue.RunState `json:"s,omitempty"`
	Complete  bool               `json:"c,omitempty"`
	Reason    string             `json:"r,omitempty"`
	Group     string             `json:"g,omitempty"`
	User      string             `json:"u,omitempty"`
	Limits    map[string]int64   `json:"l,omitempty"`
	Scope     string             `json:"sc,omitempty"`
	NoReuse   bool               `json:"nr,omitempty"`
	Raised    int32              `json:"ra,omitempty"`
}

// Usage is the body of a record in TableUsage.
type Usage struct {
	Group string            `json:"g,omitempty"`
	User  string            `json:"u"`
	Used  float64           `json:"s"` // slot-seconds
	At    taskqueue.Instant `json:"t"`
}

// Fate is the body of a record in TableFate: what a job went through besides its success. Most jobs have
// none.
type Fate struct {
	Tries     int                   `json:"t,omitempty"` // failed attempts that count
	Losses    int                   `json:"l,omitempty"`
	Attempts  []taskqueue.AttemptID `json:"a,omitempty"` // whose results are not taken again: the last ones
	Memory    int64                 `json:"m,omitempty"` // grown
	Avoid     string                `json:"h,omitempty"` // host where it failed for want of something
	NotBefore taskqueue.Instant     `json:"n,omitempty"`
	Withdrawn bool                  `json:"w,omitempty"` // its requests have left the FIFOs
	End       taskqueue.State       `json:"s,omitempty"` // Failed or Cancelled
	Reason    string                `json:"r,omitempty"`
	Private   bool                  `json:"p,omitempty"` // somebody wrote to what it read; it gets copies of its own
	Saved     *Saved                `json:"k,omitempty"` // its checkpoint
	Gang      *DoneMembers          `json:"g,omitempty"` // of its gang, while others of that run
	Priority  *int32                `json:"u,omitempty"` // that a person has given it; nil: none has
}

// Saved is the folder that the next attempt of a job begins with.
type Saved struct {
	Attempt taskqueue.AttemptID `json:"a"`
	Version taskqueue.Version   `json:"v,omitempty"` // among those of the attempt
	PFN     string              `json:"f"`
	Size    int64               `json:"s,omitempty"`
	Adler32 uint32              `json:"d,omitempty"`
	Hash    string              `json:"h,omitempty"`
}

// DoneMembers is what the fate of a job keeps of its gang, so that nobody has to tell it again.
type DoneMembers struct {
	Leader taskqueue.AttemptID `json:"a"`
	Tasks  []int               `json:"t"`
	Result *taskqueue.Result   `json:"r,omitempty"`
	By     taskqueue.PilotID   `json:"b,omitempty"`
}

// Removal is the body of a record in TableRemove.
type Removal struct{}

// Pilot is the body of a record in TablePilot.
type Pilot struct {
	Host   string `json:"h,omitempty"`
	Site   string `json:"s,omitempty"`
	Launch string `json:"l,omitempty"`
}

// Launch is the body of a record in TableLaunch.
type Launch struct {
	Site string `json:"s"`
}

// Published is the body of a record in TablePublished.
type Published struct{ Version taskqueue.Version }

var publishedFields = object[Published]{
	number("n", func(p *Published) *taskqueue.Version { return &p.Version }),
}

// File is the body of a record in TableFile.
type File struct {
	LFN      string
	Version  taskqueue.Version
	PFN      string
	Size     int64
	Identity string
	Tag      taskqueue.Tag
}

var fileFields = object[File]{
	text("l", func(f *File) *string { return &f.LFN }),
	number("n", func(f *File) *taskqueue.Version { return &f.Version }),
	text("f", func(f *File) *string { return &f.PFN }),
	number("s", func(f *File) *int64 { return &f.Size }),
	text("i", func(f *File) *string { return &f.Identity }),
	number("t", func(f *File) *taskqueue.Tag { return &f.Tag }),
}

// Job is the body of a record in TableJob. Its Writes stand in Written.
type Job struct {
	taskqueue.Job
	Read      []taskqueue.Version // of Reads
	Written   []Write
	Submitted taskqueue.Instant
}

// Write is an output that a job promises, with the version that its place gives it.
type Write struct {
	taskqueue.Output
	Version taskqueue.Version
}

var jobFields = object[Job]{
	ownText("n", func(j *Job) *string { return &j.Name }),
	text("s", func(j *Job) *string { return &j.Step }),
	inBase64("p", func(j *Job) *[]byte { return &j.Payload }),
	ownText("d", func(j *Job) *string { return &j.Digest }),
	texts("r", func(j *Job) *[]string { return &j.Reads }),
	list("ra", func(j *Job) *[]taskqueue.Access { return &j.Access }, appendNumber, scanNumber),
	list("rv", func(j *Job) *[]taskqueue.Version { return &j.Read }, appendNumber, scanNumber),
	list("w", func(j *Job) *[]Write { return &j.Written }, writeFields.append, writeFields.take),
	within("q", func(j *Job) *taskqueue.Resources { return &j.Needs }, noResources, needsFields),
	texts("t", func(j *Job) *[]string { return &j.Tools }),
	text("at", func(j *Job) *string { return &j.Site }),
	number("pl", func(j *Job) *taskqueue.Placement { return &j.Placement }),
	number("pr", func(j *Job) *int { return &j.Priority }),
	rare("re", func(j *Job) *taskqueue.Retry { return &j.Retry }, noRetry),
	text("ck", func(j *Job) *string { return &j.Checkpoint }),
	number("ta", func(j *Job) *int { return &j.Tasks }),
	flag("ap", func(j *Job) *bool { return &j.Apart }),
	flag("on", func(j *Job) *bool { return &j.Once }),
	number("wd", func(j *Job) *time.Duration { return &j.WaitForData }),
	number("su", func(j *Job) *taskqueue.Instant { return &j.Submitted }),
}

func noRetry(r *taskqueue.Retry) bool {
	return r.Attempts == 0 && r.Backoff == 0 && r.ExitCodes == nil && r.MemoryFactor == 0
}

var writeFields = object[Write]{
	ownText("l", func(w *Write) *string { return &w.LFN }),
	flag("p", func(w *Write) *bool { return &w.Pattern }),
	flag("u", func(w *Write) *bool { return &w.Publish }),
	of("c", func(w *Write) *taskqueue.Storage { return &w.Storage }, isZero,
		func(b []byte, _ *taskqueue.Storage) []byte { return appendFlag(b, nil) },
		func(s *scan, storage *taskqueue.Storage) {
			s.word("true")
			*storage = taskqueue.StorageCache
		}),
	flag("t", func(w *Write) *bool { return &w.Temporary }),
	number("v", func(w *Write) *taskqueue.Version { return &w.Version }),
}

var needsFields = object[taskqueue.Resources]{
	number("MilliCPUs", func(r *taskqueue.Resources) *int64 { return &r.MilliCPUs }),
	number("Memory", func(r *taskqueue.Resources) *int64 { return &r.Memory }),
	number("Disk", func(r *taskqueue.Resources) *int64 { return &r.Disk }),
	number("Time", func(r *taskqueue.Resources) *time.Duration { return &r.Time }),
	rare("Countable", func(r *taskqueue.Resources) *map[string]int64 { return &r.Countable },
		func(m *map[string]int64) bool { return *m == nil }),
	number("GPUShare", func(r *taskqueue.Resources) *int64 { return &r.GPUShare }),
}

func noResources(r *taskqueue.Resources) bool { return reflect.ValueOf(*r).IsZero() }

// Output is a written version as it is recorded.
type Output struct {
	LFN     string
	Pattern string
	PFN     string // empty: in caches only, or removed
	Cached  bool   // in caches only, as the job wanted
	Size    int64
	Records int64
	Adler32 uint32
	Written uint32        // that of taskqueue.WrittenFile
	Hash    string        // of the contents, where a pilot has told it that serves its cache
	Tag     taskqueue.Tag // 0: the attempt that the commit names
}

var outputFields = object[Output]{
	text("l", func(o *Output) *string { return &o.LFN }),
	text("p", func(o *Output) *string { return &o.Pattern }),
	text("f", func(o *Output) *string { return &o.PFN }),
	flag("c", func(o *Output) *bool { return &o.Cached }),
	number("s", func(o *Output) *int64 { return &o.Size }),
	number("r", func(o *Output) *int64 { return &o.Records }),
	number("a", func(o *Output) *uint32 { return &o.Adler32 }),
	number("w", func(o *Output) *uint32 { return &o.Written }),
	text("h", func(o *Output) *string { return &o.Hash }),
	number("t", func(o *Output) *taskqueue.Tag { return &o.Tag }),
}

// TagOf is that of the output of a job of which this attempt was committed.
func (o *Output) TagOf(committed taskqueue.AttemptID) taskqueue.Tag {
	if o.Tag != 0 {
		return o.Tag
	}
	return taskqueue.Tag(committed)
}

// Commit is the body of a record in TableCommit. It holds the outputs of a job, and what a later run
// must know to take them. Those of a job that took them itself stand in the result of Key, and so
// do those that others have taken: Whole is not set then.
type Commit struct {
	Attempt taskqueue.AttemptID
	Key     Identity // zero: the job has none
	Reused  bool
	Whole   bool
	Inputs  []Mark // in the order of Reads
	Outputs []Output
}

var commitFields = object[Commit]{
	number("a", func(c *Commit) *taskqueue.AttemptID { return &c.Attempt }),
	of("k", func(c *Commit) *Identity { return &c.Key }, isZero,
		func(b []byte, key *Identity) []byte { return appendHex(b, key[:]) },
		func(s *scan, key *Identity) { scanHex(s, key[:]) }),
	flag("re", func(c *Commit) *bool { return &c.Reused }),
	flag("w", func(c *Commit) *bool { return &c.Whole }),
	list("i", func(c *Commit) *[]Mark { return &c.Inputs }, appendMark, scanMark),
	list("o", func(c *Commit) *[]Output { return &c.Outputs }, outputFields.append, outputFields.take),
}

func appendMark(b []byte, m *Mark) []byte { return appendHex(b, m[:]) }

func scanMark(s *scan, m *Mark) { scanHex(s, m[:]) }

// Result is the body of a record in TableResult.
type Result struct {
	Job     string
	Digest  string // why a later run does not take it
	Inputs  []Mark // in the order of Reads
	Made    uint64 // incarnation
	Outputs []Output

	// Where runs share results, or have done so.
	Scope string
	Run   taskqueue.RunID // that made it
	Group string          // of that
	User  string
	Runs  []taskqueue.RunID // that were retired, are kept, and name it
	Left  taskqueue.Instant // since when no run that is kept names it
}

var resultFields = object[Result]{
	text("j", func(r *Result) *string { return &r.Job }),
	text("d", func(r *Result) *string { return &r.Digest }),
	list("i", func(r *Result) *[]Mark { return &r.Inputs }, appendMark, scanMark),
	number("n", func(r *Result) *uint64 { return &r.Made }),
	text("sc", func(r *Result) *string { return &r.Scope }),
	number("ru", func(r *Result) *taskqueue.RunID { return &r.Run }),
	text("g", func(r *Result) *string { return &r.Group }),
	text("u", func(r *Result) *string { return &r.User }),
	list("by", func(r *Result) *[]taskqueue.RunID { return &r.Runs }, appendNumber, scanNumber),
	number("le", func(r *Result) *taskqueue.Instant { return &r.Left }),
	list("o", func(r *Result) *[]Output { return &r.Outputs }, outputFields.append, outputFields.take),
}

func (b *Published) append(to []byte) []byte { return publishedFields.appendFields(to, b) }
func (b *File) append(to []byte) []byte      { return fileFields.appendFields(to, b) }
func (b *Job) append(to []byte) []byte       { return jobFields.appendFields(to, b) }
func (b *Commit) append(to []byte) []byte    { return commitFields.appendFields(to, b) }
func (b *Result) append(to []byte) []byte    { return resultFields.appendFields(to, b) }

func (b *Published) scan(s *scan) { publishedFields.scanFields(s, b, false) }
func (b *File) scan(s *scan)      { fileFields.scanFields(s, b, false) }
func (b *Job) scan(s *scan)       { jobFields.scanFields(s, b, false) }
func (b *Commit) scan(s *scan)    { commitFields.scanFields(s, b, false) }
func (b *Result) scan(s *scan)    { resultFields.scanFields(s, b, false) }
