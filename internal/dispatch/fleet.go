package dispatch

import (
	"maps"
	"slices"
	"time"

	"fairway/internal/dispatch/copies"
	"fairway/internal/dispatch/estimate"
	"fairway/internal/dispatch/health"
	"fairway/internal/dispatch/records"
	"fairway/internal/dispatch/room"
	"fairway/internal/taskqueue"
)

// fleet is what works for the TaskQueue: pilots on their hosts with the attempts
// that they were given, and the sites that start pilots.
//
// Invariants:
//   - An attempt is in attempts, in the list of its pilot and in that of its job,
//     or in none of them; what is in use in pilot.room is the sum of what its attempts need.
//   - A pilot is in parked exactly while its Sync is held, it may be given jobs,
//     has a free processor, and drains for no job.
//   - Each launch counts once at its site, under what its pilot is.
//
// Attempts are not durable: after a restart they are what full Syncs name.
type fleet struct {
	*transition
	journal *journal
	shares  *shares
	jobs    *jobs
	files   *files

	// Registered pilots, from their first Sync until they leave or are silent for
	// too long, and what they were given.
	pilots   map[taskqueue.PilotID]*pilot
	attempts map[taskqueue.AttemptID]*attempt // that have not ended
	counts   fleetCounts                      // sums
	gangs    map[*job]*gang                   // of which members have been given out
	// recordedGangs are jobs of whose gangs an earlier incarnation has recorded something, until pilots
	// have told what they have of them.
	recordedGangs []*job
	hosts         map[string]*host // with a registered pilot
	shapes        []*shape         // of the registered pilots, in no order
	shapeOf       map[classKey]*shape
	parked        []*pilot      // could start a job at once
	early         earlyAttempts // that others could still have
	numbers       fleetNumbers  // of attempts and answers

	// How far the run is.
	stop  stopping
	grace grace

	// What is known against nodes.
	nodes nodes

	// Sites and launches, and how long things take; see estimates.
	monitor   monitor
	pace      pace
	transfers transfers

	// Which pilots get files from which.
	sources sources
}

// fleetCounts are sums over all pilots and attempts.
type fleetCounts struct {
	moves   uint64 // counts attempts that began or ended
	slots   int    // of all registered pilots
	others  int64  // bytes that others of all pilots take
	between int    // pilots that run nothing and are between two Syncs
	recalls int    // attempts being recalled
}

// earlyAttempts are attempts that their pilots have before they can begin there.
type earlyAttempts struct {
	ahead   []*attempt              // waiting at pilots (mayWait)
	gone    int                     // of them have begun or ended
	staging map[*version][]*attempt // whose input may be read still, by attempt.lacks; no list is empty
}

// fleetNumbers are numbers that are given once.
type fleetNumbers struct {
	lastAttempt uint64 // lower half of the number given last
	before      uint64 // lastAttempt when the transition began
	lastAnswer  uint64 // the same of answers
}

func newFleet(s *transition, jn *journal, sh *shares, js *jobs, fs *files) fleet {
	return fleet{
		transition: s, journal: jn, shares: sh, jobs: js, files: fs,
		nodes:    nodes{Book: health.NewBook[*job, *attempt](s.config.NodeFailures, s.config.NodePause)},
		pilots:   make(map[taskqueue.PilotID]*pilot),
		attempts: make(map[taskqueue.AttemptID]*attempt), gangs: make(map[*job]*gang),
		early: earlyAttempts{staging: make(map[*version][]*attempt)}, hosts: make(map[string]*host),
		shapeOf: make(map[classKey]*shape),
		monitor: monitor{byName: make(map[string]*site), launches: make(map[string]*launch)},
		sources: sources{arriving: make(map[*version][]*arrival)},
		pace:    pace{Runs: estimate.NewRuns[*step, stepName]()},
	}
}

// stopping is how far an orderly end has got. It never goes back.
type stopping uint8

const (
	running stopping = iota
	draining
	stopped
)

// grace is the time after Load in which known pilots may report what they run
// before anything is assigned. It begins with the first transition, and is over when
// awaited is empty or its timer fires; then it stays over.
type grace struct {
	begun   bool
	over    bool
	awaited map[taskqueue.PilotID]string   // those that have not reported, with their launches
	byName  map[string][]taskqueue.PilotID // those of each launch, as launchName calls it
}

