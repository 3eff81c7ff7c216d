package workflow

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"go.yaml.in/yaml/v3"

	"fairway/internal/flow/pattern"
	"fairway/internal/taskqueue"
)

// Workflow is a workflow file, or a trace, that was found to be right. It is
// immutable.
type Workflow struct {
	File       string
	Name       string
	About      string
	Parameters []Parameter
	Inputs     []*DeclaredInput
	// Limits bound how much all jobs of a run together have of what steps name under needs, by name.
	Limits map[string]int64

	data         []byte     // of the file
	scales       *Scales    // of a recorded run
	root         *yaml.Node // of the text; nil of a recorded run
	values       map[string]string
	set          map[string]string // those that were given: what it is bound to
	part         *part             // nil: the whole file
	Steps        []*Step
	RecordedJobs []NewJob // nil: it is no recorded run
	digest       string
	Placement    taskqueue.Placement // of its jobs, by pilots' caches
	RaisedBy     int                 // what is added to the priority of each step
}

// Parameter is a value that whoever runs the workflow may set.
type Parameter struct {
	Name     string
	Value    string
	Required bool // it has no default; until it is given it counts as "1"
}

// StepNames gives the names of the steps in the order of the file.
func (w *Workflow) StepNames() []string {
	names := make([]string, len(w.Steps))
	for _, s := range w.Steps {
		names[s.listed] = s.Name
	}
	return names
}

// Strict reports whether a step asks for strict sandboxes.
func (w *Workflow) Strict() bool {
	return slices.ContainsFunc(w.Steps, func(s *Step) bool { return s.Needs.Strict })
}

// SubmittedJobs is the name of the input of an open workflow, and the step of a job that does
// not name one.
const SubmittedJobs = "jobs"

// Open reports whether the jobs of the workflow are submitted by programs.
func (w *Workflow) Open() bool {
	return len(w.Inputs) == 1 && w.Inputs[0].Submitted
}

// Set are the values that parameters were given in place of their defaults.
func (w *Workflow) Set() map[string]string { return w.set }

// Unbound says which parameters have no value, or nil.
func (w *Workflow) Unbound() (wrong error) {
	for _, p := range w.Parameters {
		if p.Required {
			wrong = errors.Join(wrong, fmt.Errorf("%s: the parameter %q has no default; give it with --set %s=VALUE", w.File,
				p.Name, p.Name))
		}
	}
	return wrong
}

// Digest identifies the workflow with its parameters. State that was written
// under another digest cannot be loaded.
func (w *Workflow) Digest() string { return w.digest }

// Raised is the workflow with something added to the priority of each step, or taken from it. Jobs that
// programs submit to an open one keep theirs.
func (w *Workflow) Raised(by int) (*Workflow, error) {
	if by == 0 {
		return w, nil
	}
	for _, s := range w.Steps {
		if p := s.Needs.Priority + by; p > math.MaxInt32 || p < math.MinInt32 {
			return nil, fmt.Errorf("the priority of the step %s would be %d, which is out of range", s.Name, p)
		}
	}
	raised := *w
	raised.RaisedBy = by
	raised.digest = workflowDigest([]byte(w.digest), map[string]string{"priority": fmt.Sprint(by)}, nil)
	return &raised, nil
}

// Source gives what the workflow was parsed from: the text of a workflow file,
// or that of a recorded run with its scales.
func (w *Workflow) Source() (text []byte, recorded *Scales) { return w.data, w.scales }

// DeclaredInput is a declaration of data that exists before the workflow, or comes
// from outside while it runs. Flow does not look for files: the caller
// enumerates what Patterns name, and steps [Arrived].
type DeclaredInput struct {
	Name string
	Line int // of the declaration, for messages

	// Patterns are path patterns as written, relative to the folder of the
	// workflow, in order; several only for files. Globs has the same with
	// placeholders replaced by '*', for filepath.Glob, which may find more than
	// they match. Both are empty for URLList and Sizes.
	Patterns []string
	Globs    []string

	// Submitted marks the input of an open workflow: programs submit jobs, and whoever closes
	// it says that no more will come. It has no files.
	Submitted bool

	Watch   bool   // new files that match may come until the input is closed
	URLList string // a file with one URL a line, which may grow until the input is closed
	Close   CloseRule
	Access  taskqueue.Access // how commands get the files, unless their step says

	// MayBeEmpty permits patterns that match nothing, and that it is closed
	// without any file. Else a Flow is then never finished.
	MayBeEmpty bool

	// Catalog, if it is not nil, says where the logical names in the URL list
	// are: those lines that are no URLs.
	Catalog *CatalogRef

	// Sizes are the files of a trace: the caller makes each with the given
	// size (the content is of no matter) and steps Arrived with all of them.
	Sizes []SizedFile

	Paths   []*pattern.Pattern // of paths, or of base names for a URL list
	Names   []*pattern.Pattern // of LFNs, one for each of patterns
	makers  []*Maker           // one for each of names
	renamed bool               // the names are not just base names
}

