package dispatch

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"fairway/internal/dispatch/fairtree"
	"fairway/internal/dispatch/room"
	"fairway/internal/taskqueue"
)

// How gangs get their pilots. All members are given out in one transition, each to a pilot with
// room for it, all at one site. So no gang has some of what it needs and waits for the rest,
// and none waits for another in a circle.
//
// A gang that does not fit, and whose turn it is, has room kept for it (a gathering): at those
// pilots where so many members are expected to have room first. What is free there stays so
// until all is, but for jobs that do not delay it: that leave as much room as it needs, or are
// expected to end before the rest is free (backfill). At a site, one gang gathers at a time, and has
// pilots enough for all of it. So none waits for another one, and a gathering ends when what runs at its
// pilots has ended. What would be kept for a second gang meanwhile stands idle for longer than what is
// kept for both, one after the other. Config.MaxPassOver after it began nothing is filled in any
// more; so estimates that are wrong delay a gang by the jobs that were begun until then.
//
// It is the turn of a gang when no job stands before it that is not one: of users before in turn, or of
// the same user of a higher priority, or of the same and a lower rank; or when it was passed over
// for Config.MaxPassOver. A gang whose turn it is not is given out where it fits what nobody else takes.

// gathering is the room that is kept for a ready gang, at one site.
type gathering struct {
	job      *job
	since    instant
	site     *site
	looked   instant        // when the room to keep was last looked for
	moves    uint64         // fleet.counts.moves then
	foreseen instant        // when all is expected to be free; 0: nothing tells
	at       map[*pilot]int // members for which room is kept; nil when that is over
}

// opening is room for n members that a pilot has from a time on.
type opening struct {
	at        instant
	sure      bool // it is known how long what runs there takes
	p         *pilot
	n         int
	inputHeld int64 // of the input of the job, at the pilot
}

// placeGangs gives out the ready gangs whose turn it is, and keeps room for those that do not
// fit. all: whose turn it is not, too, where there is room that nobody else has taken.
func (pl *placement) placeGangs(all bool) {
	if pl.jobs.gangs == 0 {
		return
	}
	turns := pl.readyGangs()
	for _, isDue := range []bool{true, false} {
		for _, turn := range turns {
			if turn.isDue == isDue && (isDue || all) && pl.jobs.gangs > 0 {
				pl.placeGangsOf(turn)
			}
		}
	}
}

// gangTurn is a group of ready gangs.
type gangTurn struct {
	group *group
	isDue bool   // it may be the turn of some
	below uint32 // of those whose rows are below this one
}

// reviewGatherings looks once, before anything else is given out, where gangs that gather have room by now. If
// it looked again when pilots have taken what one has let go, two could trade pilots for ever.
func (pl *placement) reviewGatherings() {
	for _, gathers := range slices.Clone(pl.gatherings) {
		if gathers.at != nil && pl.mayHaveMoved(gathers) { // else another has taken its place
			pl.reviewGathering(gathers)
		}
	}
}

// manyPilots is how many pilots are looked at for a gang whenever an attempt begins or ends. If there
// are more, they are looked at once each lookTime for each of them, which is twenty times what a look takes.
const (
	manyPilots = 256
	lookTime   = 10 * time.Microsecond
)

// mayHaveMoved reports whether a gang that gathers may have all its room by now, or be better off with
// other pilots than are kept for it.
func (pl *placement) mayHaveMoved(gathers *gathering) bool {
	n := time.Duration(len(pl.fleet.pilots))
	if gathers.moves != pl.fleet.counts.moves && (n <= manyPilots || pl.now >= gathers.looked.After(n*lookTime)) {
		return true
	}
	for p := range gathers.at {
		if !pl.mayGather(p, gathers.job, gathers) {
			return true
		}
	}
	free, _ := pl.roomAt(gathers.job, gathers)
	return free
}

// readyGangs are the groups of ready gangs that are not gathering, by turn.
func (pl *placement) readyGangs() (turns []gangTurn) {
	others := false // jobs that are no gangs stand before
	for s := range pl.shares.InOrder {
		before := others
		for _, l := range s.Own.levels {
			below := uint32(1<<32 - 1)
			for _, g := range l.groups {
				if j := pl.jobs.first(g); j != nil && !g.class.gang() {
					below = min(below, j.row)
				}
			}
			for _, g := range l.groups {
				if g.class.gang() {
					turns = append(turns, gangTurn{g, !before, below})
				}
			}
			before = before || below < 1<<32-1
		}
		others = others || before
	}
	limit := pl.now.After(-pl.config.MaxPassOver)
	for i := range turns {
		if t := &turns[i]; !t.isDue || t.below < 1<<32-1 {
			if j := pl.jobs.oldest(t.group); j != nil && j.readySince <= limit {
				t.isDue, t.below = true, 1<<32-1
			}
		}
	}
	return turns
}