// pilot is a registered pilot, as far as its syncs have told. It lives from its
// first Sync until it leaves, is silent for too long, or its batch system has
// ended it; then left is set, for those that still refer to it in this transition.
type pilot struct {
	// Who it is. info, expires, life, shape and host change together, when it describes itself.
	id      taskqueue.PilotID
	info    taskqueue.PilotInfo
	expires instant       // as info says, and no later than by its site; 0: never
	endsBy  instant       // when its site ends it at the latest, from when it registered; 0: never
	life    time.Duration // until then, the most that was ever left of it
	shape   *shape
	member  int  // index among the pilots of the shape
	counted bool // in hosts of the shape
	host    *host
	launch  *launch

	talk     conversation // the exchange of messages
	lease    pilotLease   // how long it may keep silent
	seat     seat         // how it stands in placement
	copies   cacheView    // its cache
	exchange fileExchange // with caches of other hosts
	record   trackRecord  // what it has got done

	// What it was given; in use in room is the sum of what attempts need.
	attempts []*attempt // in the order of their assignment
	ending   []ending   // unknown attempts that it named, until it has been told to end them
	room     room.Room
	checkAt  instant // when those that wait there are to be looked at; 0: never

	// What it waits for, as it has told last.
	waiting []taskqueue.WaitingInput
	away    []taskqueue.AwayServer

	left        bool // no longer registered
	toldToLeave bool
	unneeded    bool // it is to leave, as it was idle for its site's IdleTime
}

// conversation is where the exchange of messages with a pilot stands. A Sync with changes counts
// only if it builds on base or a later answer; what an answer said is repeated until acked says
// that it was carried out.
type conversation struct {
	seq          uint64 // of the newest Sync
	heldSeq      uint64 // Seq of the parked Sync, 0 if none
	heldSince    instant
	synced       bool   // its whole state is known
	base         uint64 // the first answer since it was registered; changes must build on it
	drains       bool   // it takes no more jobs
	answerDue    bool   // something is to be said to it
	more         bool   // the last answer left out assignments, for its size
	listedAnswer bool   // in worklists.answers
	acked        uint64 // the highest LastAnswer
	needFull     bool   // its whole state is to be asked for
	polls        bool   // its last Sync was not to be held
	lookedFor    uint64 // the number of the programs that it was last known to have looked for
}

// seat is what placement knows of a pilot, and for which jobs that is kept.
type seat struct {
	reserved  *job       // nothing else is assigned until this fits
	gathering *gathering // for which room is kept here; nil: none is
	next      []*job     // ready jobs whose inputs it fetches
	taking    *attempt   // of another pilot, asked back for this one

	askedInVain uint64 // value of placement.offers when it last asked in vain, plus 1
	parked      int    // index in fleet.parked plus 1
	between     bool   // counted in fleet.between
	listedAsker bool   // in worklists.askers
	awaited     int    // jobs that are kept for it
}

// cacheView is what is known of the cache of a pilot: cached and versions have the same versions,
// and hot lists some of them. Files change these, the placement cools what has no ready readers.
type cacheView struct {
	cached   map[*version]holding
	other    copies.Others
	versions []*version // those of cached, in an order of their own
	hot      []*version // that have ready readers, and some that had
	telling  *telling   // while it tells all of its cache; nil: what is known of that is all
	hints    hints
}

// fileExchange is what comes to a pilot and from it, where it shares its cache beyond its host.
type fileExchange struct {
	arriving []*arrival
	sending  []*arrival
	cutFrom  []string // hosts that got nothing from it, at most maxCut
}

// trackRecord is what a pilot has got done, and where it did not do what it said.
type trackRecord struct {
	delivered  int                   // attempts that it has ended
	worksSince instant               // it has had some since then, or since it ended the last
	spacing    estimate.Mean         // seconds from one that a slot of it has ended to the next
	refused    bool                  // what it said was refused, and it has not left yet
	overran    []taskqueue.AttemptID // were given up, as it did not end them in time
	withholds  bool                  // it did not give back what it was asked for, or not begin what it had room for
}

// pilotLease is when a pilot is to be heard again, and when it counts as lost.
type pilotLease struct {
	due         instant // of its next Sync, while none is held
	silent      instant // when that was, if it did not come in time; else 0
	silentAfter instant // from then on it counts as lost
	armed       instant // when its timer fires
}

