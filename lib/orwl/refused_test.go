package orwl

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"fairway/lib/seed"
)

// A refused insertion that had a write and a read of one location leaves nothing with
// the handle of the read: no token that ends a later wait too early.
func TestRefusedInsertionLeavesNoToken(t *testing.T) {
	x, full := newLocation(t, "x", 8), newLocation(t, "full", 8, MaxRequests(1))
	var blocker, holder, w, r Handle
	must(t, blocker.ReadRequest(full))
	gate := NewGate(2)
	must(t, gate.Insert(background, "writer", w.Writing(x)))
	err := gate.Insert(background, "reader", r.Reading(x).At(1), new(Handle).Reading(full).At(2))
	if !errors.Is(err, ErrFull) {
		t.Fatal(err)
	}
	must(t, holder.WriteRequest(x))
	must(t, r.ReadRequest(x))
	if granted(t, &r) {
		t.Fatal("the read is granted beside a write")
	}
	must(t, holder.Release())
	must(t, r.Acquire(background))
	must(t, r.Release())
}

// The owner of two locations refuses the same from another process, and goes on.
func TestRefusedInsertionThroughMirrors(t *testing.T) {
	x, full := newLocation(t, "x", 8), newLocation(t, "full", 8, MaxRequests(1))
	_, p := served(t, "tcp", x, full)
	mx, mf := mirror(t, p, "x"), mirror(t, p, "full")
	var blocker, w, r Handle
	must(t, blocker.ReadRequest(full))
	err := insertAll(background, []Posting{w.Writing(mx), r.Reading(mx), new(Handle).Reading(mf)})
	if !errors.Is(err, ErrFull) {
		t.Fatal(err)
	}
	write(t, mx, func([]byte) {})
	waitFor(t, func() bool { return x.Waiting() == 0 })
}

// A part that another owner refuses is taken back before it can complete the start of a
// location.
func TestRefusedInsertionStartsNothing(t *testing.T) {
	x, full := newLocation(t, "x", 8, StartWith(2)), newLocation(t, "full", 8, MaxRequests(1))
	_, p := served(t, "tcp", full)
	var blocker, first, refused, second Handle
	must(t, blocker.ReadRequest(full))
	must(t, first.WriteRequest(x))
	err := insertAll(background, []Posting{refused.Writing(x), new(Handle).Reading(mirror(t, p, "full"))})
	if !errors.Is(err, ErrFull) {
		t.Fatal(err)
	}
	if granted(t, &first) {
		t.Fatal("a request that was taken back counts for the start")
	}
	must(t, Insert(background, second.Writing(x).At(-1)))
	if granted(t, &first) || !granted(t, &second) {
		t.Fatal("ranks do not make the order")
	}
}

// A location that can never start is refused when it is made.
func TestStartBeyondTheLimit(t *testing.T) {
	if _, err := New("x", 8, StartWith(3), MaxRequests(2)); err == nil {
		t.Fatal("a location was made that waits for more requests than it takes")
	}
}

// modelLocation says naively what stands at a location.
type modelLocation struct {
	limit, start int // start counts the requests that are missing before the first grant
	places       []modelPlace
}

type modelPlace struct {
	handle, rank int
	mode         Mode
}

func (m *modelLocation) insert(p modelPlace) {
	m.places = append(m.places, p)
	if m.start > 0 && len(m.places) == m.start {
		m.start = 0
		slices.SortStableFunc(m.places, func(a, b modelPlace) int { return a.rank - b.rank })
	}
}

func (m *modelLocation) remove(handle int) {
	m.places = slices.DeleteFunc(m.places, func(p modelPlace) bool { return p.handle == handle })
}

func (m *modelLocation) granted(handle int) bool {
	for i, p := range m.places {
		if m.start > 0 || i > 0 && (p.mode == Write || m.places[i-1].mode == Write) {
			return false
		}
		if p.handle == handle {
			return true
		}
	}
	return false
}

// insertions plays random insertions, refused ones among them, at locations and
// their mirrors, and a model of them.
type insertions struct {
	t       *testing.T
	rng     *rand.Rand
	locs    []*Location
	ways    [][]Resource // one of which each insertion takes
	peer    *Peer        // nil where all is in this process
	model   []modelLocation
	handles []Handle
	at      []int // the location of each handle's request, or -1
}

