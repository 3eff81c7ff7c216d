package taskqueue

import (
	"cmp"
	"time"
)

// Config holds the limits and policies of a TaskQueue. A zero field means its
// default; the zero Config is ready to use.
type Config struct {
	Placement Placement
	// Sites weighs where jobs run, of several sites: not at all.
	Sites SiteWeights

	// FirstIncarnation is the incarnation with which a new store begins: 1. It is
	// to be above those of a store that was in its place before and was lost, as
	// pilots may live that worked for that one: their attempts then belong to an
	// earlier submission. It is below 1<<30.
	FirstIncarnation uint64

	// Retention is how long a result is kept that no run names any more which is kept, unless Shares
	// say otherwise: not at all. Only what Shares say is a promise (Core.Forgettable of dispatch).
	Retention time.Duration

	// Attempts of a job that does not say how many: 3.
	Attempts int
	// Backoff before the second attempt of a job that does not say: 1 s. It
	// doubles with each failure up to MaxBackoff: 5 min.
	Backoff    time.Duration
	MaxBackoff time.Duration
	// MemoryFactor by which a job's memory grows after it ran out of it, where
	// the job does not say: 2. It never grows beyond what some pilot has.
	MemoryFactor float64
	// MaxLosses of pilots under a job that do not count as failures: 5.
	MaxLosses int
	// NodeFailures is how many jobs may fail in a row on a node before it gets no more until it is known whether
	// they go well elsewhere: 4. Negative: nodes are not judged.
	NodeFailures int
	// NodePause is how long such a node gets none before it is tried with one job: 2 min. It doubles
	// with each that fails, up to 1 h.
	NodePause time.Duration
	// MaxRegenerations of one job because its cached outputs went away, while no job that reads them is done: 5.
	// After that its readers are Blocked.
	MaxRegenerations int

	// WaitForData of a job that does not say: 10 s. It bounds how long a ready
	// job is kept for a pilot that holds more of its input, and how long it
	// waits for its preferred site.
	WaitForData time.Duration
	// MaxPassOver is how long a ready job may be passed over by others of
	// higher priority or with more input in the cache: 10 min. After that the
	// first pilot that it fits takes it, or drains for it.
	MaxPassOver time.Duration

	// AheadTime bounds what a pilot holds beyond what is free: 1 s. A job waits at a
	// pilot only if it is expected to start there before that has passed; one that has not
	// started after twice as long is taken back.
	AheadTime time.Duration
	// Ahead is how many times its own resources a pilot may be given in jobs beyond what
	// is free, of those that AheadTime allows: 2. Negative: none.
	Ahead int
	// Silence is how long a pilot may keep to itself what it is to say, be it its next
	// Sync or that it has given a job back: 5 s. After that what it has not started is
	// given to others, and it gets nothing until it is heard.
	Silence time.Duration
	// RunMargin is how much longer than its job says an attempt may run at a pilot that calls before others get the
	// job: 10 min. What it takes to read inputs and store outputs does not count. Negative: for ever.
	RunMargin time.Duration
	// EndSilence is the same when all is to end at once, if it is less: 1 s.
	EndSilence time.Duration
	// Hold is how long a Sync waits for news: 25 s. It is also NextSync.
	Hold time.Duration
	// PilotLease is how long after NextSync a silent pilot is held to be alive that
	// asks for no lease: 60 s. Others get what they ask for, up to MaxPilotLease:
	// 24 h.
	PilotLease    time.Duration
	MaxPilotLease time.Duration
	// ReconnectGrace is how long after Load the known pilots are awaited
	// before any job is assigned: 10 s.
	ReconnectGrace time.Duration
	// StartTimeout is how long a pilot asked for may stay unconfirmed by the
	// batch system before it no longer counts: 5 min.
	StartTimeout time.Duration
	// MaxStartBackoff bounds the pause, doubling from 10 s, between pilots of
	// a site whose pilots fail their environment check: 10 min.
	MaxStartBackoff time.Duration
}

// WithDefaults is the Config with the default of each field that is zero.
func (c Config) WithDefaults() Config {
	c.Attempts = cmp.Or(c.Attempts, 3)
	c.Backoff = cmp.Or(c.Backoff, time.Second)
	c.MaxBackoff = cmp.Or(c.MaxBackoff, 5*time.Minute)
	c.MemoryFactor = cmp.Or(c.MemoryFactor, 2)
	c.MaxLosses = cmp.Or(c.MaxLosses, 5)
	c.NodeFailures = cmp.Or(c.NodeFailures, 4)
	c.NodePause = cmp.Or(c.NodePause, 2*time.Minute)
	c.MaxRegenerations = cmp.Or(c.MaxRegenerations, 5)
	c.WaitForData = cmp.Or(c.WaitForData, 10*time.Second)
	c.MaxPassOver = cmp.Or(c.MaxPassOver, 10*time.Minute)
	c.AheadTime = cmp.Or(c.AheadTime, time.Second)
	c.Ahead = cmp.Or(c.Ahead, 2)
	c.Silence = cmp.Or(c.Silence, 5*time.Second)
	c.RunMargin = cmp.Or(c.RunMargin, 10*time.Minute)
	c.EndSilence = cmp.Or(c.EndSilence, time.Second)
	c.Hold = cmp.Or(c.Hold, 25*time.Second)
	c.PilotLease = cmp.Or(c.PilotLease, time.Minute)
	c.MaxPilotLease = cmp.Or(c.MaxPilotLease, 24*time.Hour)
	c.ReconnectGrace = cmp.Or(c.ReconnectGrace, 10*time.Second)
	c.StartTimeout = cmp.Or(c.StartTimeout, 5*time.Minute)
	c.MaxStartBackoff = cmp.Or(c.MaxStartBackoff, 10*time.Minute)
	c.Ahead = max(c.Ahead, 0)
	return c
}

// SiteWeights say by what it is decided at which site a job runs, where more
// than one is described. The zero value decides nothing: every site starts
// pilots for all that it could run, and each pilot takes what suits its cache.
// With Data and Queue at 1 a job goes where it is expected to end first.
type SiteWeights struct {
	// Data counts the seconds in which the input that is not at the site would
	// come over the network between sites.
	Data float64
	// Queue counts the seconds until the job could start there, and those that
	// it would run.
	Queue float64
	// Money counts what its slots would cost there, where pilots are to be
	// started: so many seconds is one unit of money worth.
	Money float64
}