// holding is a version in a pilot's cache.
type holding struct {
	at     int32 // index in the pilot's list
	holder int32 // index of the pilot among the version's holders
	hot    int32 // index in hot plus 1; 0 if it is not listed there
	other  bool  // the pilot has told another hash of it than is known
}

// telling is what a pilot has said of its cache since it was asked to tell all of it.
// Until it is done, what was known before counts too.
type telling struct {
	number uint64 // of the answer that asked first, 0 if none did
	told   map[taskqueue.FileRef]bool
}

type ending struct {
	attempt taskqueue.AttemptID
	number  uint64 // of the answer that said so first
}

type host struct {
	name   string
	pilots []*pilot            // in the order of their registration
	shares int                 // how many of them share their caches
	busy   int                 // attempts of them
	cut    []taskqueue.PilotID // from which it got nothing since it got something from any, at most maxCut
	health *node               // what is known against it; nil: nothing
}

// register makes a pilot known that sends its whole state.
func (fl *fleet) register(s *taskqueue.Sync) *pilot {
	p := &pilot{id: s.Pilot}
	p.copies.cached, p.copies.other = make(map[*version]holding), copies.NewOthers(&fl.counts.others)
	p.room.Has = &p.info.Has
	fl.pilots[p.id] = p
	fl.describe(p, *s.Hello)
	fl.journal.persist(records.TablePilot, 0, string(p.id), &records.Pilot{
		Host: p.info.Host, Site: p.info.Site, Launch: p.info.Launch,
	})
	fl.pilotRegistered(p)
	fl.event(taskqueue.Event{
		Kind: taskqueue.PilotRegistered, Pilot: p.id, Launch: p.info.Launch, Site: p.info.Site, Host: p.info.Host,
		Reason: p.info.Error,
	})
	return p
}

// describe takes what the pilot says of itself.
func (fl *fleet) describe(p *pilot, info taskqueue.PilotInfo) {
	if p.host != nil {
		fl.unplace(p)
		p.host.busy -= len(p.attempts)
	}
	info.Has = fl.believed(&info)
	p.info, p.expires = info, taskqueue.InstantOf(info.Expires)
	if s := fl.monitor.byName[info.Site]; s != nil && s.Most.Time > 0 && p.endsBy == 0 {
		p.endsBy = fl.now.After(s.Most.Time)
	}
	if p.endsBy != 0 && (p.expires == 0 || p.expires > p.endsBy) {
		p.expires = p.endsBy
	}
	if p.expires != 0 {
		p.life = max(p.life, time.Duration(p.expires-fl.now))
	}
	h := fl.hosts[info.Node()]
	if h == nil {
		h = &host{name: info.Node(), health: fl.nodes.Of(info.Node())}
		fl.hosts[h.name] = h
	}
	p.host = h
	h.pilots = append(h.pilots, p)
	h.busy += len(p.attempts)
	if info.CacheDir != "" {
		h.shares++
	}
	fl.enterShape(p)
	fl.counts.slots += p.room.Slots()
	p.seat.askedInVain = 0
	fl.peersChanged(p)
}

// MaxPilotCPUs bounds the processors of a pilot whose site does not say how many it has.
const MaxPilotCPUs = 4096

// believed is what a pilot has, as far as its site says that it may.
func (fl *fleet) believed(info *taskqueue.PilotInfo) taskqueue.Resources {
	has := info.Has
	has.MilliCPUs = min(has.MilliCPUs, MaxPilotCPUs*room.Slot)
	s := fl.monitor.byName[info.Site]
	if s == nil {
		return has
	}
	for _, amount := range []struct{ said, most *int64 }{
		{&has.MilliCPUs, &s.Most.MilliCPUs}, {&has.Memory, &s.Most.Memory}, {&has.Disk, &s.Most.Disk},
	} {
		if *amount.most > 0 {
			*amount.said = min(*amount.said, *amount.most)
		}
	}
	has.Countable = maps.Clone(has.Countable)
	for name, most := range s.Most.Countable {
		if n, ok := has.Countable[name]; ok {
			has.Countable[name] = min(n, most)
		}
	}
	return has
}

func (fl *fleet) unplace(p *pilot) {
	h := p.host
	h.pilots = slices.DeleteFunc(h.pilots, func(o *pilot) bool { return o == p })
	if p.info.CacheDir != "" {
		h.shares--
	}
	if len(h.pilots) == 0 {
		delete(fl.hosts, h.name)
	}
	fl.leaveShape(p)
	fl.counts.slots -= p.room.Slots()
}

