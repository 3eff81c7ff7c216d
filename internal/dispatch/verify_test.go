package dispatch

import (
	"fmt"
	"slices"

	"fairway/internal/dispatch/pools"
	"fairway/internal/dispatch/records"
	"fairway/internal/dispatch/room"
	"fairway/internal/taskqueue"
)

// verify recomputes what the Core keeps in more than one form.
func (c *Core) verify() error {
	for _, check := range []func() error{
		c.CheckLiveness, c.verifyJobs, c.verifyPilots, c.verifyVersions, c.verifyIndex, c.verifyMonitor,
		c.verifyShares, c.verifyResults, c.placement.checkGatherings,
	} {
		if err := check(); err != nil {
			return err
		}
	}
	w := &c.work
	if len(w.examine)+len(w.block)+len(w.unblock)+len(w.fresh)+len(w.askers)+len(w.answers)+len(w.wanted)+
		len(w.cancel)+len(w.twins) > 0 || c.fleet.nodes.HasChanged() {
		return fmt.Errorf("work is left over: %+v", *w)
	}
	return nil
}

func (c *Core) verifyJobs() error {
	var totals taskqueue.Totals
	ready := 0
	for j := range c.jobs.all {
		totals.Jobs++
		totals.ByState[j.state]++
		if j.state == taskqueue.Done && j.committed == records.ReusedAttempt {
			totals.Reused++
		}
		if j.state != taskqueue.Ready && j.group != nil || j.state == taskqueue.Ready &&
			(j.group == nil) != j.step.run.halted() ||
			(j.group != nil) != c.jobs.readyBit.Has(j.row) {
			return fmt.Errorf("job %s is %v, but its index says otherwise", j.name, j.state)
		}
		if j.group != nil {
			ready++
		}
		ungranted, absent := int32(0), int32(0)
		for i := range j.requests {
			r := &j.requests[i]
			if r.Queued() && !r.Granted() {
				ungranted++
			}
			if v := r.read; v != nil {
				for _, w := range c.files.waiters[v] {
					if w == j {
						absent++
					}
				}
			}
		}
		if ungranted != j.ungranted || absent != j.absent {
			return fmt.Errorf("job %s (%v): %d ungranted, counted %d; %d absent, counted %d", j.name, j.state, ungranted,
				j.ungranted, absent, j.absent)
		}
		if v := j.missingInput(); j.state == taskqueue.Waiting && v != nil && v.identity == (identity{}) {
			return fmt.Errorf("job %s waits for %s@%d, which will not come", j.name, v.file.lfn, v.number)
		}
	}
	if totals != c.jobs.totals || ready != c.jobs.ready {
		return fmt.Errorf("totals are %+v and %d ready, counted %+v and %d", totals, ready, c.jobs.totals, c.jobs.ready)
	}
	return nil
}

