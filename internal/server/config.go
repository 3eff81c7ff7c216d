package server

import (
	"log/slog"
	"time"

	"fairway/internal/batch"
	"fairway/internal/flow/workflow"
	"fairway/internal/server/active"
	"fairway/internal/server/feed"
	"fairway/internal/server/folder"
	"fairway/internal/server/launch"
	"fairway/internal/storage"
	"fairway/internal/taskqueue"
	"fairway/internal/wire"
	"fairway/lib/sched"
)

// Config says what to run and how. Folder must be given, and Workflow unless it is Lasting.
type Config struct {
	// RunConfig is the run of a folder's server. Of a Lasting server it has the Folder alone, where
	// the state is: what is to be run is submitted.
	RunConfig
	ServiceConfig

	// Version is that of the program, which clients are told.
	Version string
	// Space measures the file system of a folder, in bytes: what is free and all. nil: the system is
	// asked.
	Space func(folder string) (free, all int64, err error)
	// Storage is where outputs are stored: a PFN, as publish.ParsePlace gives it. Empty:
	// in the folder of the state.
	Storage string
	// Site is the name and the limits of the pilots that System starts; a zero
	// MaxPilots means one.
	Site taskqueue.Site
	// System makes the batch system that starts pilots for the server at an
	// address (unix:PATH), with the folders of the workflow. Nil: there are pilots
	// at Sites only.
	System func(address string, folders folder.Layout) (batch.System, error)
	// Spooled tells [DryRun] of which attempts pilots of System have kept a success that
	// the next run will be told, from the folder of sandboxes. Nil: of none.
	Spooled func(sandboxes string) []*wire.AttemptRef
	// Sites are those whose pilots reach the server over a network. The server
	// listens there only if there is one.
	Sites []Site
	// Listen is where: HOST:PORT, empty for all interfaces and a port that is free.
	Listen string
	// Web shows the server to browsers; nil: it has no pages.
	Web *Web
	// Notify is a URL or a command that is told when a run ends or is stuck (package notice); empty:
	// nobody is.
	Notify string
	// Job says that the server is a batch job itself; nil where it is none. Sites must
	// not be empty then.
	Job *active.Job
	// Variables are those of the environment that jobs may name (flow.Demand.Variables), with their
	// values, which are told to pilots and kept nowhere.
	Variables map[string][]byte
	// Dispatch holds limits and policies of the TaskQueue.
	Dispatch taskqueue.Config
	// CommitDelay is the least time from the start of a large transaction to that
	// of the next, so that under load more requests share one: DefaultCommitDelay.
	// After a small one it is less. Negative: none.
	CommitDelay time.Duration
	// LeaveTime is how long pilots that are to leave may take before the batch
	// system is told to end them, and again before they are killed:
	// DefaultLeaveTime.
	LeaveTime time.Duration
	// Recording is a file to which all that the cores are told and decide is
	// appended (package recording); empty: none.
	Recording string
	// Sched detects events; nil means sched.Default().
	Sched *sched.Scheduler
	// Log takes what goes wrong without ending the run; nil means slog.Default().
	Log *slog.Logger
}

// RunConfig is what belongs to one run, and not to the server that runs it.
type RunConfig struct {
	// Workflow is what to run, with the values of its parameters.
	Workflow *workflow.Workflow
	// Folder is where the workflow lives: its .fairway/ and results/. It is made if need be.
	Folder string
	// Base is the folder that names in the workflow are relative to, that of its file. Empty: Folder.
	Base string
	// Enumerated is what has been listed of the inputs in Base, so that it is not listed again;
	// nil: nothing. It should be fresh.
	Enumerated *feed.Enumeration
	// Account is to whom the run belongs. A run of a Lasting server gets it with its submission.
	Account taskqueue.Account
	// Scope says which runs of a Lasting server share results (taskqueue.Run). A run gets it with its
	// submission.
	Scope string
	// NoReuse has the run take no result of another run, and where runs share results leave none to
	// them.
	NoReuse bool
	// KeepGoing goes on after a job has failed with what doesn't depend on it.
	// Otherwise no further attempts are started then.
	KeepGoing bool
	// Rerun names steps and jobs that are to run once more, with all that depends on
	// them, although there are results of them.
	Rerun []string
	// Results is where results are published: a PFN, as publish.ParsePlace gives it.
	// Empty: in results/ of Folder.
	Results string
	// KeepResults has published files stay that earlier runs made and this one
	// does not. Otherwise they are removed when the run has succeeded.
	KeepResults bool
	// WaitAnyway has the run wait for a site that says that it could never start a pilot.
	// Otherwise that ends the run.
	WaitAnyway bool
}

// ServiceConfig is what a server for several people and runs has besides.
type ServiceConfig struct {
	// Lasting has the server run what is submitted to it, until it is stopped. There is no
	// Workflow then, Folder is where the state is, and the settings of a run come with it.
	Lasting bool
	// Store is the address of a PostgreSQL that keeps the records of a lasting server, from its
	// first start on; empty: where they were, or else in the folder of the state.
	Store string
	// Standby says that other servers of the state stand by for this one, and has awaited its turn; nil:
	// none do.
	Standby *active.Standby
	// Shares is the file that says how people share a Lasting server (package fairshare), which is
	// read again when it changes. Empty: as the server was told last, or all alike.
	Shares string
	// Rights is the file that says who may ask a Lasting server (package rights). Empty: those who have
	// a token.
	Rights string
	// Check refuses steps and jobs that are submitted and that no pilot of the server could ever run;
	// with waitAnyway only those that one would run otherwise than they ask for. limits bound what all
	// jobs together have of a resource. nil: none is refused.
	Check func(demands []workflow.Demand, limits map[string]int64, waitAnyway bool) error
	// UnusedResults is how many results a lasting server keeps that no run names which is kept, and
	// no group has promised to keep: UnusedResultLimit.
	UnusedResults int
	// CompareInputs is up to which size, in bytes, a lasting server knows inputs by their contents, which
	// it reads once: DefaultCompareInputs.
	CompareInputs int64
}