// peersChanged tells the other pilots of the host, as its cache counts for
// theirs (section IV-D).
func (fl *fleet) peersChanged(p *pilot) {
	if p.info.CacheDir == "" {
		return
	}
	for _, o := range p.host.pilots {
		if o != p {
			fl.mustAnswer(o)
		}
	}
}

// peers are the folders of the other caches of the host that are shared.
func (p *pilot) peers() []string {
	if p.host.shares == 0 {
		return nil
	}
	var list []string
	for _, o := range p.host.pilots {
		if o != p && o.info.CacheDir != "" {
			list = append(list, o.info.CacheDir)
		}
	}
	return list
}

func (fl *fleet) inOrder() []*pilot {
	list := make([]*pilot, 0, len(fl.pilots))
	for _, id := range sortedKeys(fl.pilots) {
		list = append(list, fl.pilots[id])
	}
	return list
}

func sortedKeys[K ~string, V any](m map[K]V) []K {
	return slices.Sorted(maps.Keys(m))
}

// mustAnswer has the pilot answered at the end of this transition, or as soon as it syncs.
func (fl *fleet) mustAnswer(p *pilot) {
	p.talk.answerDue = true
	if !p.talk.listedAnswer {
		p.talk.listedAnswer = true
		fl.work.answers = append(fl.work.answers, p)
	}
}

// wantsJobs lists a pilot to be given jobs in this transition.
func (fl *fleet) wantsJobs(p *pilot) {
	if !p.seat.listedAsker {
		p.seat.listedAsker = true
		fl.work.askers = append(fl.work.askers, p)
	}
}

func (fl *fleet) armPilot(p *pilot) {
	at := p.lease.silentAfter
	if p.talk.heldSeq != 0 {
		at = min(at, p.talk.heldSince.After(fl.config.Hold))
	}
	for _, other := range []instant{fl.silentAt(p), p.checkAt} {
		if other != 0 {
			at = min(at, other)
		}
	}
	if p.lease.armed == 0 || at < p.lease.armed {
		p.lease.armed = at
		fl.timers.add(timer{at: at, kind: pilotTimer, pilot: p})
	}
}

// lease is for how long a pilot and the TaskQueue wait for each other.
func (fl *fleet) lease(p *pilot) time.Duration {
	if p.info.Lease == 0 {
		return fl.config.PilotLease
	}
	most := fl.config.MaxPilotLease
	if s := fl.monitor.byName[p.info.Site]; s != nil && s.Lease > 0 {
		most = min(most, s.Lease)
	}
	return min(p.info.Lease, most)
}

// nextAnswer numbers an answer: above all before, of any incarnation.
func (fl *fleet) nextAnswer() uint64 {
	fl.numbers.lastAnswer++
	return fl.journal.incarnation<<32 | fl.numbers.lastAnswer
}

func (fl *fleet) mustLeave(p *pilot) bool {
	return fl.stop != running || p.info.Error != "" || p.unneeded
}

// cacheID names a cache: that of a host whose pilots share it, or that of one pilot which
// does not share. The zero cacheID is any.
type cacheID struct {
	host  string
	pilot taskqueue.PilotID
}

func (p *pilot) cache() cacheID {
	if p.info.CacheDir == "" {
		return cacheID{pilot: p.id}
	}
	return cacheID{host: p.info.Node()}
}

func (a cacheID) less(b cacheID) bool {
	return a.host < b.host || a.host == b.host && a.pilot < b.pilot
}

func (v *version) cachedAt(at cacheID) bool {
	return slices.ContainsFunc(v.holders, func(p *pilot) bool { return p.cache() == at })
}

// exists reports whether some pilot reads a cache.
func (fl *fleet) exists(at cacheID) bool {
	if at.pilot != "" {
		return fl.pilots[at.pilot] != nil
	}
	h := fl.hosts[at.host]
	return h != nil && h.shares > 0
}

// itsCache is where a job must run because its outputs are needed there, while
// there is a pilot that reads that cache.
func (fl *fleet) itsCache(j *job) cacheID {
	if j.fate == nil || !fl.exists(j.fate.cache) {
		return cacheID{}
	}
	return j.fate.cache
}
