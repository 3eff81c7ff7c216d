package dispatch

import (
	"cmp"
	"strings"
	"time"

	"fairway/internal/taskqueue"
)

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

// What is expected while nothing tells.
const (
	assumedRun = 10 * time.Minute // of a job that does not say how long it needs
	assumedFar = 1.0 / 10e6       // seconds for each byte between sites
)

// transfers is what attempts tell, whatever their step. It is not durable.
type transfers struct {
	near, far average // seconds for each byte from the storage of the pilot's own site, and from that of others
	run       average // seconds of an attempt
}

// outlook is what is expected of a site. It is not durable.
type outlook struct {
	waits   average       // seconds from the submission of a pilot to its registration
	slow    average       // time of attempts there, as a part of what is usual in their steps
	reads   reads         // of its pilots
	age     time.Duration // of its pilots that wait in the batch system, in the mean, when it was last looked at
	awaited int           // jobs that are kept for the site
	line    line
}

// choosesSites reports whether sites are weighed at all.
func (fl *fleet) choosesSites() bool {
	return fl.config.Sites != SiteWeights{} && len(fl.monitor.sites) > 1
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
	slots := float64(max(j.class.key.milliCPUs, minSlot)) / minSlot
	return fl.config.Sites.Money * s.Price * slots * fl.runAt(j, s).Hours()
}

// detour is how many seconds longer it takes to read so many bytes from another
// site.
func (t *transfers) detour(far int64) float64 {
	each := assumedFar
	if t.far.weight > 0 {
		each = max(0, t.far.mean()-t.near.mean())
	}
	return float64(far) * each
}

// runAt is how long the job is expected to run at the site.
func (fl *fleet) runAt(j *job, s *site) time.Duration {
	run := fl.pace.runOf(j)
	if run == 0 {
		run = j.class.key.time
	}
	if run == 0 {
		run = fl.usualRun()
	}
	if slow := s.outlook.slow.mean(); slow > 0 {
		run = seconds(run.Seconds() * slow)
	}
	return run
}

// learn takes what an attempt that succeeded tells of its step and of the
// pilot's site.
func (fl *fleet) learn(p *pilot, j *job, u *taskqueue.Usage) {
	took := u.StageOutEnd.Sub(u.StageInStart)
	if p != nil {
		p.launch.site.outlook.reads.learn(u)
		if fl.choosesSites() { // it is compared with what was usual in the step before
			fl.learnOfSite(p.launch.site, j, u, took)
		}
	}
	fl.pace.reads.learn(u)
	if took > 0 {
		j.class.staging.add(max(0, (took-u.End.Sub(u.Start)).Seconds()), 1)
		fl.pace.ended(j.step, took)
	}
}

func (fl *fleet) learnOfSite(s *site, j *job, u *taskqueue.Usage, took time.Duration) {
	if took > 0 {
		fl.transfers.run.add(took.Seconds(), 1)
		if usual := fl.pace.runOf(j); usual > 0 {
			s.outlook.slow.add(took.Seconds()/usual.Seconds(), 1)
		}
	}
	in := u.Start.Sub(u.StageInStart).Seconds()
	if in < 0 || u.BytesStaged == 0 {
		return
	}
	switch all := j.inputBytes(); s.farBytes(j, nil) {
	case 0:
		fl.transfers.near.add(in, float64(u.BytesStaged))
	case all:
		fl.transfers.far.add(in, float64(u.BytesStaged))
	}
}

func (j *job) inputBytes() int64 {
	var sum int64
	for i := range j.requests {
		if v := j.requests[i].read; v != nil {
			sum += v.size
		}
	}
	return sum
}

// waited is for a pilot that has registered.
func (s *site) waited(now instant, l *launch) {
	if l.submitted != 0 && l.standing == inactive {
		s.outlook.waits.add(time.Duration(now-l.submitted).Seconds(), 1)
	}
}

// stillWaits is how much longer those are expected to wait that wait. Who is late
// already is expected to need as long again as it is late.
func (s *site) stillWaits() time.Duration { return (s.usualWait() - s.outlook.age).Abs() }

