package taskqueue

import (
	"slices"
	"time"
)

// Explanation says as facts why a job is not running, or what became of it. The words are those of
// package explain.
type Explanation struct {
	JobView
	Taken *Origin // who made the result that it has taken, as in [JobDetail]

	// Of one that waits.
	WaitsFor Some[WaitsFor] // requests before it and versions that are not there
	Inputs   *MissingInputs // told in place of each version, where many are not there
	Twin     *Twin          // the same job, whose result it takes when there is one
	Again    *Again

	Ready *Readiness // of one that is ready

	// Of one that was given to pilots.
	Places    Some[AttemptStanding] // of a gang by task
	TasksDone []int                 // of a gang: those that have succeeded

	// Of one that has ended.
	Lost      []string // outputs whose stored files were lost
	Temporary Some[TemporaryOutput]

	Missing []string // what no known pilot, nor one that a site could start, has
}

// Some are the first of things, and how many more there are.
type Some[T any] struct {
	First []T
	More  int
}

// Add adds one; beyond most it is only counted.
func (s *Some[T]) Add(t T, most int) {
	if len(s.First) < most {
		s.First = append(s.First, t)
	} else {
		s.More++
	}
}

// Len is how many there are.
func (s *Some[T]) Len() int { return len(s.First) + s.More }

// WaitsFor is a job that another waits for, and the file that it is about.
type WaitsFor struct {
	File   FileRef
	Job    JobID
	Name   string
	State  State
	Behind string // read or write: a request that stands behind that of the job; empty: the version that it is to make
}

// MissingInputs are versions that are not there.
type MissingInputs struct {
	Missing, Of int
	Makers      []Makers // by state
}

// Makers are the jobs in one state that make missing inputs.
type Makers struct {
	State State
	Jobs  int
	First string
}

// Twin is the same job as another.
type Twin struct {
	Origin
	State State
}

// Again is when a job that has failed is tried again.
type Again struct {
	In     Left
	Reason string // how the last attempt ended
}

// Left is how long it is until something happens.
type Left time.Duration

// LeftUnknown is that of a Core that was loaded to be looked at, and never stepped: it knows no time.
const LeftUnknown Left = -1

// String says for a person when it happens.
func (l Left) String() string {
	d := time.Duration(l)
	switch {
	case l == LeftUnknown:
		return "when the run goes on"
	case d > 10*time.Second:
		d = d.Round(time.Second)
	}
	return "in " + d.String()
}

// AttemptStanding is how an attempt stands at its pilot, or a task of one.
type AttemptStanding struct {
	Try      int // 1 is the first of the job
	InGang   bool
	Task     int // of a gang
	Pilot    PilotID
	Host     string
	Phase    Phase
	IsEnding bool
	Silent   *Silence
	// AwaitsTurn is set while it waits until the pilot has room, behind Ahead; nil then: what is being ended.
	AwaitsTurn bool
	Ahead      *JobAhead
	Inputs     []AwaitedInput // that the pilot waits for
	Away       []AwayServer   // that it has found away
}

// Silence is for how long a pilot was not heard of, and when what it has is given out again.
type Silence struct{ For, Until time.Duration }

// JobAhead is the first job that a pilot was given before another, and how many more there are.
type JobAhead struct {
	Name  string // empty: it is of another run, and may be another user's
	State State
	More  int
}

// AwaitedInput is an input that an attempt waits for.
type AwaitedInput struct {
	WaitingInput
	Size int64
}

// TemporaryOutput is how a temporary output of a job stands.
type TemporaryOutput struct {
	LFN     string
	Removed bool
	Unread  bool // no job reads it, and none can come
	Readers int  // that are not done
}

// Readiness is why no pilot has a job that is ready.
type Readiness struct {
	Hold   Hold
	Run    RunState      // with RunHalted: of its run
	Reason string        // with RunHalted: why
	Site   string        // with KeptForSite
	Pilot  PilotID       // with KeptForPilot
	For    time.Duration // how long it is held, at most

	// What follows is told of one that is not held.
	Gang    *GangRoom
	Survey  *Survey // of a gang only if there is no room for it
	Prefers *Preference
	Turn
}

// Hold is why no pilot may have a ready job.
type Hold uint8

