// Package experiment reads experiment files: what a simulation assumes of the
// world, what it varies, and why. examples/sim/all-keys.yaml explains every key.
//
// Guarantees:
//
//   - Every key of a file is known, every number has its unit and lies in its
//     range, and every name that a key refers to exists, in the workflow file
//     too. An error names file and line.
//   - A [Plan] holds every combination of the levels of its axes, the last axis
//     changing fastest, each as a complete [Experiment] with its defaults.
//   - [Parse] refuses a reason (because:) for something that is not there.
//   - Nothing is simulated here, and nothing is drawn: a distribution such as
//     [Gauss] draws from the stream that it is given.
package experiment

import (
	"math/rand/v2"
	"strings"
	"time"
)

// Experiment is one point of an experiment file: everything that a run needs
// besides the number of its repetition. examples/sim/all-keys.yaml explains every key.
type Experiment struct {
	Name        string            `yaml:"experiment"`
	About       string            `yaml:"about"`
	Seed        uint64            `yaml:"seed"`
	Repetitions int               `yaml:"repetitions"`
	Because     map[string]string `yaml:"because"` // the reason of each assumption, by its path
	Limit       time.Duration     `yaml:"limit"`   // virtual time after which a run counts as stuck
	Submission  Submission        `yaml:"submission"`
	Workflow    WorkflowSpec      `yaml:"workflow"`
	Sites       []SiteSpec        `yaml:"sites"`
	Storage     []StorageSpec     `yaml:"storage"`
	Network     NetworkSpec       `yaml:"network"`
	Cache       CacheSpec         `yaml:"cache"`
	TaskQueue   TaskQueueSpec     `yaml:"taskqueue"`
	Creation    CreationSpec      `yaml:"creation"`
	Direct      DirectSpec        `yaml:"direct"`
	Faults      FaultSpec         `yaml:"faults"`
	Timeline    bool              `yaml:"timeline"`        // keep the number of running jobs over time
	Accesses    bool              `yaml:"record_accesses"` // keep the sequence in which files are used
}

// Submission is one of the three ways of paper 3, section V.
type Submission string

// Jobs go to pilots that run already, to pilots that the planner of the
// TaskQueue starts, or each for itself to the batch system.
const (
	Running Submission = "running"
	Monitor Submission = "monitor"
	Direct  Submission = "direct"
)

// SiteSpec is a site: worker nodes behind a batch system.
type SiteSpec struct {
	Name     string        `yaml:"name"`
	Nodes    int           `yaml:"nodes"`
	Slots    int           `yaml:"slots"`   // pilots, or jobs submitted directly, that a node runs at once
	Storage  string        `yaml:"storage"` // the storage element that it reaches; default: the first
	Started  int           `yaml:"started"` // pilots that run when the first job comes
	Min      int           `yaml:"min_pilots"`
	Max      int           `yaml:"max_pilots"`
	MinIdle  int           `yaml:"min_idle_pilots"`
	Life     Gauss         `yaml:"life"`         // of a pilot; 0: unlimited
	SaysLife bool          `yaml:"says_life"`    // whether pilots tell the TaskQueue how long they live
	Ask      time.Duration `yaml:"ask"`          // pilots ask this often; 0: they wait for the answer (long poll)
	Speed    float64       `yaml:"speed"`        // of its nodes; 0 means 1
	Behind   bool          `yaml:"store_behind"` // outputs go into the cache, and the next job of the pilot begins, before they are stored
	StagesIn bool          `yaml:"stage_in"`     // jobs read their inputs whole, one after the other, before they compute
	Price    float64       `yaml:"price"`        // of a slot for an hour, in any unit of money
	Expects  time.Duration `yaml:"expects"`      // what the TaskQueue holds its queue to be until pilots have shown it
	Batch    BatchSpec     `yaml:"batch"`
}

// BatchSpec models a batch system.
type BatchSpec struct {
	Delay  Gauss         `yaml:"delay"`  // from submission to the start, if a slot is free
	Poll   time.Duration `yaml:"poll"`   // how often its state is asked for; so late an end is seen
	Limit  int           `yaml:"limit"`  // jobs that it takes into its queue; 0: any number
	Forget Chance        `yaml:"forget"` // that it loses a pilot for ever
	Late   Gauss         `yaml:"late"`   // how long the answer to a submission takes
	Refuse Chance        `yaml:"refuse"` // that it refuses a submission, which is then repeated
	Silent Chance        `yaml:"silent"` // that it does not answer when it is asked for an end
	Lose   Chance        `yaml:"lose"`   // that it forgets a pilot within the first hour of its life, while it runs on
	Double Chance        `yaml:"double"` // that it starts a pilot twice, if it has room
}