// placeGangsOf gives out gangs of a group by rank, until one does not fit; for those whose turn it
// is room is kept.
func (pl *placement) placeGangsOf(t gangTurn) {
	var passed []uint32
	g := t.group
	for {
		j := pl.jobs.first(g)
		if j == nil {
			break
		}
		passed = append(passed, j.row)
		g.ranks.Pop()
		if pl.gatheringOf(j) == nil && !pl.placeGang(j, t.isDue && j.row < t.below) {
			break
		}
	}
	for _, row := range passed {
		if g.ready > 0 && pl.jobs.isReady(row, g) {
			g.ranks.Push(row)
		}
	}
}

// placeGang gives a gang out, or keeps room for it if it may. It reports whether it has done one of
// both.
func (pl *placement) placeGang(j *job, keep bool) bool {
	free, later := pl.roomAt(j, nil)
	if !free && !(keep && later) {
		return false
	}
	gathers := &gathering{job: j, since: pl.now}
	rooms, ok := pl.roomsFor(gathers, keep)
	if !ok || !pl.gangAllowed(j, rooms) {
		return false
	}
	if isFree(rooms, pl.now) {
		pl.assignGang(j, rooms)
		return true
	}
	pl.gatherings = append(pl.gatherings, gathers)
	pl.keepRooms(gathers, rooms)
	return true
}

// reviewGathering looks where a gang that gathers has room by now. It is given out, or room is kept for
// it where that is expected first.
func (pl *placement) reviewGathering(gathers *gathering) {
	rooms, ok := pl.roomsFor(gathers, true)
	switch {
	case !ok || !pl.gangAllowed(gathers.job, rooms):
		pl.endGathering(gathers)
	case isFree(rooms, pl.now):
		pl.assignGang(gathers.job, rooms)
	default:
		pl.keepRooms(gathers, rooms)
	}
}

func isFree(rooms []opening, now instant) bool { return rooms[len(rooms)-1].at <= now }

// keepRooms keeps the pilots of some rooms for a gang, and lets others go.
func (pl *placement) keepRooms(gathers *gathering, rooms []opening) {
	at, foreseen := make(map[*pilot]int, len(rooms)), rooms[len(rooms)-1].at
	for _, o := range rooms {
		at[o.p] += o.n
		if !o.sure {
			foreseen = 0
		}
	}
	s := rooms[0].p.launch.site
	if s.gathering != nil && s.gathering != gathers {
		pl.endGathering(s.gathering)
	}
	before, later := gathers.at, foreseen > gathers.foreseen
	gathers.at, gathers.foreseen, gathers.looked, gathers.moves = at, foreseen, pl.now, pl.fleet.counts.moves
	if s != gathers.site {
		gathers.leaveSite()
		gathers.site, s.gathering = s, gathers
	}
	for _, p := range inOrderOf(before) {
		if at[p] == 0 {
			pl.freePilot(p)
		} else if later || before[p] > at[p] {
			pl.offerAgain(p)
		}
	}
	for _, p := range inOrderOf(at) {
		if p.seat.gathering == nil {
			p.seat.gathering = gathers
			pl.askBackQueued(p)
		}
	}
}

// askBackQueued has attempts given back that wait at a pilot for what is kept there now.
func (pl *placement) askBackQueued(p *pilot) {
	for _, a := range slices.Clone(p.attempts) {
		if a.ahead && !a.leaves() && a.gang == nil && a.waitsItsTurn() {
			pl.askBack(a)
		}
	}
}

func inOrderOf(at map[*pilot]int) []*pilot {
	list := make([]*pilot, 0, len(at))
	for p := range at {
		list = append(list, p)
	}
	slices.SortFunc(list, func(a, b *pilot) int { return strings.Compare(string(a.id), string(b.id)) })
	return list
}

// freePilot lets a pilot take other jobs again.
func (pl *placement) freePilot(p *pilot) {
	p.seat.gathering = nil
	pl.offerAgain(p)
}

// offerAgain has a pilot ask again that could take more than before.
func (pl *placement) offerAgain(p *pilot) {
	p.seat.askedInVain = 0
	if p.seat.parked > 0 {
		pl.fleet.wantsJobs(p)
	}
}

