package forecast

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"fairway/internal/history"
)

// around is what it takes to go from one attempt to the next.
type around struct {
	between  time.Duration // on a slot that has the next one already
	reaction time.Duration // from the end of a job to the begin of one that waited for it, on a free slot
}

// around measures both on attempts that begin after another one on their pilot: the slot waited
// for the job, or the job for the slot.
func (o *observed) around() around {
	var between, reaction []time.Duration
	for _, name := range o.names {
		list := o.pilots[name]
		for i := 1; i < len(list); i++ {
			p := list[i]
			if p.attempt != firstOf(p.job) {
				continue
			}
			begin, ready := p.attempt.Begin(), o.ready(p.job)
			var freed time.Time // the last slot, which is before what its command wrote is stored
			for _, q := range list[:i] {
				if e := commandEnd(q.attempt); !e.After(begin) && e.After(freed) {
					freed = e
				}
			}
			switch {
			case freed.IsZero():
			case ready.After(freed):
				reaction = append(reaction, max(0, begin.Sub(ready)))
			default:
				between = append(between, begin.Sub(freed))
			}
		}
	}
	a := around{between: median(between), reaction: median(reaction)}
	a.reaction = max(a.reaction, a.between)
	return a
}

// commandEnd is when the command of an attempt ended, or the attempt itself where it had none.
func commandEnd(a *history.Attempt) time.Time {
	if a.Start.IsZero() {
		return a.Ended()
	}
	return a.End
}

func firstOf(j *history.Job) *history.Attempt {
	for i := range j.Attempts {
		if a := &j.Attempts[i]; isTimed(a) {
			return a
		}
	}
	return nil
}

func median[T cmp.Ordered](values []T) (middle T) {
	if len(values) == 0 {
		return middle
	}
	values = slices.Sorted(slices.Values(values))
	return values[len(values)/2]
}

// findBackoff finds for each step the pause after a first failure: the least that was seen.
func (o *observed) findBackoff() {
	for _, j := range o.jobs {
		var before *history.Attempt
		for i := range j.Attempts {
			a := &j.Attempts[i]
			if !isTimed(a) {
				continue
			}
			if before != nil && before == firstOf(j) {
				pause := max(a.Begin().Sub(before.Ended()), time.Millisecond)
				if least, ok := o.backoff[j.Step]; !ok || pause < least {
					o.backoff[j.Step] = pause
				}
			}
			before = a
		}
	}
}

// interval is a time in which an attempt does something on a host.
type interval struct {
	from, to time.Time
	of       *history.Attempt
}

// countBeside finds how many attempts compute, and read, side by side on each host.
func (o *observed) countBeside() {
	o.beside = map[*history.Attempt]beside{}
	computing, staging := map[string][]interval{}, []interval{}
	for _, p := range o.all {
		a := p.attempt
		end := a.Start
		if a.Start.IsZero() {
			end = a.Ended()
		} else {
			computing[a.Host] = append(computing[a.Host], interval{a.Start, a.End, a})
		}
		if a.BytesRead > a.BytesCached {
			staging = append(staging, interval{a.Begin(), end, a})
		}
	}
	for _, list := range computing {
		for a, n := range meanBeside(list) {
			b := o.beside[a]
			b.computing = n
			o.beside[a] = b
		}
	}
	for a, n := range meanBeside(staging) {
		b := o.beside[a]
		b.staging = n
		o.beside[a] = b
	}
}

// meanBeside gives for each interval how many there are at a time, in the mean over it.
func meanBeside(list []interval) map[*history.Attempt]float64 {
	type change struct {
		at time.Time
		by int
	}
	var changes []change
	for _, x := range list {
		changes = append(changes, change{x.from, 1}, change{x.to, -1})
	}
	slices.SortFunc(changes, func(a, b change) int { return a.at.Compare(b.at) })
	times := make([]time.Time, len(changes))
	sums := make([]float64, len(changes)) // seconds of all intervals until then
	now, sum := 0, 0.0
	for i, c := range changes {
		if i > 0 {
			sum += float64(now) * c.at.Sub(changes[i-1].at).Seconds()
		}
		now += c.by
		times[i], sums[i] = c.at, sum
	}
	until := func(t time.Time) float64 {
		i, _ := slices.BinarySearchFunc(times, t, time.Time.Compare)
		return sums[min(i, len(sums)-1)]
	}
	means := map[*history.Attempt]float64{}
	for _, x := range list {
		means[x.of] = 1
		if span := x.to.Sub(x.from).Seconds(); span > 0 {
			means[x.of] = max(1, (until(x.to)-until(x.from))/span)
		}
	}
	return means
}