// StorageSpec models a storage element (paper 3, table 1).
type StorageSpec struct {
	Name        string  `yaml:"name"`
	Bandwidth   Size    `yaml:"bandwidth"`    // per second, shared fairly; 0: unlimited
	Connection  Size    `yaml:"connection"`   // per second and connection; 0: unlimited
	Latency     Gauss   `yaml:"latency"`      // of each access
	DelayFactor float64 `yaml:"delay_factor"` // time lost for each file read or written, as a part of the job's run time
	DelayOnce   bool    `yaml:"delay_once"`   // the delay is that of all files together that a job reads, not of each
	DelayEach   bool    `yaml:"delay_each"`   // the delay is that of each access, of which reading a file takes workflow.accesses and writing it one
	DelaySpread float64 `yaml:"delay_spread"` // standard deviation of the delay, as a part of its mean
	FailureRate Chance  `yaml:"failure_rate"` // that reading or writing a file fails, and the job with it
	Capacity    Size    `yaml:"capacity"`     // 0: unlimited
	Fills       Gauss   `yaml:"fills"`        // how long until other users take all the room that is left, again and again; zero: never
	FullFor     Gauss   `yaml:"full_for"`     // how long they keep it
}

// Delay draws what one access of a job costs besides the transfer, and besides Latency. Of n
// accesses that read a file, the mean of all together is DelayFactor times the run time
// of the job; with DelayEach that of each one is.
func (s *StorageSpec) Delay(r *rand.Rand, run time.Duration, n int) time.Duration {
	if s.DelayEach {
		n = 1
	}
	mean := float64(run) * s.DelayFactor / float64(n)
	return time.Duration(max(mean+r.NormFloat64()*mean*s.DelaySpread, 0))
}

// NetworkSpec models the way between pilots and TaskQueue, and between nodes.
type NetworkSpec struct {
	Latency   Gauss `yaml:"latency"`   // of a message
	Bandwidth Size  `yaml:"bandwidth"` // of a file from another node's cache, per second and transfer; 0: unlimited
	Remote    Size  `yaml:"remote"`    // of a file from another site's storage, per second and transfer; 0: unlimited

	Patience time.Duration `yaml:"patience"` // how long a pilot waits for an answer after the instant at which the TaskQueue gives one without news, before it tells everything again; 0 means 30 s
}

// CacheSpec says what pilots keep.
type CacheSpec struct {
	Share  Share         `yaml:"share"`
	Size   Size          `yaml:"size"`   // MaxSpace: for each pilot (section IV-C)
	Spare  Size          `yaml:"spare"`  // MinThreshold: kept free for the running job
	Policy string        `yaml:"policy"` // what goes first
	Look   time.Duration `yaml:"look"`   // how long until pilots that share find a new file
	Inputs bool          `yaml:"inputs"` // keep inputs that were read from storage, too

	Prefetch int `yaml:"prefetch"` // files that a pilot fetches ahead at a time, for jobs that wait at it
}

// Share says who sees a pilot's cache.
type Share string

// Nobody keeps anything; a pilot keeps for itself; the pilots of a host, or
// of a site, keep together.
const (
	NoCache     Share = "none"
	PilotCache  Share = "pilot"
	HostCache   Share = "host"
	GlobalCache Share = "global"
)

// TaskQueueSpec sets what experiments vary of the TaskQueue.
type TaskQueueSpec struct {
	WaitForData      time.Duration `yaml:"wait_for_data" negative:"never"` // 0: the product's default; negative: never
	Placement        string        `yaml:"placement"`                      // by-gain (the product's default), by-bytes or by-files (paper 3)
	Ahead            int           `yaml:"ahead" negative:"none"`          // jobs for a pilot beyond what is free, as a multiple; 0: the product's default; negative: none
	Hold             time.Duration `yaml:"hold"`                           // how long a pilot waits for news; 0: the product's default
	Lease            time.Duration `yaml:"lease"`                          // of silence, after which a pilot counts as lost; 0 means twice Hold, or the longest SiteSpec.Ask, and NetworkSpec.Patience
	MaxLosses        int           `yaml:"max_losses"`                     // of pilots under a job; 0: the product's default
	MaxRegenerations int           `yaml:"max_regenerations"`              // of outputs that were in caches only; 0: the product's default
	PassOver         time.Duration `yaml:"max_pass_over"`                  // 0: the product's default
	Attempts         int           `yaml:"attempts"`                       // of a job; 0: the product's default
	Backoff          time.Duration `yaml:"backoff"`                        // before a job is submitted again; 0: the product's default
	Sites            WeightsSpec   `yaml:"sites"`                          // zero: sites are not weighed
}

