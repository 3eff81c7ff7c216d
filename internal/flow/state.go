package flow

import (
	"math"
	"time"

	"fairway/internal/dispatch/rows"
	"fairway/internal/flow/pattern"
	"fairway/internal/flow/workflow"
	"fairway/internal/taskqueue"
)

// forever is the wave that never comes: a step with that watermark makes no more jobs.
const forever = math.MaxInt

// file is a file whose name is known, by its one maker. It belongs to its name.
type file struct {
	// These never change: where it stands in the canonical order, and the values of the
	// placeholders in the pattern of its maker.
	lfn    string
	values pattern.Binding
	wave   int
	first  int // wave of the first file from which it follows

	// It exists from when it arrived or its job was committed; the rest is known from
	// then on. Until then takers wait to be told.
	there   bool
	access  taskqueue.Access // of its input
	size    int64
	unsized bool // nobody knows the size before it is read
	records int64
	since   time.Time // when it came to exist
	takers  []taker
}

// taker is told once that a file exists.
type taker interface{ exists(f *Flow, file *file) }

// before is the sequence order of files: by the last file from which they follow, by the first,
// then by name.
func (f *file) before(other *file) bool {
	switch {
	case f.wave != other.wave:
		return f.wave < other.wave
	case f.first != other.first:
		return f.first < other.first
	}
	return pattern.Natural(f.lfn, other.lfn) < 0
}

// name is what is known of an LFN, from when somebody first asks for it. pending jobs wait
// until there is a file, readers, which are known jobs, until it is available; both
// are empty from then on.
type name struct {
	lfn       string
	file      *file
	maker     string // job or input, for messages
	available bool   // it arrived, or its writer was submitted
	written   bool   // by some job that is known
	pending   []pendingName
	readers   []*job
}

// pendingJob is a job that some of its names keep from being known: create makes the job
// when unknown and aside fall to 0. Until then it stands in pending of those names.
type pendingJob struct {
	state   *stepState
	values  pattern.Binding
	label   string
	wave    int
	in      []*file
	reads   []string // resolved, in the order of the step
	unknown int      // names among the needed ones that are not known, if the place follows from them
	aside   int      // and others
	placed  bool     // its place is known before the job is, and counted in placed of its step
	count   bool     // it counts the records of in[0] for a split
}

// pendingName is a job that waits for a name.
type pendingName struct {
	*pendingJob
	aside bool // its place does not follow from it
}

// key orders jobs canonically: by the last file from which they follow, by step, by the first
// of these files, by name.
type key struct {
	wave, step, first int
	name              string
}

func (k key) compare(other key) int {
	switch {
	case k.wave != other.wave:
		return k.wave - other.wave
	case k.step != other.step:
		return k.step - other.step
	case k.first != other.first:
		return k.first - other.first
	}
	return pattern.Natural(k.name, other.name)
}

// job is a job whose names are known. It is submitted when unavailable and gates are
// both 0; from then on it is kept only while it is followed.
type job struct {
	key
	state   *stepState
	new     workflow.NewJob // empty once it was let out
	source  *commandSource  // of the command and the digest, which new does not have yet
	outputs []*file         // with names known before, in the order of Writes; nil for others
	chosen  bool            // some outputs are known only when it has ended
	count   bool            // it counts records for a split, of in
	in      *file
	values  pattern.Binding

	unavailable int         // reads whose writer was not submitted
	gates       int         // queues of rewritten files that it has not passed
	shared      []sharedUse // its places in these
	submitted   bool
}

// stepState is a step with the jobs that it has made. It lives as long as the Flow.
type stepState struct {
	step       *workflow.Step
	needed     []*workflow.Maker // of the files that decide on its jobs
	aside      []*workflow.Maker // of others that they read
	dependents []*stepState      // steps whose watermarks may rise after its own

	// How much is known: all jobs of waves up to watermark, which never falls. When it is
	// forever, ended is the wave in which the data of the step ended.
	watermark int
	ended     int

	// What keeps its watermark down: at most one of join and merging is there, by
	// the kind of the step; open has the waves of jobs that choose outputs and are not
	// committed, counting those of files that wait to be split.
	join     *join
	merging  *merging
	open     openWaves
	counting openWaves
	placed   openWaves // of jobs that wait only for names which are set aside
	begun    bool      // a plain step has made its pending jobs,
	made     int64     // and so many of them are jobs

	// What it made, to find that it made nothing of something: looked says that this
	// was done, which it is once.
	ran    int   // jobs
	took   []int // files by source
	looked bool

	// It is final when its watermark is forever and it holds nothing: pending jobs, jobs not yet
	// submitted, refusals.
	held    int
	final   bool
	mayRead []string // temporary files that its jobs may read, also those read by now; until it is final

	dirty   bool                        // its watermark is to be looked at again
	waiting rows.Ordered[watermarkWait] // queues that wait for the watermark, by wave
}

// created reports whether a plain step has made all its jobs.
func (st *stepState) created() bool { return st.step.Plain() && st.made >= max(1, st.step.Data.Times) }

// inputState is a declared input with what came of it.
type inputState struct {
	in      *workflow.DeclaredInput
	closing bool // it was told that the input is closed,
	closed  bool // and this was carried out
	ended   int
	arrived map[string]string // identities by LFN
}