// line is how fast files are read from storage.
type line struct {
	bandwidth float64 // bytes per second of all together; 0: the limit is that of each
	each      float64 // bytes per second of each; 0: there is no limit
}

// takes is how long reading takes, in the mean beside so many others.
func (l line) takes(bytes int64, beside float64) time.Duration {
	switch {
	case bytes <= 0:
		return 0
	case l.bandwidth > 0:
		return seconds(float64(bytes) / l.bandwidth * max(1, beside))
	case l.each > 0:
		return seconds(float64(bytes) / l.each)
	}
	return 0
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// fewBytes is what an attempt must have read for its stage-in to tell of a speed.
const fewBytes = 1 << 20

// line measures the speed of storage: one that all attempts share, if their speeds differ less when
// multiplied by how many read at a time.
func (o *observed) line() line {
	var idle []time.Duration // stage-in of attempts that read nothing
	for _, p := range o.all {
		if a := p.attempt; a.BytesRead == 0 && !a.Start.IsZero() {
			idle = append(idle, a.Start.Sub(a.Begin()))
		}
	}
	besides := median(idle)
	var alone, shared []float64
	for _, p := range o.all {
		a := p.attempt
		read := a.BytesRead - a.BytesCached
		if read < fewBytes || a.Start.IsZero() {
			continue
		}
		speed := float64(read) / max(a.Start.Sub(a.Begin())-besides, time.Millisecond).Seconds()
		alone, shared = append(alone, speed), append(shared, speed*max(1, o.beside[a].staging))
	}
	switch {
	case len(alone) == 0:
		return line{}
	case spread(shared) < spread(alone):
		return line{bandwidth: median(shared)}
	}
	return line{each: median(alone)}
}

// spread is the standard deviation of the logarithms.
func spread(values []float64) float64 {
	var sum, squares float64
	for _, v := range values {
		sum += math.Log(v)
	}
	mean := sum / float64(len(values))
	for _, v := range values {
		squares += (math.Log(v) - mean) * (math.Log(v) - mean)
	}
	return math.Sqrt(squares / float64(len(values)))
}

// Jobs of which at least busyShare of their time was computing can slow each other down. A slope
// counts if it is certain so many times over, from so many attempts, which differ so much in how
// many compute beside them.
const (
	busyShare    = 0.2
	certain      = 3
	fewAttempts  = 12
	littleVaries = 0.3
	mostSlowing  = 1 // all share one processor
)

// fitSlowing finds how much longer jobs compute for each other one on their host: the slope of their
// times, over the mean of their step, by how many there are.
func (m *Model) fitSlowing(o *observed) {
	type sample struct{ beside, time float64 }
	steps := map[string][]sample{}
	for _, p := range o.all {
		a := p.attempt
		span := a.End.Sub(a.Start)
		if a.Failed || a.Start.IsZero() || span <= 0 || a.CPU.Seconds() < busyShare*span.Seconds() {
			continue
		}
		steps[p.job.Step] = append(steps[p.job.Step], sample{o.beside[a].computing, span.Seconds()})
	}
	var xx, xy, yy, weight, middle float64
	n, groups := 0, 0
	for _, step := range slices.Sorted(maps.Keys(steps)) { // so that sums do not depend on chance
		list := steps[step]
		var x, y float64
		for _, s := range list {
			x, y = x+s.beside, y+s.time
		}
		x, y = x/float64(len(list)), y/float64(len(list))
		for _, s := range list {
			dx, dy := s.beside-x, s.time/y-1
			xx, xy, yy = xx+dx*dx, xy+dx*dy, yy+dy*dy
		}
		n, groups = n+len(list), groups+1
		weight, middle = weight+float64(len(list)), middle+x*float64(len(list))
	}
	if n == 0 {
		return
	}
	middle /= weight
	if n < fewAttempts || xx/float64(n) < littleVaries*littleVaries {
		m.Notes = append(m.Notes, "Jobs compute, and nearly always as many side by side: whether more of them slow each "+
			"other down cannot be told from this run.")
		return
	}
	slope := xy / xx
	rest := max(0, yy-slope*xy) / float64(max(1, n-groups-1))
	if slope <= 0 || slope < certain*math.Sqrt(rest/xx) {
		return
	}
	if alone := 1 - slope*(middle-1); alone > 0 {
		m.slow = min(slope/alone, mostSlowing)
	}
}

// sites finds the pilots of each site: how many there were at a time, what their jobs took, and how
// long each was awaited.
func (o *observed) sites(reaction time.Duration) (all []*site) {
	byName := map[string]*site{}
	backlogs := o.backlogs(reaction)
	hosts := map[string]map[string]bool{}
	lives := map[string][]interval{}
	for _, name := range o.names {
		list := o.pilots[name]
		first := list[0]
		at := first.attempt.Site()
		s := byName[at]
		if s == nil {
			s = &site{name: at}
			byName[at], hosts[at] = s, map[string]bool{}
			all = append(all, s)
		}
		hosts[at][first.attempt.Host] = true
		last := first.attempt.Ended()
		for _, p := range list {
			if p.attempt.Ended().After(last) {
				last = p.attempt.Ended()
			}
		}
		lives[at] = append(lives[at], interval{from: first.attempt.Begin(), to: last})
		s.milliCPUs = max(s.milliCPUs, mostCPUs(list))
		s.waits = append(s.waits, max(0, first.attempt.Begin().Sub(backlogs.since(o, first))-reaction))
	}
	for _, s := range all {
		s.hosts, s.pilots = len(hosts[s.name]), mostAtOnce(lives[s.name])
	}
	return all
}

// backlogs are the times in which jobs could have begun and had no slot, one after the other.
type backlogs []interval

// soon is up to how much later than the reaction a job begins that had a slot.
const soon = 50 * time.Millisecond

func (o *observed) backlogs(reaction time.Duration) (all backlogs) {
	var waiting []interval
	for _, p := range o.all {
		if from, to := o.ready(p.job), p.attempt.Begin(); p.attempt == firstOf(p.job) && to.Sub(from) > reaction+soon {
			waiting = append(waiting, interval{from: from, to: to})
		}
	}
	slices.SortFunc(waiting, func(a, b interval) int { return a.from.Compare(b.from) })
	for _, w := range waiting {
		if n := len(all); n > 0 && !w.from.After(all[n-1].to) {
			if w.to.After(all[n-1].to) {
				all[n-1].to = w.to
			}
			continue
		}
		all = append(all, w)
	}
	return all
}

// since is when the pilot was wanted whose first attempt this is: the begin of the backlog in which
// it came or, where another one of its site had gone by then, in whose place it may be, not before that.
func (b backlogs) since(o *observed, first placed) time.Time {
	begin := first.attempt.Begin()
	since := begin
	if first.attempt == firstOf(first.job) {
		since = o.ready(first.job)
	}
	for _, x := range b {
		if !x.from.After(since) && !x.to.Before(since) {
			since = x.from
		}
	}
	for _, name := range o.names {
		list := o.pilots[name]
		last := list[len(list)-1].attempt.Ended()
		if list[0].attempt.Site() == first.attempt.Site() && last.Before(begin) && last.After(since) {
			since = last
		}
	}
	return since
}

// mostAtOnce is how many intervals there are at a time at most.
func mostAtOnce(list []interval) (most int) {
	for _, x := range list {
		n := 0
		for _, y := range list {
			if !y.from.After(x.from) && y.to.After(x.from) || y == x {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}

// mostCPUs is what the jobs of a pilot took at most at a time, in thousandths of a processor.
func mostCPUs(list []placed) (most int64) {
	type change struct {
		at time.Time
		by int64
	}
	var changes []change
	for _, p := range list {
		a, needs := p.attempt, cmp.Or(p.job.MilliCPUs, wholeCPU)
		most = max(most, needs)
		if end := commandEnd(a); end.After(a.Begin()) {
			changes = append(changes, change{a.Begin(), needs}, change{end, -needs})
		}
	}
	slices.SortFunc(changes, func(a, b change) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.by, b.by)) })
	now := int64(0)
	for _, c := range changes {
		now += c.by
		most = max(most, now)
	}
	return most
}