// IsOpen reports whether the input may get files while the run goes on.
func (in *DeclaredInput) IsOpen() bool { return in.Watch || in.URLList != "" || in.Submitted }

// CatalogRef names the rules of a site's file catalogue, a storage.xml or
// storage.json.
type CatalogRef struct {
	File         string // relative to the folder of the workflow
	Protocol     string
	Site, Volume string // of a storage.json; empty: the first
}

// CloseRule says when a watched input gets no more files. At most one is set;
// none means that the input is closed once its files were enumerated.
type CloseRule struct {
	Manual bool          // when a person says so
	Idle   time.Duration // when no file came for so long
	File   string        // when this file exists
}

// SizedFile is a file of which only name and size matter.
type SizedFile struct {
	LFN  string
	Size int64
}

// Entry is one of the names under reads, writes or rewrites.
type Entry struct {
	Name    string // for the command; may be empty
	Pattern *pattern.Pattern
	Log     bool     // it is kept when the job fails
	Hidden  bool     // the command does not name it: what it executes, or runs in; such entries come last
	fresh   bool     // has placeholders that are known only when the job has ended
	Shared  bool     // some step rewrites it
	Aside   bool     // jobs do not take their place in the order from it: see setAside
	Made    []*Maker // who makes files that fit, rewriters left out
}

// Step is a rule that creates jobs.
type Step struct {
	Name   string
	line   int
	listed int // its place in the file
	Order  int // its place in the canonical order, from 1

	Data     StepData // what data it takes
	Reads    []Entry
	Writes   []Entry
	Rewrites []Entry

	Needs stepNeeds   // what its jobs need
	Runs  stepCommand // what its jobs run

	Replayed bool // a kind of task of a trace: its jobs are fixed

	Found stepFound // what check finds
}

// StepData is what data a step takes, and into how many jobs that goes.
type StepData struct {
	Each       []*pattern.Pattern
	EachNames  []string // variables for the files of each, empty where there are no names
	Merge      []*pattern.Pattern
	Limits     mergeLimits
	By         []string
	Split      *splitRule
	Times      int64 // jobs of a step without data; 0: one
	MayBeEmpty bool  // it may make nothing of what it takes
	Access     accessRule
}

// stepNeeds is what the jobs of a step need, and how they are scheduled.
type stepNeeds struct {
	Resources  taskqueue.Resources
	Tools      []string
	Retry      taskqueue.Retry
	Priority   int
	Site       string
	Wait       time.Duration
	Storage    taskqueue.Storage
	Temporary  bool
	Strict     bool // its jobs see only their own
	Checkpoint string
	Tasks      int  // that begin together; 0: it is one
	Apart      bool // each on a node of its own
	Once       bool // the first alone runs the command
	Publish    *bool
}

// stepCommand is what the jobs of a step run, and in what.
type stepCommand struct {
	Interpreter string
	Worker      string // words of a program that begins its jobs
	Command     string
	Script      string // LFN of the file that is the command
	container   Container
	environment string // LFN of a folder with what its commands find besides; empty: none
	Variables   []variable
}

type stepFound struct {
	bound   []string   // placeholders that have a value before the job runs
	PerWave bool       // a merge whose groups are complete with the wave that began them
	Makers  []*Maker   // of writes, in their order
	Feeds   [][]*Maker // of sources: who makes files that fit
	After   []*Step    // plain steps that come at the end of the data: after all jobs of these
}

// mergeLimits end a merge before the end of the data. Zero means no limit.
type mergeLimits struct {
	Files   int
	Size    int64
	Latency time.Duration
}

func (l mergeLimits) Any() bool { return l != mergeLimits{} }

// splitRule makes many jobs from one file.
type splitRule struct {
	Records int64
	Unit    RecordUnit
	Bytes   int64  // length of one record, for recordBytes
	Count   string // command that prints the number, for recordCounted
}

// RecordUnit is what is one record for a split.
type RecordUnit uint8