func (c *Core) verifyPilots() error {
	attempts, recalls, between, staged := 0, 0, 0, 0
	awaited, bySite := make(map[*pilot]int), make(map[*site]int)
	for id, k := range c.placement.delayed.jobs {
		if k.holder != nil {
			awaited[k.holder]++
		} else {
			bySite[k.site]++
		}
		if c.jobs.table.At(id).state != taskqueue.Ready {
			return fmt.Errorf("job %s is %v and kept", c.jobs.table.At(id).name, c.jobs.table.At(id).state)
		}
	}
	for _, s := range c.fleet.monitor.sites {
		if s.outlook.awaited != bySite[s] {
			return fmt.Errorf("%d jobs are kept for site %s, counted %d", s.outlook.awaited, s.Name, bySite[s])
		}
	}
	expected := 0
	for _, p := range c.fleet.inOrder() {
		for _, j := range p.seat.next {
			if expected++; c.placement.expected[j] != p || j.group == nil {
				return fmt.Errorf("pilot %s is expected to get job %s, which is %v", p.id, j.name, j.state)
			}
		}
		sum := room.Room{Has: &p.info.Has}
		if a := p.seat.taking; a != nil && (c.fleet.attempts[a.id] != a || a.told.taker != p) {
			return fmt.Errorf("pilot %s is to take attempt %s, which has ended or goes to another", p.id, attemptName(a.id))
		}
		for _, a := range p.attempts {
			attempts++
			if v := a.lacks; v != nil {
				staged++
				if list := c.fleet.early.staging[v]; int(a.listed) >= len(list) || list[a.listed] != a || a.told.taker != nil ||
					!a.started {
					return fmt.Errorf("attempt %s is staged in, but not listed or asked back", attemptName(a.id))
				}
			}
			if a.told.recall {
				recalls++
			}
			sum.Add(&a.needs.takes, 1)
			if c.fleet.attempts[a.id] != a || a.pilot != p {
				return fmt.Errorf("attempt %d of pilot %s is not listed", a.id, p.id)
			}
		}
		if s, u := sum.Used(), p.room.Used(); s.MilliCPUs != u.MilliCPUs || s.Memory != u.Memory || s.Disk != u.Disk {
			return fmt.Errorf("pilot %s uses %+v, counted %+v", p.id, s, u)
		}
		if len(p.copies.cached) != len(p.copies.versions) {
			return fmt.Errorf("pilot %s caches %d versions, lists %d", p.id, len(p.copies.cached), len(p.copies.versions))
		}
		for i, v := range p.copies.versions {
			if h := p.copies.cached[v]; int(h.at) != i || v.holders[h.holder] != p {
				return fmt.Errorf("pilot %s holds %s@%d, which is not listed", p.id, v.file.lfn, v.number)
			}
			if len(v.ready) > 0 && v.announced && p.copies.cached[v].hot == 0 {
				return fmt.Errorf("pilot %s does not know that %s@%d is read", p.id, v.file.lfn, v.number)
			}
			if at := slices.Index(p.copies.hot, v); int(p.copies.cached[v].hot) != at+1 {
				return fmt.Errorf("pilot %s: %s@%d is hot or not", p.id, v.file.lfn, v.number)
			}
		}
		if p.seat.awaited != awaited[p] {
			return fmt.Errorf("pilot %s is awaited by %d jobs, counted %d", p.id, awaited[p], p.seat.awaited)
		}
		if is := p.talk.heldSeq == 0 && len(p.attempts) == 0 && c.fleet.takes(p); is != p.seat.between {
			return fmt.Errorf("pilot %s is between two syncs: %v, counted %v", p.id, is, p.seat.between)
		}
		if p.seat.between {
			between++
		}
		if (p.seat.parked > 0) != slices.Contains(c.fleet.parked, p) {
			return fmt.Errorf("pilot %s: spare is %d", p.id, p.seat.parked)
		}
	}
	if expected != len(c.placement.expected) {
		return fmt.Errorf("%d jobs are expected at pilots, counted %d", expected, len(c.placement.expected))
	}
	for v, list := range c.fleet.early.staging {
		if staged -= len(list); len(list) == 0 {
			return fmt.Errorf("no attempt lacks %s@%d, but it is listed", v.file.lfn, v.number)
		}
	}
	if staged != 0 {
		return fmt.Errorf("%d attempts more are staged in than listed", staged)
	}
	if attempts != len(c.fleet.attempts) || recalls != c.fleet.counts.recalls || between != c.fleet.counts.between {
		return fmt.Errorf("%d attempts, %d recalls, %d between syncs, counted %d, %d and %d", attempts, recalls, between,
			len(c.fleet.attempts), c.fleet.counts.recalls, c.fleet.counts.between)
	}
	return nil
}

func (c *Core) verifyVersions() error {
	pins := make(map[*version]int32)
	for j := range c.jobs.all {
		if j.state == taskqueue.Done {
			continue
		}
		for i := range j.requests {
			if v := j.requests[i].read; v != nil {
				pins[v]++
			}
		}
	}
	for _, f := range c.filesInOrder() {
		for r := f.fifo.Head(); r != nil; r = r.Next() {
			for b := r.Prev(); b != nil && !r.Granted(); b = b.Prev() {
				if b.Owner.job.effective < r.Owner.job.effective {
					return fmt.Errorf("job %s waits for %s in %s and has the higher priority", r.Owner.job.name,
						b.Owner.job.name, f.lfn)
				}
			}
		}
		for i, v := range f.versions {
			if i > 0 && f.versions[i-1].number >= v.number {
				return fmt.Errorf("%s: versions out of order", f.lfn)
			}
			if v.pins != pins[v] {
				return fmt.Errorf("%s@%d has %d pins, counted %d", f.lfn, v.number, v.pins, pins[v])
			}
			if v.state == present && !v.hasCopy() || v.state == gone && v.hasCopy() {
				return fmt.Errorf("%s@%d is in state %d with PFN %q and %d holders", f.lfn, v.number, v.state, v.pfn,
					len(v.holders))
			}
			if f.allReaders && v.temporary() && v.state == present && v.pfn != "" && v.pins == 0 && !v.toPublish &&
				c.fleet.grace.over && !c.files.isShared(v) {
				return fmt.Errorf("%s@%d is temporary, stored, and read by nobody", f.lfn, v.number)
			}
			if v.state == pending && !v.writer.live() {
				return fmt.Errorf("%s@%d is to come from job %s, which is %v", f.lfn, v.number, v.writer.name, v.writer.state)
			}
		}
	}
	return nil
}

// verifyIndex looks for ready jobs that no index leads to.
func (c *Core) verifyIndex() error {
	for j := range c.jobs.all {
		if j.group == nil {
			continue
		}
		g := j.group
		id := j.row
		if !slices.Contains(g.ranks, id) || !slices.ContainsFunc(slices.Collect(g.ages.All),
			func(a aged) bool { return a.id == id && a.since == j.readySince }) {
			return fmt.Errorf("job %s is not in its group", j.name)
		}
		for i := range j.requests {
			v := j.requests[i].read
			if v != nil &&
				!slices.ContainsFunc(v.ready, func(r readyReader) bool { return r.group == g && slices.Contains(r.jobs, id) }) {
				return fmt.Errorf("job %s is not among the readers of %s", j.name, v.file.lfn)
			}
		}
		if j.ownPriority() > j.effective || g.priority != j.effective {
			return fmt.Errorf("job %s has priority %d, effectively %d, and stands among those of %d", j.name, j.ownPriority(),
				j.effective, g.priority)
		}
	}
	return nil
}

