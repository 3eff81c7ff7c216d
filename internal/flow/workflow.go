package flow

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"go.yaml.in/yaml/v3"

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

	data      []byte     // of the file
	scales    *Scales    // of a recorded run
	root      *yaml.Node // of the text; nil of a recorded run
	values    map[string]string
	set       map[string]string // those that were given: what it is bound to
	part      *part             // nil: the whole file
	steps     []*step
	recorded  []NewJob // nil: it is no recorded run
	digest    string
	placement taskqueue.Placement // of its jobs, by pilots' caches
	raised    int                 // what is added to the priority of each step
}

// Parameter is a value that whoever runs the workflow may set.
type Parameter struct {
	Name     string
	Value    string
	Required bool // it has no default; until it is given it counts as "1"
}

// Steps gives the names of the steps in the order of the file.
func (w *Workflow) Steps() []string {
	names := make([]string, len(w.steps))
	for _, s := range w.steps {
		names[s.listed] = s.name
	}
	return names
}

// Strict reports whether a step asks for strict sandboxes.
func (w *Workflow) Strict() bool {
	return slices.ContainsFunc(w.steps, func(s *step) bool { return s.needs.strict })
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

// unbound says which parameters have no value, or nil.
func (w *Workflow) unbound() (wrong error) {
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
	for _, s := range w.steps {
		if p := s.needs.priority + by; p > math.MaxInt32 || p < math.MinInt32 {
			return nil, fmt.Errorf("the priority of the step %s would be %d, which is out of range", s.name, p)
		}
	}
	raised := *w
	raised.raised = by
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

	patterns []*pattern // of paths, or of base names for a URL list
	names    []*pattern // of LFNs, one for each of patterns
	makers   []*maker   // one for each of names
	renamed  bool       // the names are not just base names
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

// entry is one of the names under reads, writes or rewrites.
type entry struct {
	name    string // for the command; may be empty
	pattern *pattern
	log     bool     // it is kept when the job fails
	hidden  bool     // the command does not name it: what it executes, or runs in; such entries come last
	fresh   bool     // has placeholders that are known only when the job has ended
	shared  bool     // some step rewrites it
	aside   bool     // jobs do not take their place in the order from it: see setAside
	made    []*maker // who makes files that fit, rewriters left out
}

// step is a rule that creates jobs.
type step struct {
	name   string
	line   int
	listed int // its place in the file
	order  int // its place in the canonical order, from 1

	data     stepData // what data it takes
	reads    []entry
	writes   []entry
	rewrites []entry

	needs stepNeeds   // what its jobs need
	runs  stepCommand // what its jobs run

	replayed bool // a kind of task of a trace: its jobs are fixed

	found stepFound // what check finds
}

// stepData is what data a step takes, and into how many jobs that goes.
type stepData struct {
	each       []*pattern
	eachNames  []string // variables for the files of each, empty where there are no names
	merge      []*pattern
	limits     mergeLimits
	by         []string
	split      *splitRule
	times      int64 // jobs of a step without data; 0: one
	mayBeEmpty bool  // it may make nothing of what it takes
	access     accessRule
}

// stepNeeds is what the jobs of a step need, and how they are scheduled.
type stepNeeds struct {
	resources  taskqueue.Resources
	tools      []string
	retry      taskqueue.Retry
	priority   int
	site       string
	wait       time.Duration
	storage    taskqueue.Storage
	temporary  bool
	strict     bool // its jobs see only their own
	checkpoint string
	tasks      int  // that begin together; 0: it is one
	apart      bool // each on a node of its own
	once       bool // the first alone runs the command
	publish    *bool
}

// stepCommand is what the jobs of a step run, and in what.
type stepCommand struct {
	interpreter string
	worker      string // words of a program that begins its jobs
	command     string
	script      string // LFN of the file that is the command
	container   Container
	environment string // LFN of a folder with what its commands find besides; empty: none
	variables   []variable
}

// stepFound is what check finds of a step.
type stepFound struct {
	bound   []string   // placeholders that have a value before the job runs
	perWave bool       // a merge whose groups are complete with the wave that began them
	makers  []*maker   // of writes, in their order
	feeds   [][]*maker // of sources: who makes files that fit
	after   []*step    // plain steps that come at the end of the data: after all jobs of these
}

// mergeLimits end a merge before the end of the data. Zero means no limit.
type mergeLimits struct {
	files   int
	size    int64
	latency time.Duration
}

func (l mergeLimits) any() bool { return l != mergeLimits{} }

// splitRule makes many jobs from one file.
type splitRule struct {
	records int64
	unit    recordUnit
	bytes   int64  // length of one record, for recordBytes
	count   string // command that prints the number, for recordCounted
}

type recordUnit uint8

const (
	recordLines recordUnit = iota
	recordFastq
	recordBytes
	recordCounted
)

// sources are the patterns whose files create the step's jobs.
func (s *step) sources() []*pattern {
	if len(s.data.merge) > 0 {
		return s.data.merge
	}
	return s.data.each
}

// plain reports whether the step makes its jobs whatever data comes: one, or as
// many as times says.
func (s *step) plain() bool { return len(s.sources()) == 0 }

// outputs are writes, then rewrites.
func (s *step) outputs() []entry {
	return append(s.writes[:len(s.writes):len(s.writes)], s.rewrites...)
}

// needed are the makers of all files that jobs of the step get.
func (s *step) needed() []*maker {
	placing, aside := s.makersBefore()
	return append(placing, aside...)
}

// makersBefore are the makers that decide which jobs the step has and where in the order, and
// those of files that are set aside.
func (s *step) makersBefore() (placing, aside []*maker) {
	for _, makers := range s.found.feeds {
		placing = append(placing, makers...)
	}
	for _, e := range append(s.reads[:len(s.reads):len(s.reads)], s.rewrites...) {
		if e.aside {
			aside = append(aside, e.made...)
		} else {
			placing = append(placing, e.made...)
		}
	}
	return placing, aside
}

// before are the steps that s comes after, each once.
func (s *step) before() []*step {
	var all []*step
	seen := map[*step]bool{nil: true}
	add := func(other *step) {
		if !seen[other] {
			seen[other] = true
			all = append(all, other)
		}
	}
	for _, m := range s.needed() {
		add(m.step)
	}
	for _, other := range s.found.after {
		add(other)
	}
	return all
}

func (s *step) sharedUses() []use {
	var uses []use
	for i := range s.reads {
		if s.reads[i].shared {
			uses = append(uses, use{s, &s.reads[i], false})
		}
	}
	for _, entries := range [][]entry{s.writes, s.rewrites} {
		for i := range entries {
			if entries[i].shared {
				uses = append(uses, use{s, &entries[i], true})
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
	demands := make([]Demand, len(w.steps))
	for _, s := range w.steps {
		demands[s.listed] = Demand{
			Step: s.name, Line: s.line, Site: s.needs.site, Needs: s.needs.resources, Tools: s.needs.tools,
			Tasks: s.needs.tasks, Apart: s.needs.apart,
			Strict: s.needs.strict, Variables: s.takenVariables(),
		}
	}
	return demands
}