// endGathering lets go what is kept for a gang.
func (pl *placement) endGathering(gathers *gathering) {
	pl.gatherings = slices.DeleteFunc(pl.gatherings, func(o *gathering) bool { return o == gathers })
	for _, p := range inOrderOf(gathers.at) {
		pl.freePilot(p)
	}
	gathers.at = nil
	gathers.leaveSite()
}

func (gathers *gathering) leaveSite() {
	if gathers.site != nil {
		gathers.site.gathering, gathers.site = nil, nil
	}
}

// assignGang gives out all members of a gang: to pilots in the order of their names, so that members
// that follow each other are mostly together.
func (pl *placement) assignGang(j *job, rooms []opening) {
	if gathers := pl.gatheringOf(j); gathers != nil {
		pl.endGathering(gathers)
	}
	slices.SortStableFunc(rooms, func(a, b opening) int {
		return cmp.Or(strings.Compare(a.p.host.name, b.p.host.name), strings.Compare(string(a.p.id), string(b.p.id)))
	})
	pl.unready(j)
	g := (*gang)(nil)
	for _, o := range rooms {
		for range o.n {
			a := &attempt{
				id: pl.fleet.nextAttempt(), job: j, pilot: o.p, needs: j.class, try: j.tries() + 1, priority: j.effective,
			}
			if g == nil {
				g = pl.fleet.newGang(j, a.id)
			}
			a.gang, a.task = g, int(a.id-g.leader)
			g.members[a.task] = a
			pl.fleet.addAttempt(a)
			pl.fleet.checkLater(o.p, pl.now.After(overdueAfter*pl.config.AheadTime))
			pl.fleet.mustAnswer(o.p)
		}
		o.p.copies.hints.incoming += o.p.lacking(j)
	}
	pl.setAssigned(j)
}

// roomAt reports whether pilots of some site may have room for all members of a gang: by now, and later
// where no other gang gathers. It is quick: roomsFor knows of hosts, and of what ends when. gathers is what is
// kept for it, which may be nil.
func (pl *placement) roomAt(j *job, gathers *gathering) (free, later bool) {
	cl := j.class
	of := pl.roomOf[:0]
	defer func() { pl.roomOf = of }()
	for _, sh := range pl.fleet.shapes {
		if sh.fit(cl) == noneFits {
			continue
		}
		for _, p := range sh.pilots {
			if !pl.mayGather(p, j, gathers) {
				continue
			}
			i := slices.IndexFunc(of, func(r siteRoom) bool { return r.site == p.launch.site })
			if i < 0 {
				i, of = len(of), append(of, siteRoom{site: p.launch.site})
			}
			if of[i].free += p.room.Free(&cl.takes); of[i].free >= cl.tasks() {
				return true, true
			}
			if !later && pl.mayKeep(p.launch.site.gathering, j, gathers) {
				of[i].whole += p.room.Whole(&cl.takes)
				later = of[i].whole >= cl.tasks()
			}
		}
	}
	return false, later
}

// siteRoom counts members of a gang for which pilots of a site have room.
type siteRoom struct {
	site        *site
	free, whole int
}

// roomsFor finds room for all members of a gang, at the site where that is expected first: what is
// free now and, if later, what will be where no other gang gathers. It reports false where no site has
// that.
func (pl *placement) roomsFor(gathers *gathering, later bool) (rooms []opening, ok bool) {
	bySite := make(map[*site][]opening)
	for _, sh := range pl.fleet.shapes {
		if sh.fit(gathers.job.class) == noneFits {
			continue
		}
		for _, p := range sh.pilots {
			if s := p.launch.site; pl.mayGather(p, gathers.job, gathers) {
				bySite[s] = pl.openings(bySite[s], p, gathers.job, later && pl.mayKeep(s.gathering, gathers.job, gathers))
			}
		}
	}
	names := make([]*site, 0, len(bySite))
	for s := range bySite {
		names = append(names, s)
	}
	slices.SortFunc(names, func(a, b *site) int { return strings.Compare(a.Name, b.Name) })
	for _, s := range names {
		found := firstRooms(bySite[s], gathers.job.class)
		if found != nil && (rooms == nil || found[len(found)-1].at < rooms[len(rooms)-1].at) {
			rooms = found
		}
	}
	return rooms, rooms != nil
}