func newInsertions(t *testing.T, rng *rand.Rand, withMirrors bool) *insertions {
	p := &insertions{t: t, rng: rng, handles: make([]Handle, 8), at: slices.Repeat([]int{-1}, 8)}
	for i := range 3 {
		m := modelLocation{limit: 1 + rng.IntN(5)}
		m.start = rng.IntN(m.limit + 1)
		p.model = append(p.model, m)
		p.locs = append(p.locs, newLocation(t, fmt.Sprint("l", i), 8, MaxRequests(m.limit), StartWith(m.start)))
	}
	p.ways = [][]Resource{resources(p.locs)}
	if withMirrors {
		_, p.peer = served(t, "tcp", p.locs...)
		mirrors, mixed := make([]Resource, len(p.locs)), resources(p.locs)
		for i, l := range p.locs {
			mirrors[i] = mirror(t, p.peer, l.name)
		}
		mixed[1] = mirrors[1]
		p.ways = append(p.ways, mirrors, mixed)
	}
	return p
}

// insert inserts a random number of requests together, and reports whether the model
// says that they fit.
func (p *insertions) insert() bool {
	way := p.ways[p.rng.IntN(len(p.ways))]
	var postings []Posting
	fits, count, used := true, make([]int, len(p.locs)), make(map[int]bool)
	var places []modelPlace
	var at []int
	for range 1 + p.rng.IntN(4) {
		h, l := p.rng.IntN(len(p.handles)), p.rng.IntN(len(p.locs))
		place := modelPlace{handle: h, rank: p.rng.IntN(3), mode: Mode(p.rng.IntN(2))}
		postings = append(postings, Posting{handle: &p.handles[h], resource: way[l], mode: place.mode, Rank: place.rank})
		count[l]++
		fits = fits && p.at[h] < 0 && !used[h] && len(p.model[l].places)+count[l] <= p.model[l].limit
		used[h] = true
		places, at = append(places, place), append(at, l)
	}
	err := insertAll(background, postings)
	if (err == nil) != fits || err != nil && !errors.Is(err, ErrFull) && !errors.Is(err, ErrBusy) {
		p.t.Fatalf("inserting %+v at %v: %v, which should succeed: %v", places, at, err, fits)
	}
	if fits {
		for i, place := range places {
			p.model[at[i]].insert(place)
			p.at[place.handle] = at[i]
		}
	}
	return fits
}

func (p *insertions) cancel(h int) {
	must(p.t, p.handles[h].Cancel())
	if l := p.at[h]; l >= 0 {
		p.model[l].remove(h)
		p.at[h] = -1
	}
}

// compare compares the locations with the model, when all that was sent has been done.
func (p *insertions) compare() {
	p.t.Helper()
	if p.peer != nil {
		if _, err := p.peer.Mirror(background, "nothing"); !errors.Is(err, ErrUnknown) {
			p.t.Fatal(err)
		}
	}
	for i, m := range p.model {
		if n := standing(p.locs[i]); n != len(m.places) {
			p.t.Fatalf("%d requests stand at location %d, want %+v", n, i, m.places)
		}
	}
	for h, l := range p.at {
		if l < 0 {
			if _, err := p.handles[h].Test(); !errors.Is(err, ErrNotRequested) || p.handles[h].token.Given() {
				p.t.Fatalf("handle %d has something left: %v", h, err)
			}
			continue
		}
		want := p.model[l].granted(h)
		if p.peer != nil && want { // the grant may be on its way
			must(p.t, p.handles[h].Acquire(background))
		}
		if got := granted(p.t, &p.handles[h]); got != want {
			p.t.Fatalf("handle %d is granted: %v, want %v of %+v", h, got, want, p.model[l].places)
		}
	}
}

// standing counts the requests in the queue of l and behind its latch.
func standing(l *Location) int {
	l.lock()
	defer l.mu.Unlock()
	n := l.queue.Len()
	if l.latch != nil {
		n += len(l.latch.postponed)
	}
	return n
}

func TestInsertionsAgainstModel(t *testing.T) {
	for name, withMirrors := range map[string]bool{"locations": false, "mirrors": true} {
		t.Run(name, func(t *testing.T) {
			rng := seed.Source(t)
			refused, inserted := 0, 0
			for range rounds(30) {
				p := newInsertions(t, rng, withMirrors)
				for range 60 {
					if p.rng.IntN(2) == 0 {
						p.cancel(p.rng.IntN(len(p.handles)))
					} else if p.insert() {
						inserted++
					} else {
						refused++
					}
					p.compare()
				}
				for h := range p.handles {
					p.cancel(h)
				}
				p.compare()
			}
			if refused == 0 || inserted == 0 {
				t.Fatalf("%d insertions were refused, %d not: the test shows nothing", refused, inserted)
			}
		})
	}
}
