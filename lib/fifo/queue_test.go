package fifo

import (
	"fmt"
	"slices"
	"testing"
	"unsafe"

	"fairway/lib/seed"
)

// model is the queue said naively: a list, of which the first write or the
// first run of reads is granted.
type model struct{ entries []modelEntry }

type modelEntry struct {
	id   int
	mode Mode
}

func (m *model) granted() []int {
	var ids []int
	for i, e := range m.entries {
		if i > 0 && (e.mode == Write || m.entries[i-1].mode == Write) {
			break
		}
		ids = append(ids, e.id)
	}
	return ids
}

func (m *model) remove(id int) {
	m.entries = slices.DeleteFunc(m.entries, func(e modelEntry) bool { return e.id == id })
}

type pairing struct {
	queue Queue[int]
	reqs  []*Request[int]
	model model
}

func newPairing(n int) *pairing {
	p := &pairing{}
	for i := range n {
		p.reqs = append(p.reqs, &Request[int]{Owner: i})
	}
	return p
}

// step does one operation on both and compares what they say.
func (p *pairing) step(id int, op byte) error {
	r := p.reqs[id]
	before := p.model.granted()
	var first *Request[int]
	switch {
	case !r.Queued():
		m := Mode(op & 1)
		p.model.entries = append(p.model.entries, modelEntry{id, m})
		got := p.queue.Insert(r, m)
		if want := slices.Contains(p.model.granted(), id); got != want {
			return fmt.Errorf("insert %d as %v: granted %v, want %v", id, m, got, want)
		}
		return p.compare()
	case r.Granted() && op&2 != 0 && !p.reqs[(id+1)%len(p.reqs)].Queued():
		next := (id + 1) % len(p.reqs)
		p.model.entries = append(p.model.entries, modelEntry{next, r.Mode()})
		p.model.remove(id)
		first = p.queue.Cycle(r, p.reqs[next])
	case r.Granted() && op&1 == 0:
		p.model.remove(id)
		first = p.queue.Release(r)
	default:
		p.model.remove(id)
		first = p.queue.Cancel(r)
	}
	var got, want []int
	for n := first; n != nil; n = n.NextGranted() {
		got = append(got, n.Owner)
	}
	for _, g := range p.model.granted() {
		if !slices.Contains(before, g) {
			want = append(want, g)
		}
	}
	if !slices.Equal(got, want) {
		return fmt.Errorf("removing %d granted %v, want %v", id, got, want)
	}
	return p.compare()
}

func (p *pairing) compare() error {
	var ids, granted []int
	var prev *Request[int]
	for r := p.queue.Head(); r != nil; prev, r = r, r.Next() {
		if r.Prev() != prev {
			return fmt.Errorf("request %d: wrong neighbour before it", r.Owner)
		}
		ids = append(ids, r.Owner)
		if r.Granted() {
			granted = append(granted, r.Owner)
		}
	}
	var want []int
	for _, e := range p.model.entries {
		want = append(want, e.id)
	}
	if !slices.Equal(ids, want) || p.queue.Len() != len(want) || p.queue.tail != prev {
		return fmt.Errorf("queue %v of length %d, want %v", ids, p.queue.Len(), want)
	}
	if want := p.model.granted(); !slices.Equal(granted, want) {
		return fmt.Errorf("granted %v, want %v", granted, want)
	}
	return nil
}

func TestQueueAgainstModel(t *testing.T) {
	rng := seed.Source(t)
	for range 300 {
		p := newPairing(1 + rng.IntN(12))
		for i := range 200 {
			if err := p.step(rng.IntN(len(p.reqs)), byte(rng.IntN(4))); err != nil {
				t.Fatalf("operation %d: %v", i, err)
			}
		}
	}
}

func FuzzQueue(f *testing.F) {
	f.Add([]byte{0, 2, 5, 0, 2, 3})
	f.Fuzz(func(t *testing.T, ops []byte) {
		p := newPairing(8)
		for i, op := range ops {
			if err := p.step(int(op>>2)%len(p.reqs), op); err != nil {
				t.Fatalf("operation %d: %v", i, err)
			}
		}
	})
}

func TestCancelledWriteMergesReaders(t *testing.T) {
	var q Queue[string]
	r1, w, r2, r3 := Request[string]{Owner: "r1"}, Request[string]{}, Request[string]{Owner: "r2"},
		Request[string]{Owner: "r3"}
	q.Insert(&r1, Read)
	q.Insert(&w, Write)
	q.Insert(&r2, Read)
	q.Insert(&r3, Read)
	first := q.Cancel(&w)
	if first != &r2 || first.NextGranted() != &r3 || r3.NextGranted() != nil {
		t.Fatalf("cancelling the write between granted and waiting reads did not grant the latter")
	}
}

func TestMisusePanics(t *testing.T) {
	var q Queue[int]
	var w, r Request[int]
	q.Insert(&w, Write)
	q.Insert(&r, Read)
	var free Request[int]
	for name, f := range map[string]func(){
		"insert twice":      func() { q.Insert(&w, Read) },
		"release ungranted": func() { q.Release(&r) },
		"cancel free":       func() { q.Cancel(&free) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			f()
		}()
	}
}

func TestSmallAndWithoutAllocation(t *testing.T) {
	if s := unsafe.Sizeof(Request[*int]{}); s > 32 {
		t.Errorf("a request takes %d bytes", s)
	}
	var q Queue[int]
	var a, b Request[int]
	if n := testing.AllocsPerRun(100, func() {
		q.Insert(&a, Write)
		q.Insert(&b, Read)
		q.Release(&a)
		q.Cancel(&b)
	}); n != 0 {
		t.Errorf("%v allocations a cycle", n)
	}
}

func BenchmarkInsertRelease(b *testing.B) {
	var q Queue[int]
	var r Request[int]
	for b.Loop() {
		q.Insert(&r, Write)
		q.Release(&r)
	}
}
