package dispatch

import (
	"cmp"
	"strings"
	"time"

	"fairway/internal/dispatch/delay"
	"fairway/internal/dispatch/estimate"
	"fairway/internal/dispatch/pilotplan"
	"fairway/internal/dispatch/room"
	"fairway/internal/taskqueue"
)

// What is expected while nothing tells.
const (
	assumedRun = 10 * time.Minute // of a job that does not say how long it needs
	assumedFar = 1.0 / 10e6       // seconds for each byte between sites
)

// transfers is what attempts tell, whatever their step. It is not durable.
type transfers struct {
	near, far estimate.Mean // seconds for each byte from the storage of the pilot's own site, and from that of others
	run       estimate.Mean // seconds of an attempt
}

// outlook is what is expected of a site. It is not durable.
type outlook struct {
	waits   estimate.Mean  // seconds from the submission of a pilot to its registration
	slow    estimate.Mean  // time of attempts there, as a part of what is usual in their steps
	reads   estimate.Reads // of its pilots
	age     time.Duration  // of its pilots that wait in the batch system, in the mean, when it was last looked at
	awaited int            // jobs that are kept for the site
	rooms   pilotplan.Rooms
}

// choosesSites reports whether sites are weighed at all.
func (fl *fleet) choosesSites() bool {
	return fl.config.Sites != taskqueue.SiteWeights{} && len(fl.monitor.sites) > 1
}

// stores reports whether the storage element of the site has the version.
func (s *site) stores(v *version) bool {
	return s.Storage != "" && strings.HasPrefix(v.pfn, s.Storage)
}

// farBytes is how much of the job's input is neither in the storage of the site
// nor in reach of the pilot, which may be nil.
func (s *site) farBytes(j *job, p *pilot) int64 {
	var sum int64
	for i := range j.requests {
		if v := j.requests[i].read; v != nil && !s.stores(v) && (p == nil || !p.reaches(v)) {
			sum += v.size
		}
	}
	return sum
}

// score is the weighed time of the job at the site, in seconds, if it starts
// there in so long and so many bytes are far. The least is best.
func (fl *fleet) score(j *job, s *site, far int64, start time.Duration) float64 {
	w := &fl.config.Sites
	return w.Data*fl.transfers.detour(far) + w.Queue*(start+fl.runAt(j, s)).Seconds()
}

// charge is the weighed price of the job at the site, in seconds. It counts where
// pilots are started; one that is there is paid for whether it works or not.
func (fl *fleet) charge(j *job, s *site) float64 {
	slots := float64(max(j.class.key.milliCPUs, room.Slot)) / room.Slot
	return fl.config.Sites.Money * s.Price * slots * fl.runAt(j, s).Hours()
}

// detour is how many seconds longer it takes to read so many bytes from another
// site.
func (t *transfers) detour(far int64) float64 {
	each := assumedFar
	if t.far.IsKnown() {
		each = max(0, t.far.Value()-t.near.Value())
	}
	return float64(far) * each
}

// runAt is how long the job is expected to run at the site.
func (fl *fleet) runAt(j *job, s *site) time.Duration {
	run := fl.pace.Of(j.step)
	if run == 0 {
		run = j.class.key.time
	}
	if run == 0 {
		run = fl.usualRun()
	}
	if slow := s.outlook.slow.Value(); slow > 0 {
		run = estimate.Seconds(run.Seconds() * slow)
	}
	return run
}

// learn takes what an attempt that succeeded tells of its step and of the
// pilot's site.
func (fl *fleet) learn(p *pilot, j *job, u *taskqueue.Usage) {
	took := u.StageOutEnd.Sub(u.StageInStart)
	if p != nil {
		p.launch.site.outlook.reads.Learn(u)
		if fl.choosesSites() { // it is compared with what was usual in the step before
			fl.learnOfSite(p.launch.site, j, u, took)
		}
	}
	fl.pace.reads.Learn(u)
	if took > 0 {
		j.class.staging.Add(max(0, (took-u.End.Sub(u.Start)).Seconds()), 1)
		fl.pace.Ended(j.step, took)
	}
}

func (fl *fleet) learnOfSite(s *site, j *job, u *taskqueue.Usage, took time.Duration) {
	if took > 0 {
		fl.transfers.run.Add(took.Seconds(), 1)
		if usual := fl.pace.Of(j.step); usual > 0 {
			s.outlook.slow.Add(took.Seconds()/usual.Seconds(), 1)
		}
	}
	in := u.Start.Sub(u.StageInStart).Seconds()
	if in < 0 || u.BytesStaged == 0 {
		return
	}
	switch all := j.inputBytes(); s.farBytes(j, nil) {
	case 0:
		fl.transfers.near.Add(in, float64(u.BytesStaged))
	case all:
		fl.transfers.far.Add(in, float64(u.BytesStaged))
	}
}

func (j *job) inputBytes() int64 {
	var sum int64
	for v := range j.inputs {
		sum += v.size
	}
	return sum
}

// countWait is for a pilot that has registered.
func (s *site) countWait(now instant, l *launch) {
	if l.submitted != 0 && l.standing == inactive {
		s.outlook.waits.Add(time.Duration(now-l.submitted).Seconds(), 1)
	}
}

// stillWaits is how much longer those are expected to wait that wait. Who is late
// already is expected to need as long again as it is late.
func (s *site) stillWaits() time.Duration { return (s.usualWait() - s.outlook.age).Abs() }

func (s *site) usualWait() time.Duration {
	if s.outlook.waits.IsKnown() {
		return estimate.Seconds(s.outlook.waits.Value())
	}
	return s.QueueWait
}