// What a record is.
const (
	RecordLines   RecordUnit = iota // each line
	RecordFastq                     // four lines
	RecordBytes                     // each byte
	RecordCounted                   // what a command says that there are
)

// Sources are the patterns whose files create the step's jobs.
func (s *Step) Sources() []*pattern.Pattern {
	if len(s.Data.Merge) > 0 {
		return s.Data.Merge
	}
	return s.Data.Each
}

// Plain reports whether the step makes its jobs whatever data comes: one, or as
// many as times says.
func (s *Step) Plain() bool { return len(s.Sources()) == 0 }

// Outputs are writes, then rewrites.
func (s *Step) Outputs() []Entry {
	return append(s.Writes[:len(s.Writes):len(s.Writes)], s.Rewrites...)
}

// needed are the makers of all files that jobs of the step get.
func (s *Step) needed() []*Maker {
	placing, aside := s.MakersBefore()
	return append(placing, aside...)
}

// MakersBefore are the makers that decide which jobs the step has and where in the order, and
// those of files that are set aside.
func (s *Step) MakersBefore() (placing, aside []*Maker) {
	for _, makers := range s.Found.Feeds {
		placing = append(placing, makers...)
	}
	for _, e := range append(s.Reads[:len(s.Reads):len(s.Reads)], s.Rewrites...) {
		if e.Aside {
			aside = append(aside, e.Made...)
		} else {
			placing = append(placing, e.Made...)
		}
	}
	return placing, aside
}

// Before are the steps that s comes after, each once.
func (s *Step) Before() []*Step {
	var all []*Step
	seen := map[*Step]bool{nil: true}
	add := func(other *Step) {
		if !seen[other] {
			seen[other] = true
			all = append(all, other)
		}
	}
	for _, m := range s.needed() {
		add(m.Step)
	}
	for _, other := range s.Found.After {
		add(other)
	}
	return all
}

// SharedUses are the uses of rewritten files.
func (s *Step) SharedUses() []Use {
	var uses []Use
	for i := range s.Reads {
		if s.Reads[i].Shared {
			uses = append(uses, Use{s, &s.Reads[i], false})
		}
	}
	for _, entries := range [][]Entry{s.Writes, s.Rewrites} {
		for i := range entries {
			if entries[i].Shared {
				uses = append(uses, Use{s, &entries[i], true})
			}
		}
	}
	return uses
}

// Demand is what the jobs of a step ask of the pilot that runs them.
type Demand struct {
	Step  string
	Line  int // of the step, for messages
	Site  string
	Needs taskqueue.Resources
	Tools []string
	// Tasks begin together, each with Needs, and with Apart on a node of its own; 0: it is one.
	Tasks int
	Apart bool
	// Strict says that they see only what is their own.
	Strict bool
	// Variables are those of the environment that they get from whoever runs the workflow.
	Variables []string
}

// RoomOn is how many tasks a pilot has room for that has these resources and runs nothing else.
func (d *Demand) RoomOn(has taskqueue.Resources) int {
	n := has.MilliCPUs / max(1, cmp.Or(d.Needs.MilliCPUs, min(1000, has.MilliCPUs)))
	if d.Needs.Memory > 0 {
		n = min(n, has.Memory/d.Needs.Memory)
	}
	if d.Needs.Disk > 0 {
		n = min(n, has.Disk/d.Needs.Disk)
	}
	for name, needs := range d.Needs.Countable {
		if needs > 0 {
			n = min(n, has.Countable[name]/needs)
		}
	}
	return int(min(max(0, n), math.MaxInt32))
}

// DemandOf is what a job of an open workflow asks, under its name.
func DemandOf(j *NewJob) Demand {
	return Demand{
		Step: j.Job.Name, Site: j.Job.Site, Needs: j.Job.Needs, Tools: j.Job.Tools, Tasks: j.Job.Tasks,
		Apart: j.Job.Apart, Strict: j.Command.Strict,
	}
}

// Demands tells what the steps ask of pilots, in the order of the file, so
// that whoever runs the workflow can tell before it begins that it never could.
func (w *Workflow) Demands() []Demand {
	demands := make([]Demand, len(w.Steps))
	for _, s := range w.Steps {
		demands[s.listed] = Demand{
			Step: s.Name, Line: s.line, Site: s.Needs.Site, Needs: s.Needs.Resources, Tools: s.Needs.Tools,
			Tasks: s.Needs.Tasks, Apart: s.Needs.Apart,
			Strict: s.Needs.Strict, Variables: s.TakenVariables(),
		}
	}
	return demands
}