// WeightsSpec is taskqueue.SiteWeights.
type WeightsSpec struct {
	Data  float64 `yaml:"data"`
	Queue float64 `yaml:"queue"`
	Money float64 `yaml:"money"`
}

// CreationSpec says when jobs reach the TaskQueue: all at the start (as soon
// as their names are known), or when what they read exists, noticed every Poll.
type CreationSpec struct {
	WhenData bool          `yaml:"when_data"`
	Poll     time.Duration `yaml:"poll"`
	Lead     time.Duration `yaml:"lead"` // from the start of the pilots that are there already to the first job; 0 means 1 s or twice the longest SiteSpec.Ask, so that they have registered
}

// DirectSpec models submission without TaskQueue.
type DirectSpec struct {
	Broker Gauss         `yaml:"broker"` // finding a site and handing the job to its batch system
	Notice Gauss         `yaml:"notice"` // until it is known that a job has ended
	Poll   time.Duration `yaml:"poll"`   // how often ended jobs are looked for
}

// FaultSpec is what goes wrong.
type FaultSpec struct {
	Lost          Chance        `yaml:"lost"`           // a message does not arrive
	Repeated      Chance        `yaml:"repeated"`       // a message arrives twice
	LostUntil     time.Duration `yaml:"lost_until"`     // no message is lost or repeated after that; 0: no end
	PilotDies     Gauss         `yaml:"pilot_dies"`     // after so long; zero: never
	ServerDies    Gauss         `yaml:"server_dies"`    // so long after its start; zero: never
	ServerAway    Gauss         `yaml:"server_away"`    // how long it stays away
	WriteFails    Chance        `yaml:"write_fails"`    // the records of a step cannot be made durable
	WriteFailures int           `yaml:"write_failures"` // at most; 0: no limit
	Crashes       int           `yaml:"crashes"`        // of the server at most; 0: no limit
	PilotDeaths   int           `yaml:"pilot_deaths"`   // at most; 0: no limit
	Damage        Gauss         `yaml:"damage"`         // so long until a stored file is lost, cut or changed, or a cached one changed; zero: never
	Damages       int           `yaml:"damages"`        // at most; 0: no limit
	CutOff        Gauss         `yaml:"cut_off"`        // so long until the line of a host is cut; zero: never
	CutFor        Gauss         `yaml:"cut_for"`        // how long it stays so
	Freezes       Gauss         `yaml:"freezes"`        // so long until a host, a pilot or the server stands still; zero: never
	FrozenFor     Gauss         `yaml:"frozen_for"`     // how long it does
	Outages       int           `yaml:"outages"`        // cuts and freezes at most; 0: no limit
}

// Defaults fills in what a file may leave out.
func (e *Experiment) Defaults() {
	setDefault(&e.Repetitions, 1)
	setDefault(&e.Limit, 60*24*time.Hour)
	setDefault(&e.Submission, Running)
	setDefault(&e.Workflow.Accesses, 1)
	if strings.HasPrefix(e.Workflow.Pattern, "W") {
		setDefault(&e.Workflow.Jobs, 80)
	}
	setDefault(&e.Workflow.Scale, 1)
	setDefault(&e.Workflow.SizeScale, 1)
	setDefault(&e.Workflow.RoundTo, 10*time.Minute)
	e.Workflow.Tier0.defaults()
	setDefault(&e.Cache.Share, PilotCache)
	setDefault(&e.Cache.Policy, "next-use")
	setDefault(&e.Network.Patience, 30*time.Second)
	for i := range e.Sites {
		s := &e.Sites[i]
		setDefault(&s.Slots, 1)
		setDefault(&s.Speed, 1)
		setDefault(&s.Max, s.Nodes*s.Slots)
		if len(e.Storage) > 0 {
			setDefault(&s.Storage, e.Storage[0].Name)
		}
	}
}

func setDefault[T comparable](p *T, value T) {
	var zero T
	if *p == zero {
		*p = value
	}
}
