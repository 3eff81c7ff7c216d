package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"fairway/internal/sim/experiment"
)

// batch models a batch system: what is submitted waits for a while, then for
// a free slot, in the order in which the waits ended.
type batch struct {
	site     *site
	rand     *rand.Rand
	free     []*slot
	waiting  []*queued
	queue    map[string]*queued       // by launch, until it starts
	answered map[string]time.Duration // when the submission of a pilot was
	started  map[string]int           // pilots of a launch that run; without those of one
	slots    []*slot
	whims    *rand.Rand // of what it does besides
	pending  int
	count    int
	occupied int           // slots
	used     time.Duration // of slots, until since
	since    time.Duration
}

// slot is room for one pilot, or one job submitted directly, on a node.
type slot struct {
	host   string
	launch string // what occupies it
	pilot  *pilot // if that is one
}

// queued is something that waits in a batch system.
type queued struct {
	launch    string
	withdrawn bool
	start     func(*slot)
}

func newBatch(s *site) *batch {
	b := &batch{
		site: s, rand: Stream(s.run.seed, "batch", named(s.Name)), whims: Stream(s.run.seed, "whims", named(s.Name)),
		queue: map[string]*queued{}, answered: map[string]time.Duration{}, started: map[string]int{},
	}
	for n := range s.Nodes {
		for range s.Slots {
			b.free = append(b.free, &slot{host: fmt.Sprintf("%s-%04d", s.Name, n)})
		}
	}
	b.slots = slices.Clone(b.free)
	b.rand.Shuffle(len(b.free), func(i, j int) { b.free[i], b.free[j] = b.free[j], b.free[i] })
	return b
}

// submit puts something into the queue, unless that is full. start is called
// when a slot is its own. The batch system may forget it; then forgotten is
// called once that is noticed.
func (b *batch) submit(start func(*slot), forgotten func(launch string)) (launch string, ok bool) {
	if b.site.Batch.Limit > 0 && b.pending >= b.site.Batch.Limit {
		return "", false
	}
	b.count++
	q := &queued{launch: b.site.launchName(b.count), start: start}
	b.pending++
	b.queue[q.launch] = q
	wait, recorded := b.site.waited(b.count)
	if !recorded {
		wait = b.site.Batch.Delay.Draw(b.rand)
	}
	for pause := refusalPause; b.whim(b.site.Batch.Refuse); pause *= 2 {
		b.site.run.faced[SubmissionRefused]++
		wait += pause
	}
	if b.rand.Float64() < float64(b.site.Batch.Forget) {
		b.site.run.after(wait, func() {
			b.site.run.faced[PilotForgotten]++
			b.drop(q)
			b.site.run.at(b.noticed(q.launch), func() { forgotten(q.launch) })
		})
		return q.launch, true
	}
	b.site.run.after(wait, func() {
		b.waiting = append(b.waiting, q)
		b.fill()
	})
	return q.launch, true
}

// refusalPause is the first pause after a submission that was refused (batch.MinPause).
const refusalPause = time.Second

// whim reports whether something happens that happens with a chance.
func (b *batch) whim(c experiment.Chance) bool { return c > 0 && b.whims.Float64() < float64(c) }

// drop takes something out of the queue.
func (b *batch) drop(q *queued) {
	if b.queue[q.launch] != nil {
		delete(b.queue, q.launch)
		b.pending--
	}
}

// withdraw takes back what has not started.
func (b *batch) withdraw(launch string) {
	if q := b.queue[launch]; q != nil {
		q.withdrawn = true
		b.drop(q)
	}
}

// fill gives free slots to what waits.
func (b *batch) fill() {
	for len(b.waiting) > 0 && len(b.free) > 0 {
		q := b.waiting[0]
		b.waiting = b.waiting[1:]
		if q.withdrawn {
			continue
		}
		b.drop(q)
		b.occupy(q)
		if b.site.run.server != nil && len(b.free) > 0 && b.whim(b.site.Batch.Double) {
			b.site.run.faced[StartedTwice]++
			b.started[q.launch] = 2
			b.occupy(q)
			b.site.run.after(b.nextPoll(), func() { b.endBoth(q.launch) })
		}
	}
}

// occupy starts something in a free slot.
func (b *batch) occupy(q *queued) {
	s := b.free[len(b.free)-1]
	b.free = b.free[:len(b.free)-1]
	s.launch = q.launch
	b.charge(1)
	q.start(s)
}

// ended frees a slot; the batch system notices at once, who asks it does so
// when it polls next.
func (b *batch) ended(s *slot) {
	launch := s.launch
	s.launch, s.pilot = "", nil
	b.charge(-1)
	b.free = append(b.free, s)
	if b.started[launch] > 1 {
		b.started[launch]-- // the other one runs
	} else {
		delete(b.started, launch)
		b.site.run.noticeEnd(b.site, launch)
	}
	b.site.run.after(0, b.fill)
}

// charge counts the time of slots, of which so many more are occupied from now
// on.
func (b *batch) charge(more int) {
	now := b.site.run.now
	b.used += time.Duration(b.occupied) * (now - b.since)
	b.occupied += more
	b.since = now
}

// noticed is when the end of a launch is seen: when the batch system is asked
// next, and not before it answered the submission.
func (b *batch) noticed(launch string) time.Duration {
	at := max(b.site.run.now+b.nextPoll(), b.answered[launch])
	for b.whim(b.site.Batch.Silent) {
		b.site.run.faced[StatusLost]++
		at += max(b.site.Batch.Poll, refusalPause)
	}
	delete(b.answered, launch)
	return at
}

// nextPoll is how long until the state of the batch system is asked for.
func (b *batch) nextPoll() time.Duration {
	every := b.site.Batch.Poll
	if every <= 0 {
		return 0
	}
	return every - b.site.run.now%every
}
