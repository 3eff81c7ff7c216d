package taskqueue

import "time"

// Input is one thing that happened outside. Its types are those of this package.
type Input interface{ isInput() }

// AddFiles makes files known that exist already, as version 0 or, for a file
// known before, as a new version at the tail of its FIFO. One that is known with
// the same identity is that version, under the PFN and with the tag that it has
// now.
type AddFiles struct {
	Run   RunID
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

// SetRun begins a run that has the number dispatch.Core.NextRun, or changes what is said of one
// that was not retired, and has it go on where it was halted or has ended.
type SetRun struct{ Run Run }

// CompleteRun says that no more files and jobs of a run will come. When its jobs have
// come to their ends, the run ends. Of none of its files readers are to come: a run whose
// jobs are not all known is ended by StopRun.
type CompleteRun struct{ Run RunID }

// ReadersKnown says of files of a run that no job that is submitted later reads them.
// Temporary ones are removed when those before are done. It is not durable: the caller
// steps it again after each Load. Files that nobody has named yet are passed over.
type ReadersKnown struct {
	Run  RunID
	LFNs []string
}

// StopRun has nothing more of a run started, and ends it when nothing of it runs any
// more: Drain lets running attempts finish, else they are ended. Other runs go on.
type StopRun struct {
	Run   RunID
	Drain bool
}

// RetireRun forgets a run that has ended, and deletes its records: its jobs and files are
// known no more. Its results stay for later runs; what it had stored besides is removed.
// A run is refused while something that it published is not confirmed.
//
// A lasting server steps it (docs/decisions/0136-lasting-servers.md). A server of one workflow
// begins each run with a store of which records.Fresh has retired all others.
type RetireRun struct {
	Run RunID
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
	Run  RunID
	From uint32 // the number of the first job
	Jobs int    // how many are looked at
}

// ReleaseRun has a run that was retired name no results any more. Those that no other run names
// are kept for as long as a policy says (dispatch.Core.Forgettable).
type ReleaseRun struct {
	Run RunID
	// Results are some of those that it names (dispatch.Core.KeysNamedBy), which alone it names no more; nil: all.
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
	Run   RunID
	Files []ExistingFile
	Jobs  []Job
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
	Run      RunID
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
	Pilot         Resources     // what one pilot of this site has; no processors: what a job needs, as nobody knows
	Tools         []string
	FindsTools    bool          // its pilots look for other programs that jobs name (Answer.LookFor): it may have them
	Most          Resources     // that one pilot may say that it has; an amount of 0, or a thing without one: as it says, at most MaxPilotCPUs
	Lease         time.Duration // the longest that one may ask for; 0: Config.MaxPilotLease
	GroupCache    bool          // its pilots of several users read each other's files on a host, if a hash proves them
	Placement     Placement     // the rule for jobs that have none of their own
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
func (Cancel) isInput()         {}
func (CompleteRun) isInput()    {}
func (ForgetResults) isInput()  {}
func (HangUp) isInput()         {}
func (HoldJobs) isInput()       {}
func (KeepResults) isInput()    {}
func (LookFor) isInput()        {}
func (LoseFiles) isInput()      {}
func (PilotEnded) isInput()     {}
func (PilotSubmitted) isInput() {}
func (Prioritize) isInput()     {}
func (Published) isInput()      {}
func (ReadersKnown) isInput()   {}
func (Refused) isInput()        {}
func (ReleaseRun) isInput()     {}
func (Removed) isInput()        {}
func (RetireRun) isInput()      {}
func (RetryJobs) isInput()      {}
func (SetKept) isInput()        {}
func (SetRun) isInput()         {}
func (SetShares) isInput()      {}
func (SetSite) isInput()        {}
func (Stop) isInput()           {}
func (StopRun) isInput()        {}
func (Submit) isInput()         {}
func (Sync) isInput()           {}
func (Tick) isInput()           {}
