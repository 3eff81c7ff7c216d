package orwl

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"fairway/lib/seed"
)

// wordGame plays random operations of several tasks at one location, one after the
// other, and compares what they see with a model. All that can have the queue engaged
// happens in between, so each operation meets the word in each of its states.
type wordGame struct {
	t          *testing.T
	rng        *rand.Rand
	location   *Location
	model      modelLocation
	pairs      []Pair
	generation uint64
	version    uint64
}

// standsAt reports whether the task has a request.
func (g *wordGame) standsAt(task int) bool {
	return slices.ContainsFunc(g.model.places, func(p modelPlace) bool { return p.handle == task })
}

func (g *wordGame) step(task int) {
	p := &g.pairs[task]
	mode := Mode(g.rng.IntN(2))
	switch op := g.rng.IntN(4); {
	case !g.standsAt(task):
		must(g.t, p.now().request(g.location, mode))
		g.model.insert(modelPlace{handle: task, mode: mode})
	case !g.model.granted(task):
		if op > 0 {
			return
		}
		must(g.t, p.Cancel())
		g.model.remove(task)
	default:
		must(g.t, p.Acquire(background))
		if p.now().mode == Write && g.rng.IntN(2) == 0 {
			b, err := p.WriteMap()
			must(g.t, err)
			b[0]++
			g.version++
		}
		g.end(task, op)
	}
}

// end ends a request that is granted, in one of the ways.
func (g *wordGame) end(task, op int) {
	p := &g.pairs[task]
	mode := p.now().mode
	g.model.remove(task)
	switch op {
	case 0:
		must(g.t, p.Cancel())
	case 1:
		must(g.t, p.Finish())
	default:
		must(g.t, p.Release())
		g.model.insert(modelPlace{handle: task, mode: mode})
	}
}

// look does something that looks at the queue and changes nothing.
func (g *wordGame) look(trace *Trace) {
	switch g.rng.IntN(8) {
	case 0:
		o := OrderOf(g.location)["l"]
		if len(o) != len(g.model.places) {
			g.t.Fatalf("the order is %v, want %v", o, g.model.places)
		}
		for i, p := range g.model.places {
			// Reads that share the lock stand in any order.
			shared := 0
			for shared < len(g.model.places) && g.model.granted(g.model.places[shared].handle) {
				shared++
			}
			among := o[i : i+1]
			if i < shared {
				among = o[:shared]
			}
			if !slices.Contains(among, Place{Task: g.pairs[p.handle].now().Name, Mode: p.mode}) {
				g.t.Fatalf("the order is %v, want %v", o, g.model.places)
			}
		}
	case 1:
		for _, p := range g.model.places {
			granted(g.t, &g.pairs[p.handle]) // takes the token
			if n := g.pairs[p.handle].Generation(); g.model.granted(p.handle) != (n > 0) {
				g.t.Fatalf("task %d has generation %d in %v", p.handle, n, g.model.places)
			} else if p.mode == Write && n > 0 {
				if n < g.generation {
					g.t.Fatalf("generation %d comes after %d", n, g.generation)
				}
				g.generation = n
			}
		}
	case 2:
		var h Handle
		must(g.t, Insert(background, h.Writing(g.location)))
		must(g.t, h.Cancel())
	case 3, 4, 5:
		calmDown(g.location)
	case 6:
		if trace != nil && g.rng.IntN(10) == 0 {
			trace.Attach(g.location)
		}
	}
}

// calmDown lets l go back to its word as soon as nobody is there, and its reads to slots as soon as
// one shares the lock.
func calmDown(l *Location) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calm, l.reads = calmAfter, readsToOpen
}

func (g *wordGame) compare() {
	if n := g.location.Waiting(); n != len(g.model.places) {
		g.t.Fatalf("%d requests stand there, want %v", n, g.model.places)
	}
	if n := g.location.Version(); n != g.version {
		// What is mapped counts with its release.
		if !slices.ContainsFunc(g.model.places, func(p modelPlace) bool { return p.mode == Write }) || n+1 != g.version {
			g.t.Fatalf("version %d, want %d", n, g.version)
		}
	}
	for task := range g.pairs {
		if !g.standsAt(task) {
			if h := g.pairs[task].now(); h.busy() || h.token.Given() {
				g.t.Fatalf("task %d has something left", task)
			}
			continue
		}
		if got, want := granted(g.t, &g.pairs[task]), g.model.granted(task); got != want {
			g.t.Fatalf("task %d is granted: %v, want %v of %v", task, got, want, g.model.places)
		}
	}
}

func TestWordAgainstModel(t *testing.T) {
	rng := seed.Source(t)
	for i := range rounds(200) {
		g := &wordGame{t: t, rng: rng, location: newLocation(t, "l", 8), model: modelLocation{limit: 8}}
		g.pairs = make([]Pair, 1+rng.IntN(4))
		for task := range g.pairs {
			g.pairs[task].SetName(fmt.Sprint("task ", task))
		}
		var trace *Trace
		if i%4 == 0 {
			trace = new(Trace)
		}
		for range 200 {
			g.step(rng.IntN(len(g.pairs)))
			g.look(trace)
			g.compare()
		}
	}
}