// firstRooms takes the rooms that are free first until there are enough, nil if there are not.
func firstRooms(all []opening, cl *class) (rooms []opening) {
	slices.SortFunc(all, func(a, b opening) int {
		return cmp.Or(cmp.Compare(a.at, b.at), shunned(a.p, cl)-shunned(b.p, cl), cmp.Compare(b.inputHeld, a.inputHeld),
			b.n-a.n, strings.Compare(string(a.p.id), string(b.p.id)))
	})
	left := cl.tasks()
	var hosts map[*host]bool
	if cl.key.apart {
		hosts = make(map[*host]bool, left)
	}
	for _, o := range all {
		if hosts != nil {
			if hosts[o.p.host] {
				continue
			}
			hosts[o.p.host], o.n = true, 1
		}
		o.n = min(o.n, left)
		rooms = append(rooms, o)
		if left -= o.n; left == 0 {
			return rooms
		}
	}
	return nil
}

// shunned is 1 for a pilot of the host where the job failed last, or of one that is doubted.
func shunned(p *pilot, cl *class) int {
	if cl.key.avoid != "" && cl.key.avoid == p.host.name || p.host.health != nil && p.host.health.Withheld {
		return 1
	}
	return 0
}

// mayGather reports whether a pilot may be given members of a gang, now or later.
func (pl *placement) mayGather(p *pilot, j *job, gathers *gathering) bool {
	cl := j.class
	k := &cl.key
	return pl.fleet.takes(p) && p.seat.reserved == nil && pl.mayKeep(p.seat.gathering, j, gathers) && p.fits(cl) &&
		(!k.bound() || p.cache() == cacheID{k.host, k.pilot}) && pl.fleet.outlives(p, cl) &&
		(k.site == "" || k.site == p.info.Site || j.readySince.After(k.wait) <= pl.now)
}

// mayKeep reports whether what other may keep for its gang may be kept for a job, for which gathers is kept:
// for one of the same user and a higher priority, unless it was passed over for too long.
func (pl *placement) mayKeep(other *gathering, j *job, gathers *gathering) bool {
	return other == nil || other == gathers || other.job.share() == j.share() && other.job.effective < j.effective &&
		other.job.readySince > pl.now.After(-pl.config.MaxPassOver)
}

// openings appends when the pilot has room for members of the gang: now and, if later, when attempts there
// are expected to have ended, one after the other.
func (pl *placement) openings(list []opening, p *pilot, j *job, later bool) []opening {
	cl := j.class
	o := opening{at: pl.now, sure: true, p: p, n: p.room.Free(&cl.takes), inputHeld: pl.weigh(p, j)}
	room := o.n
	if room > 0 {
		list = append(list, o)
	}
	if room >= cl.tasks() || len(p.attempts) == 0 || !later {
		return list
	}
	then := p.room.Clone()
	type ending struct {
		at   instant
		sure bool
		a    *attempt
	}
	ends := make([]ending, len(p.attempts))
	for i, a := range p.attempts {
		at, sure := pl.expectedEnd(a)
		ends[i] = ending{at, sure, a}
	}
	slices.SortStableFunc(ends, func(a, b ending) int { return cmp.Compare(a.at, b.at) })
	for _, e := range ends {
		then.Add(&e.a.needs.takes, -1)
		o.at, o.sure = e.at, o.sure && e.sure
		if p.expires != 0 && e.at.After(cl.key.time) > p.expires {
			break
		}
		if n := then.Free(&cl.takes); n > room {
			o.n, room = n-room, n
			list = append(list, o)
		}
	}
	return list
}

// expectedEnd is when an attempt is expected to end, as others of its step did. sure: there were
// some.
func (pl *placement) expectedEnd(a *attempt) (at instant, sure bool) {
	age := time.Duration(0)
	if a.started {
		age = time.Duration(pl.now - a.since)
	}
	rest, sure := pl.fleet.pace.RestOf(a.job.step, age)
	if !sure {
		rest = (pl.fleet.expectedRun(a.job) - age).Abs()
	}
	return pl.now.After(rest) + 1, sure
}

// mayFill reports whether a pilot that may be kept for a gang may be given the job all the same.
func (pl *placement) mayFill(p *pilot, j *job) bool {
	gathers := p.seat.gathering
	if gathers == nil {
		return true
	}
	if j.readySince <= pl.now.After(-pl.config.MaxPassOver) && j.readySince < gathers.job.readySince {
		return true // it was passed over for longer
	}
	if p.leaves(gathers.at[p], gathers.job.class, j.class) {
		return true
	}
	run := pl.fleet.pace.Of(j.step)
	return run > 0 && gathers.foreseen != 0 && pl.now.After(run) <= gathers.foreseen &&
		pl.now <= gathers.since.After(pl.config.MaxPassOver)
}

