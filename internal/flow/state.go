package flow

import (
	"math"
	"time"
)

// forever is the wave that never comes: what is settled until then is final.
const forever = math.MaxInt

// file is a file whose name is known.
type file struct {
	lfn     string
	values  binding // of the placeholders in the pattern of its maker
	wave    int
	there   bool // it exists: it arrived or was committed
	size    int64
	unsized bool // nobody knows the size before it is read
	records int64
	since   time.Time // when it came to exist
	takers  []taker   // who waits for it to exist
}

// taker is told once that a file exists.
type taker interface{ exists(f *Flow, file *file) }

// before is the sequence order of files: by wave, then by name.
func (f *file) before(other *file) bool {
	if f.wave != other.wave {
		return f.wave < other.wave
	}
	return natural(f.lfn, other.lfn) < 0
}

// name is what is known of an LFN.
type name struct {
	file      *file
	maker     string // job or input, for messages
	available bool   // it arrived, or its writer was submitted
	written   bool   // by some job that is known
	drafts    []*draft
	readers   []*job // known, not submitted, because it is not available
}

// draft is a job that some of its names keep from being known.
type draft struct {
	state   *stepState
	values  binding
	label   string
	wave    int
	in      []*file
	reads   []string // resolved, in the order of the step
	unknown int      // names among the needed ones that are not known
	count   bool     // it counts the records of in[0] for a split
}

// key orders jobs canonically.
type key struct {
	wave, step, rank int
	name             string
}

func (k key) compare(other key) int {
	switch {
	case k.wave != other.wave:
		return k.wave - other.wave
	case k.step != other.step:
		return k.step - other.step
	case k.rank != other.rank:
		return k.rank - other.rank
	}
	return natural(k.name, other.name)
}

// job is a job whose names are known.
type job struct {
	key
	state       *stepState
	new         NewJob
	outputs     []*file // with names known before, in the order of Writes
	unavailable int     // reads whose writer was not submitted
	gates       int     // rewritten files whose order keeps it
	shared      []sharedUse
	submitted   bool
	chosen      bool // some outputs are known only when it has ended
	count       bool // it counts records for a split
	in          *file
	values      binding
}

// stepState is a step with the jobs that it has made.
type stepState struct {
	step     *step
	settled  int       // all its jobs of waves up to this are known
	ended    int       // the wave in which its data ended, once settled is forever
	open     openWaves // of jobs that choose outputs and are not committed
	join     *join
	merging  *merging
	counting openWaves // of files that wait to be split
	made     int64     // jobs of a plain step
	ran      int       // jobs that were created
	took     []int     // files by source
	looked   bool      // for what it makes nothing of
	drafted  bool      // of plain steps
	held     int       // drafts and jobs not yet submitted
	final    bool
	dirty    bool
	waiting  settleWaits // queues that wait for settled, a heap by wave

	needed     []*maker
	dependents []*stepState
}

// created says that a plain step has made all its jobs.
func (st *stepState) created() bool { return st.step.plain() && st.made >= max(1, st.step.times) }

// inputState is a declared input with what came of it.
type inputState struct {
	in      *DeclaredInput
	closed  bool
	ended   int
	arrived map[string]string // identities by LFN
}