// Who meets nobody needs neither the mutex nor the queue: here another one has the mutex all
// the time.
func TestUncontendedLeavesTheQueueAlone(t *testing.T) {
	l := newLocation(t, "l", 8)
	l.mu.Lock()
	defer l.mu.Unlock()
	var h Handle
	var p Pair
	for _, mode := range []Mode{Read, Write} {
		must(t, h.request(l, mode))
		must(t, h.Acquire(background))
		_, err := h.view(mode)
		must(t, err)
		must(t, h.Release())
		must(t, p.now().request(l, mode))
		for range 3 {
			must(t, p.Acquire(background))
			_, err := p.now().view(mode)
			must(t, err)
			must(t, p.Release())
		}
		must(t, p.Cancel())
	}
}

// Tasks take and give back the word while others engage the queue. Writers are alone,
// every grant has a higher generation than those whose data it sees, no request is lost, and all
// that was written is seen; the race detector watches the data.
func TestWordUnderContention(t *testing.T) {
	rng := seed.Source(t)
	const tasks = 4
	for range rounds(5) {
		l := newLocation(t, "l", 16)
		var all sync.WaitGroup
		var written [tasks]uint64
		for task := range tasks {
			own := rand.New(rand.NewPCG(rng.Uint64(), 0))
			all.Go(func() { written[task] = contend(t, l, own, 2000) })
		}
		all.Wait()
		if l.Waiting() != 0 {
			t.Fatalf("%d requests are left", l.Waiting())
		}
		sum := uint64(0)
		for _, n := range written {
			sum += n
		}
		if b := read(t, l); binary.LittleEndian.Uint64(b) != sum || l.Version() != sum {
			t.Fatalf("%d writes are seen, and %d versions, of %d", binary.LittleEndian.Uint64(b), l.Version(), sum)
		}
	}
}

// contend uses l for a number of times, in all ways, and returns how often it wrote.
func contend(t *testing.T, l *Location, rng *rand.Rand, times int) (writes uint64) {
	ended, cancel := context.WithCancel(background)
	cancel()
	var p Pair
	for range times {
		if !p.now().busy() {
			if err := p.now().request(l, Mode(rng.IntN(2))); err != nil {
				t.Error(err)
			}
		}
		if rng.IntN(8) == 0 && p.Acquire(ended) != nil {
			continue // withdrawn
		}
		if err := p.Acquire(background); err != nil {
			t.Error(err)
		}
		writes += use(t, &p, rng)
		end := (*Pair).Finish
		if rng.IntN(2) == 0 {
			end = (*Pair).Release
		}
		if err := end(&p); err != nil {
			t.Error(err)
		}
		if rng.IntN(16) == 0 {
			OrderOf(l)
		}
		if rng.IntN(2) == 0 {
			calmDown(l)
		}
	}
	if err := p.Cancel(); err != nil {
		t.Error(err)
	}
	return writes
}

// use counts in the data, and checks the generation against that of the last one who
// wrote.
func use(t *testing.T, p *Pair, rng *rand.Rand) uint64 {
	b, err := p.ReadMap()
	if err != nil {
		t.Error(err)
		return 0
	}
	last := binary.LittleEndian.Uint64(b[8:])
	generation := last
	if rng.IntN(4) == 0 {
		if generation = p.Generation(); generation <= last {
			t.Errorf("generation %d comes after %d", generation, last)
		}
	}
	if p.now().mode == Read {
		return 0
	}
	if b, err = p.WriteMap(); err != nil {
		t.Error(err)
		return 0
	}
	binary.LittleEndian.PutUint64(b, binary.LittleEndian.Uint64(b)+1)
	binary.LittleEndian.PutUint64(b[8:], generation)
	return 1
}

// A location that many have used goes back to its word when it has been calm for a while, and
// not before.
func TestWordAfterContention(t *testing.T) {
	l := newLocation(t, "l", 8)
	var h, other Handle
	var p Pair
	for range 3 * calmAfter {
		must(t, h.WriteRequest(l))
		must(t, other.ReadRequest(l))
		must(t, h.Release())
		must(t, other.Acquire(background))
		must(t, other.Release())
		if l.word.Load() != queueing {
			t.Fatal("the queue is engaged for each of those who meet")
		}
	}
	for range calmAfter {
		must(t, h.WriteRequest(l))
		must(t, h.Release())
	}
	if l.word.Load() != nil {
		t.Fatal("the location does not go back to its word")
	}
	must(t, p.WriteRequest(l))
	OrderOf(l)
	for range calmAfter {
		must(t, p.Release())
	}
	if l.word.Load() != p.now() || l.Waiting() != 1 {
		t.Fatal("the location does not go back to its word for a pair")
	}
	must(t, p.Cancel())
}