func (s *site) usualWait() time.Duration {
	if s.outlook.waits.weight > 0 {
		return seconds(s.outlook.waits.mean())
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
	pl.unkeep(j)
	s.outlook.awaited++
	pl.addKept(j, keptFor{site: s, until: pl.now.After(patience)})
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
	if !p.hasRoom(j.class, 1) {
		start = pl.fleet.runAt(j, s)
	}
	return pl.fleet.score(j, s, s.farBytes(j, p), start)
}

// worth is how long a job may wait to save so much.
func (pl *placement) worth(gain float64) time.Duration {
	limit := pl.config.MaxPassOver
	if gain < minGain.Seconds() {
		return 0
	}
	if w := pl.config.Sites.Queue; w > 0 {
		limit = min(limit, seconds(min(gain/w, limit.Seconds())))
	}
	return limit
}

// slotIn is when the site is expected to have room for the job, after those that
// are kept for it already. It is not known where no pilot is on its way.
func (pl *placement) slotIn(j *job, s *site) (time.Duration, bool) {
	turn := pl.fleet.runAt(j, s)
	before := time.Duration(s.outlook.awaited)
	if k := pl.kept.jobs[j.row]; k.site == s {
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

// reads tell how long bytes of input take to come, by where from: seconds for each.
type reads struct {
	storage average
	pilots  average // of other hosts, from their caches
}

// learn takes what an attempt took that read its input from one kind of place.
func (r *reads) learn(u *taskqueue.Usage) {
	in := u.Start.Sub(u.StageInStart).Seconds()
	switch {
	case in < 0:
	case u.BytesStaged > 0 && u.BytesRemote == 0:
		r.storage.add(in, float64(u.BytesStaged))
	case u.BytesRemote > 0 && u.BytesStaged == 0:
		r.pilots.add(in, float64(u.BytesRemote))
	}
}

// readTime is how long the pilot is expected to read what it lacks of the job's input, as
// reads at its site took, or, where there were none, anywhere: from other pilots what these
// may pass on, the rest from storage. 0 while nothing tells.
func (fl *fleet) readTime(p *pilot, j *job) time.Duration {
	here, all := &p.launch.site.outlook.reads, &fl.pace.reads
	storage := cmp.Or(here.storage.mean(), all.storage.mean())
	pilots := cmp.Or(here.pilots.mean(), all.pilots.mean(), storage)
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
	return seconds(sum)
}

// pace is what the attempts that succeeded tell of those to come. It is not
// durable: after Load nothing is expected until some have ended.
type pace struct {
	reads reads
	runs  map[*step]*runTimes
	alike map[stepName]*average // at most maxAlike
	all   average               // seconds of an attempt, whatever its step
}

// stepName is what the steps of one workflow are called that somebody runs again and again.
type stepName struct {
	account   taskqueue.Account
	run, step string
}

// maxAlike bounds the names of steps of which it is known how long their attempts took.
const maxAlike = 10_000

func (s *step) stepName() stepName { return stepName{s.run.Account, s.run.Name, s.Step} }

// ended takes how long an attempt of a step took that succeeded.
func (e *pace) ended(s *step, took time.Duration) {
	if e.runs[s] == nil {
		e.runs[s] = &runTimes{}
	}
	name := s.stepName()
	if e.alike[name] == nil {
		if len(e.alike) >= maxAlike {
			clear(e.alike)
		}
		e.alike[name] = &average{}
	}
	e.runs[s].add(took.Seconds())
	e.alike[name].add(took.Seconds(), 1)
	e.all.add(took.Seconds(), 1)
}

// average is a mean in which what came n terms later counts (1-1/averaged)^n
// times as much.
type average struct{ sum, weight float64 }

// averaged is about how many of the last terms an average is of.
const averaged = 32

func (a *average) add(sum, weight float64) {
	a.sum += sum - a.sum/averaged
	a.weight += weight - a.weight/averaged
}

// mean is 0 while there is nothing to know it from.
func (a *average) mean() float64 {
	if a == nil || a.weight == 0 {
		return 0
	}
	return a.sum / a.weight
}

// runOf is how long an attempt of the job's step is expected to occupy its
// pilot, as others of it did, or those of this step in other runs of the workflow; 0 if nothing tells.
func (e *pace) runOf(j *job) time.Duration {
	if r := e.runs[j.step]; r != nil {
		return seconds(r.time.mean())
	}
	return seconds(e.alike[j.step.stepName()].mean())
}

// expectedRun is how long an attempt of the job is expected to take: as those of its step
// took, else as it says, else as all took.
func (fl *fleet) expectedRun(j *job) time.Duration {
	if run := fl.pace.runOf(j); run > 0 {
		return run
	}
	return cmp.Or(j.class.key.time, seconds(fl.pace.all.mean()), assumedRun)
}

// restOf is how much longer an attempt of the job's step is expected to occupy its pilot, after so
// long; false if nothing tells.
func (e *pace) restOf(j *job, age time.Duration) (time.Duration, bool) {
	r := e.runs[j.step]
	if r == nil {
		return 0, false
	}
	return seconds(r.rest(age.Seconds())), true
}

// runTimes are the seconds that attempts of a step took.
type runTimes struct{ time, square average }

func (r *runTimes) add(took float64) {
	r.time.add(took, 1)
	r.square.add(took*took, 1)
}

// rest is how many seconds more one is expected to take that has taken so many: what is left of
// the mean where all take the same, the whole mean again where times are so spread (exponentially)
// that the past tells nothing, and in between by how far they are spread. One that has taken
// longer than the mean is expected to need at least as long again as it is late.
func (r *runTimes) rest(age float64) float64 {
	mean := r.time.mean()
	spread := min(1, max(0, r.square.mean()/(mean*mean)-1)) // the variance, as a part of the mean squared
	return max((1-spread)*max(0, mean-age)+spread*mean, age-mean)
}

// longest is the longest time that is expected of anything: as an instant it can be told from now on.
const longest = 1 << 62

// seconds is so long, and no longer than longest: pilots tell what is expected.
func seconds(s float64) time.Duration { return time.Duration(min(s*float64(time.Second), longest)) }