// The reasons to hold a job.
const (
	NotHeld Hold = iota
	RunHalted
	AllEnds
	PilotsReturn // those known before a restart may still run it
	KeptForSite
	KeptForPilot
)

// GangRoom is how much room there is for a job of several tasks.
type GangRoom struct {
	Tasks       int
	Apart       bool          // each on a host of its own
	Free, Whole int           // tasks that fit now, and if nothing else ran, at the best site
	Gathers     bool          // room is kept for it
	Keeps       int           // tasks for which it is
	In          time.Duration // until all is expected to be free; 0: nothing tells
	Exceeds     []GangQuota
}

// GangQuota is a quota that the tasks of a gang exceed whatever else runs.
type GangQuota struct {
	Title     string // of whom it binds
	Running   int    // 0: it is of processors
	MilliCPUs int64
	Needs     int64 // thousandths of processors
}

// Preference is a site at which a job would rather run.
type Preference struct {
	Site  string
	Known bool
	For   time.Duration
}

// Survey is what the registered pilots, and those that sites could start, are to a ready job.
type Survey struct {
	Free     int            // pilots that could run it at once
	Busy     int            // that could when what they run has ended
	Drained  Some[string]   // the jobs for which pilots that could run it drain
	Silent   Some[PilotID]  // that are not heard
	Ending   int            // that take no more jobs
	Broken   Some[string]   // why others take none
	Bound    string         // the host or pilot where its inputs are in caches only
	Avoided  int            // on the host where it failed
	Avoid    string         // that host
	Doubted  Some[string]   // what is known against nodes that could run it
	Pilots   int            // of which something is known
	Failing  map[string]int // by requirement: how many of them do not have it
	Short    Shortage
	Occupied Shortage       // what is not free of those that are busy
	Sites    []SiteStanding // that could start a pilot for it
}

// SiteStanding is what becomes of pilots that a site could start.
type SiteStanding struct {
	Name     string
	Starting int  // pilots that have not registered
	IsFull   bool // it has as many pilots as it may have
	Most     int  // as many
	IsPaused bool
	Pause    time.Duration
	Failures int // pilots in a row that could not work
}

// Turn is where the user of a ready job stands in line, and what limits keep the job.
type Turn struct {
	Pools  []PoolStanding
	Shares []ShareStanding // of the user and the groups above; none: nobody shares
	Place  int             // of the user among those with ready jobs; 0: none
	Users  int             // with ready jobs
	Before Some[string]    // titles of those before
	Ahead  int             // jobs of the same user that go before it
}

// PoolStanding is a limit over several runs, or of one, that keeps a job.
type PoolStanding struct {
	Name              string
	Needs, Most, Used int64
	KeptFor           string // the job for which it is kept; empty: there is too little
}

// ShareStanding is how a share stands that a job counts for.
type ShareStanding struct {
	ShareView
	Title    string
	Held     string               // why no further job is started; empty: it is not held
	Siblings int                  // beside it
	At       map[string]SiteQuota // what it takes at sites for which it has a quota
}

// Unmet is something that a job needs and a pilot does not have.
type Unmet struct {
	Name       string // of the resource or the program
	Unit       Unit
	Needs, Has int64
}

// Unit is in what a need is counted.
type Unit uint8

// The units of needs.
const (
	InThousandths Unit = iota
	InBytes
	InTime
	IsProgram // there or not
)

// Shortage is what the pilots that come closest to running a job lack, for each way of coming close that
// of the closest one.
type Shortage [][]Unmet

// Add takes what one pilot lacks, which is something.
func (s *Shortage) Add(list []Unmet) {
	if len(*s) > 0 && len(list) != len((*s)[0]) {
		if len(list) < len((*s)[0]) {
			*s = Shortage{list}
		}
		return
	}
	for i, known := range *s {
		if slices.EqualFunc(known, list, func(a, b Unmet) bool { return a.Name == b.Name }) {
			if list[0].Has > known[0].Has {
				(*s)[i] = list
			}
			return
		}
	}
	*s = append(*s, list)
}

// Names gives all that is lacking, each once.
func (s Shortage) Names() (names []string) {
	for _, list := range s {
		for i := range list {
			if !slices.Contains(names, list[i].Name) {
				names = append(names, list[i].Name)
			}
		}
	}
	return names
}