// leaves reports whether the pilot has room for so many members of a gang besides a job that it
// would be given.
func (p *pilot) leaves(members int, gang, cl *class) bool {
	then := p.room.Clone()
	then.Add(&cl.takes, 1)
	return then.Free(&gang.takes) >= members
}

// gangAllowed reports whether neither a quota nor a pool forbids that all members are given out.
func (pl *placement) gangAllowed(j *job, rooms []opening) bool {
	if pl.shares.Alone() && len(j.class.pools) == 0 {
		return true
	}
	if !pl.gangWithinQuota(j, rooms) {
		return false
	}
	if !j.class.pools.Lacks(pl.now, j, j.class.tasks(), nil) {
		return true
	}
	if j.readySince <= pl.now.After(-pl.config.MaxPassOver) {
		pl.keepPools(j)
	}
	return false
}

func (pl *placement) gangWithinQuota(j *job, rooms []opening) bool {
	site := rooms[0].p.launch.site.Name
	var more fairtree.Amount
	for _, o := range rooms {
		more.Running += o.n
		more.MilliCPUs += int64(o.n) * o.p.room.CPUsOf(&j.class.takes)
	}
	return j.share().Beyond(site, more, "", fairtree.Amount{}) == nil
}

// checkGatherings looks for pilots that are kept for a gang without need.
func (pl *placement) checkGatherings() error {
	kept := 0
	for _, p := range pl.fleet.pilots {
		if p.seat.gathering == nil {
			continue
		}
		kept++
		gathers := p.seat.gathering
		if !slices.Contains(pl.gatherings, gathers) || gathers.at[p] == 0 || p.launch.site.gathering != gathers {
			return refuse("dispatch: pilot %s is kept for a gang that does not gather", p.id)
		}
	}
	for _, gathers := range pl.gatherings {
		n := 0
		for p, members := range gathers.at {
			n += members
			kept--
			if p.left || p.seat.gathering != gathers || gathers.site != p.launch.site {
				return refuse("dispatch: gang %s gathers at pilot %s, which is not kept for it", gathers.job.name, p.id)
			}
		}
		if n != gathers.job.class.tasks() || gathers.job.group == nil {
			return refuse("dispatch: gang %s, which is %v, gathers %d tasks of %d", gathers.job.name, gathers.job.state, n,
				gathers.job.class.tasks())
		}
	}
	if kept != 0 {
		return refuse("dispatch: %d pilots more are kept for gangs than gather", kept)
	}
	return nil
}

// gangRoom is how much room there is for a ready gang.
func (pl *placement) gangRoom(j *job) *taskqueue.GangRoom {
	n := j.class.tasks()
	room := &taskqueue.GangRoom{Tasks: n, Apart: j.class.key.apart, Exceeds: j.exceededQuotas()}
	free, whole := make(map[*site]int), make(map[*site]int)
	hosts := make(map[*host]bool)
	for _, p := range pl.fleet.inOrder() {
		if !pl.fleet.takes(p) || !p.fits(j.class) {
			continue
		}
		now, all := p.room.Free(&j.class.takes), p.room.Whole(&j.class.takes)
		if j.class.key.apart {
			if hosts[p.host] {
				continue
			}
			hosts[p.host] = true
			now, all = min(now, 1), min(all, 1)
		}
		at := p.launch.site
		free[at] += now
		whole[at] += all
		room.Free, room.Whole = max(room.Free, min(n, free[at])), max(room.Whole, whole[at])
	}
	if gathers := pl.gatheringOf(j); gathers != nil {
		room.Gathers = true
		for p, n := range gathers.at {
			room.Keeps += min(n, p.room.Free(&j.class.takes))
		}
		if gathers.foreseen > pl.now {
			room.In = time.Duration(gathers.foreseen - pl.now)
		}
	}
	return room
}

// exceededQuotas are those that all tasks together would exceed whatever else runs.
func (j *job) exceededQuotas() (list []taskqueue.GangQuota) {
	n := j.class.tasks()
	cpus := int64(n) * cmp.Or(j.class.key.milliCPUs, room.Slot)
	for s := range j.share().Up {
		if q := &s.Said().Limits; q.Running > 0 && n > q.Running {
			list = append(list, taskqueue.GangQuota{Title: s.Title(), Running: q.Running})
		} else if q.MilliCPUs > 0 && cpus > q.MilliCPUs {
			list = append(list, taskqueue.GangQuota{Title: s.Title(), MilliCPUs: q.MilliCPUs, Needs: cpus})
		}
	}
	return list
}