// Site is a batch system whose pilots reach the server over a network.
type Site struct {
	taskqueue.Site
	// Poll is the least time between two questions for the status; 0: batch.DefaultEvery.
	Poll time.Duration
	// System makes the batch system, with the folders of the workflow. By way it gets
	// what the pilot of a launch is to be started with, before it submits the launch;
	// settings are those of the pilot (pilot.Config).
	System func(folders folder.Layout, way func(name string, settings any) (launch.Way, error)) (batch.System, error)
	// Pilot are the settings of a pilot that a person starts, with a token for the site. Nil: there are
	// none.
	Pilot func(folders folder.Layout) any
	// Outputs is the place at which its pilots store outputs, as publish.ParsePlace gives it. Empty:
	// Config.Storage. Catalog gives what is published its PFN there, by "/" and its name; nil: it gets none.
	Outputs string
	Catalog func(name string) (pfn string, err error)
}

// Outcome is how a run ended.
type Outcome struct {
	Succeeded bool
	// HandedOver says that the run has not ended: it goes on in another server.
	HandedOver bool
	Stopped    bool     // a person ended it before it was done; it can be gone on with
	Problems   []string // at most ProblemLimit and how many more there were, each one line
	Notes      []string // what went another way than the workflow says; at most NoteLimit and how many more, each one line

	seconds float64 // that the server ran
}

func (c Config) withDefaults() Config {
	if c.Site.Name == "" {
		c.Site.Name = LocalSite
	}
	c.Site.MaxPilots = max(c.Site.MaxPilots, 1)
	if c.Dispatch.Ahead == 0 {
		c.Dispatch.Ahead = DefaultAhead
	}
	if c.Dispatch.Sites == (taskqueue.SiteWeights{}) {
		c.Dispatch.Sites = DefaultSiteWeights
	}
	if c.Dispatch.FirstIncarnation == 0 {
		c.Dispatch.FirstIncarnation = firstIncarnation(time.Now())
	}
	if c.CommitDelay == 0 {
		c.CommitDelay = DefaultCommitDelay
	}
	if c.UnusedResults == 0 {
		c.UnusedResults = UnusedResultLimit
	}
	if c.CompareInputs == 0 {
		c.CompareInputs = DefaultCompareInputs
	}
	if c.Space == nil {
		c.Space = spaceOf
	}
	if c.LeaveTime == 0 {
		c.LeaveTime = DefaultLeaveTime
	}
	if c.Sched == nil {
		c.Sched = sched.Default()
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	return c
}

// ToStandBy is what a server needs to stand by.
func (c Config) ToStandBy() active.Config {
	c = c.withDefaults()
	return active.Config{
		Folder: c.Folder, Lasting: c.Lasting, Store: c.Store, Listen: c.Listen, Sched: c.Sched, Log: c.Log,
	}
}

// tellingSlow has the log tell which servers keep an element waiting. A run does not fail since one is away as it
// begins.
func (c *Config) tellingSlow(e storage.Element) storage.Element {
	return storage.TellAway(e, storage.Patience, func(host string, why error) {
		c.Log.Warn(storage.SlowText(host, why, storage.Patience.String()+" at a time"))
	})
}

// DefaultCompareInputs is CompareInputs where it is not given.
const DefaultCompareInputs = 64 << 30

// DefaultRetention is Dispatch.Retention of a lasting server where nothing else is said.
const DefaultRetention = 30 * 24 * time.Hour

// DefaultSiteWeights are Dispatch.Sites where they are not given: a job goes where it is expected to
// end first, and a price is in seconds for the hour of a processor. With one site they mean nothing.
var DefaultSiteWeights = taskqueue.SiteWeights{Data: 1, Queue: 1, Money: 1}

// DefaultAhead is Dispatch.Ahead where it is not given. Jobs of a millisecond
// need that many waiting at a pilot, or it would stand still while reports and
// assignments are on their way; queued ones are recalled when another pilot is
// idle.
const DefaultAhead = 32

// DefaultCommitDelay is CommitDelay where it is not given: long enough that at
// full load a dozen jobs share a commit, short beside what they wait at a pilot.
const DefaultCommitDelay = 8 * time.Millisecond

// DefaultLeaveTime is LeaveTime where it is not given.
const DefaultLeaveTime = 15 * time.Second

// incarnationEpoch and incarnationStep make the first incarnation of a store
// from the clock. A step is shorter than what passes from the begin of a server
// to its first assignment, so the incarnations of a store grow slower than the
// clock, and those of the next one are above them.
var incarnationEpoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

const incarnationStep = time.Second / 64

// firstIncarnation is below 1<<30 and never 0. It begins anew each half year,
// which no pilot outlives without a server.
func firstIncarnation(now time.Time) uint64 {
	steps := max(0, now.Sub(incarnationEpoch)/incarnationStep)
	return 1 + uint64(steps)%(1<<30-1)
}

// LocalSite is the name of the site that is this machine.
const LocalSite = "local"