// verifyMonitor counts the pilots of each site anew, and makes sure that the
// algorithm would have nothing to do where it was left out.
func (c *Core) verifyMonitor() error {
	m := &c.fleet.monitor
	counted := make(map[*site][standings]int)
	for name, l := range m.launches {
		is := busy
		switch {
		case l.pilot == nil:
			is = inactive
		case len(l.pilot.attempts) == 0 && l.pilot.willing():
			is = idle
		}
		if l.standing != is || m.byName[l.site.Name] != l.site {
			return fmt.Errorf("launch %s of site %s counts as %d, not %d", name, l.site.Name, l.standing, is)
		}
		n := counted[l.site]
		n[is]++
		counted[l.site] = n
	}
	for name, s := range m.byName {
		if s.pilots != counted[s] {
			return fmt.Errorf("site %s has %v pilots, counted %v", name, counted[s], s.pilots)
		}
		if n := c.fleet.plan(s); s.known && !m.changed && !c.jobs.changed && c.now >= s.notBefore && n > 0 {
			return fmt.Errorf("site %s has nothing changed and needs %d pilots", name, n)
		}
	}
	for name, h := range c.fleet.hosts {
		attempts := 0
		for _, p := range h.pilots {
			attempts += len(p.attempts)
		}
		if h.busy != attempts {
			return fmt.Errorf("host %s counts %d attempts and not %d", name, h.busy, attempts)
		}
	}
	for _, p := range c.fleet.pilots {
		if m.launches[p.launch.name] != p.launch || p.launch.pilot != p {
			return fmt.Errorf("pilot %s does not count for its site", p.id)
		}
	}
	return nil
}

// verifyShares recomputes what users and groups have.
func (c *Core) verifyShares() error {
	type sums struct {
		ready, attempts int
		cpus, stored    int64
	}
	want, held := map[*share]sums{}, map[*pools.Pool[*job]]int64{}
	for _, r := range c.runs.inOrder {
		for s := range r.share.Up {
			x := want[s]
			x.stored += c.StoredBytes(r.ID)
			want[s] = x
		}
	}
	for j := range c.jobs.all {
		for s := range j.share().Up {
			x := want[s]
			if j.group != nil {
				x.ready++
			}
			for a := j.attempt; a != nil; a = a.next {
				if a.cost.slots > 0 {
					x.attempts++
					x.cpus += a.cost.cpus
				}
			}
			want[s] = x
		}
		for a := j.attempt; a != nil; a = a.next {
			for _, n := range a.cost.pools {
				held[n.Pool] += n.N
			}
		}
	}
	for s := range c.shares.All {
		if got := (sums{s.Ready(), s.Takes().Running, s.Takes().MilliCPUs, s.Stored() - s.Kept()}); got != want[s] {
			return fmt.Errorf("%s has %+v, and it counts %+v", s.Title(), want[s], got)
		}
	}
	for p, n := range held {
		if p.Used() != n {
			return fmt.Errorf("attempts have %d of a pool, and it counts %d", n, p.Used())
		}
	}
	return nil
}

// verifyResults recomputes which jobs have which results, and which jobs are twins.
func (c *Core) verifyResults() error {
	takers, listed := make(map[identity]int), 0
	for j := range c.jobs.all {
		r := c.journal.results.Of(j.key)
		if j.committed != 0 && r != nil {
			takers[j.key]++
			if !slices.Contains(r.Takers, j) {
				return fmt.Errorf("job %s of run %d has result %s, which does not know", j.name, j.id.Run(), j.key.Hex())
			}
		}
		if r == nil && j.inJournal() {
			return fmt.Errorf("the outputs of job %s are in no result", j.name)
		}
		shares := j.mayHaveTwins() && j.key != (identity{})
		if is := shares && j.isListed(j.state) && (j.committed == 0 || r == nil); is && !c.jobs.twins.has(j) {
			return fmt.Errorf("job %s of run %d is %v, and not listed among its twins", j.name, j.id.Run(), j.state)
		}
		if shares && c.jobs.twins.has(j) {
			listed++
		}
	}
	for _, key := range c.journal.results.Keys(func(*storedResult) bool { return true }) {
		if n := len(c.journal.results.Of(key).Takers); n != takers[key] {
			return fmt.Errorf("result %s counts %d jobs, and %d have it", key.Hex(), n, takers[key])
		}
	}
	for key := range c.jobs.twins.listed {
		for range c.jobs.twins.each(key) {
			listed--
		}
	}
	if listed != 0 {
		return fmt.Errorf("%d twins are listed that are none", -listed)
	}
	return nil
}