// keepForSite reports whether the job, which the pilot could start, is rather
// kept for another site, and makes a note of it.
func (pl *placement) keepForSite(j *job, p *pilot) bool {
	s, patience := pl.betterSite(j, p)
	if s == nil {
		return false
	}
	pl.endDelay(j)
	s.outlook.awaited++
	pl.addDelay(j, delayed{site: s, until: pl.now.After(patience)})
	return true
}

// betterSite returns a site at which the job is expected to do better than with
// the pilot, although it has to wait for it, and for how much longer it may do
// so; nil if there is none. It never waits in all for longer than running there
// is expected to save, nor than MaxPassOver.
func (pl *placement) betterSite(j *job, p *pilot) (*site, time.Duration) {
	if k := &j.class.key; !pl.fleet.choosesSites() || k.host != "" || k.pilot != "" {
		return nil, 0
	}
	waited := time.Duration(pl.now - j.readySince)
	here := pl.scoreWith(j, p)
	best, least, patience := (*site)(nil), here, time.Duration(0)
	for _, s := range pl.fleet.monitor.sites {
		if s == p.launch.site || !pl.fleet.serves(s, j.class) {
			continue
		}
		far := s.farBytes(j, nil)
		limit := pl.worth(here - pl.fleet.score(j, s, far, 0))
		free, ok := pl.slotIn(j, s)
		if !ok || waited+free >= limit {
			continue
		}
		if x := pl.fleet.score(j, s, far, free); x < least {
			best, least, patience = s, x, limit-waited
		}
	}
	return best, patience
}

// scoreWith is the score of the job at the pilot: now, or, where it would be
// queued there, after a run.
func (pl *placement) scoreWith(j *job, p *pilot) float64 {
	s, start := p.launch.site, time.Duration(0)
	if !p.room.Fits(&j.class.takes, 1) {
		start = pl.fleet.runAt(j, s)
	}
	return pl.fleet.score(j, s, s.farBytes(j, p), start)
}

// worth is how long a job may wait to save so much.
func (pl *placement) worth(gain float64) time.Duration {
	limit := pl.config.MaxPassOver
	if gain < delay.MinGain.Seconds() {
		return 0
	}
	if w := pl.config.Sites.Queue; w > 0 {
		limit = min(limit, estimate.Seconds(min(gain/w, limit.Seconds())))
	}
	return limit
}

// slotIn is when the site is expected to have room for the job, after those that
// are kept for it already. It is not known where no pilot is on its way.
func (pl *placement) slotIn(j *job, s *site) (time.Duration, bool) {
	turn := pl.fleet.runAt(j, s)
	before := time.Duration(s.outlook.awaited)
	if k := pl.delayed.jobs[j.row]; k.site == s {
		before--
	}
	switch here, coming := s.pilots[idle]+s.pilots[busy], s.inactive(); {
	case s.pilots[idle] > 0:
		return turn * before / time.Duration(here), true
	case here > 0:
		return turn * (before + 1) / time.Duration(here), true
	case coming > 0:
		return s.stillWaits() + turn*before/time.Duration(coming), true
	}
	return 0, false
}

// serves reports whether pilots of the site may be given jobs of the class.
func (fl *fleet) serves(s *site, cl *class) bool {
	k := &cl.key
	if k.site != "" && k.site != s.Name && k.wait > 0 && fl.monitor.site(k.site) != nil {
		return false // its own site's
	}
	return len(s.lacks(cl)) == 0 && s.holds(cl)
}

// holds reports whether the pilots that the site may have could run all tasks of a job of the class
// together, as far as it is known what they have.
func (s *site) holds(cl *class) bool {
	return !cl.gang() || s.Pilot.MilliCPUs == 0 || s.MaxPilots*s.jobsPerPilot(cl) >= cl.tasks()
}

// readTime is how long the pilot is expected to read what it lacks of the job's input, as
// reads at its site took, or, where there were none, anywhere: from other pilots what these
// may pass on, the rest from storage. 0 while nothing tells.
func (fl *fleet) readTime(p *pilot, j *job) time.Duration {
	here, all := &p.launch.site.outlook.reads, &fl.pace.reads
	storage := cmp.Or(here.Storage.Value(), all.Storage.Value())
	pilots := cmp.Or(here.Pilots.Value(), all.Pilots.Value(), storage)
	var sum float64
	for i := range j.requests {
		v := j.requests[i].read
		switch {
		case v == nil || j.requests[i].streams() || p.reaches(v):
		case fl.passedOn(v, p, false):
			sum += float64(v.size) * pilots
		default:
			sum += float64(v.size) * storage
		}
	}
	return estimate.Seconds(sum)
}

// pace is how long attempts take, and how long it takes to read files: anywhere, whatever the site.
type pace struct {
	reads estimate.Reads
	estimate.Runs[*step, stepName]
}

// stepName is what the steps of one workflow are called that somebody runs again and again.
type stepName struct {
	account   taskqueue.Account
	run, step string
}

// Names is what the step and those like it in other runs are called.
func (s *step) Names() stepName { return stepName{s.run.Account, s.run.Name, s.Step} }

// expectedRun is how long an attempt of the job is expected to take: as those of its step
// took, else as it says, else as all took.
func (fl *fleet) expectedRun(j *job) time.Duration {
	if run := fl.pace.Of(j.step); run > 0 {
		return run
	}
	return cmp.Or(j.class.key.time, estimate.Seconds(fl.pace.All.Value()), assumedRun)
}
