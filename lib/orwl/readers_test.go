package orwl

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"fairway/lib/seed"
)

// opened returns a location whose reads go by slots, and a handle that reads it in the queue.
func opened(t testing.TB, options ...Option) (*Location, *Handle) {
	t.Helper()
	l := newLocation(t, "l", 8, options...)
	first := new(Handle)
	must(t, first.ReadRequest(l))
	for range readsToOpen {
		var h Handle
		must(t, h.ReadRequest(l))
		must(t, h.Release())
	}
	if l.word.Load() != reading {
		t.Fatal("reads do not go by slots")
	}
	return l, first
}

// A writer that waits closes the slots: readers that come later wait behind it, and it has the lock
// when those before it have left, whichever way they came.
func TestWriterClosesTheSlots(t *testing.T) {
	l, first := opened(t)
	var before, writer, after Handle
	must(t, before.ReadRequest(l))
	if before.slot == nil {
		t.Fatal("the reader has no slot")
	}
	must(t, writer.WriteRequest(l))
	must(t, after.ReadRequest(l))
	if granted(t, &writer) || granted(t, &after) || l.Waiting() != 4 {
		t.Fatalf("somebody overtakes: %d requests stand there", l.Waiting())
	}
	must(t, before.Release())
	if granted(t, &writer) {
		t.Fatal("the writer does not wait for the reader in the queue")
	}
	must(t, first.Release())
	if !granted(t, &writer) || granted(t, &after) {
		t.Fatal("the writer does not have the lock alone")
	}
	must(t, writer.Release())
	must(t, after.Acquire(background))
	must(t, after.Release())
}

// More readers than slots share the lock too.
func TestMoreReadersThanSlots(t *testing.T) {
	l, first := opened(t)
	handles := make([]Handle, 3*readerSlots)
	for i := range handles {
		must(t, handles[i].ReadRequest(l))
		if !granted(t, &handles[i]) {
			t.Fatalf("reader %d waits", i)
		}
	}
	if n := l.Waiting(); n != len(handles)+1 || l.word.Load() != reading {
		t.Errorf("%d requests stand there", n)
	}
	seen := make(map[uint64]bool)
	for i := range handles {
		seen[handles[i].Generation()] = true
	}
	if len(seen) != len(handles) || seen[0] {
		t.Errorf("%d readers have %d generations", len(handles), len(seen))
	}
	for i := range handles {
		must(t, handles[i].Release())
	}
	must(t, first.Release())
	if n := l.Waiting(); n != 0 {
		t.Errorf("%d requests are left", n)
	}
}

// The limit of the queue counts readers in slots.
func TestReadersInSlotsCountForTheLimit(t *testing.T) {
	const limit = readerSlots + 4
	l, first := opened(t, MaxRequests(limit))
	var all []*Handle
	for {
		h := new(Handle)
		if h.ReadRequest(l) != nil {
			break
		}
		all = append(all, h)
	}
	if len(all)+1 != limit {
		t.Errorf("%d requests, at most %d are allowed", len(all)+1, limit)
	}
	for _, h := range append(all, first) {
		must(t, h.Release())
	}
}

// Many readers by handles and pairs, and now and then a writer, all at once: nobody sees half of a
// write, and no write is lost. What a writer does to the slots happens at every moment.
func TestReadersAndWritersTogether(t *testing.T) {
	rng := seed.Source(t)
	for range rounds(5) {
		l := newLocation(t, "l", 16)
		var all sync.WaitGroup
		var writing, inside atomic.Int32
		var written atomic.Uint64
		const each = 2000
		look := func(h Mappable) {
			inside.Add(1)
			d, err := ReadAs[uint64](h)
			if err != nil || d[0] != d[1] || writing.Load() != 0 {
				t.Errorf("a reader sees %v beside %d writers: %v", d, writing.Load(), err)
			}
			inside.Add(-1)
		}
		for range 6 {
			own := rand.New(rand.NewPCG(rng.Uint64(), 1))
			all.Go(func() {
				var h Handle
				var p Pair
				must(t, p.ReadRequest(l))
				for range each {
					if own.IntN(4) > 0 {
						must(t, p.Acquire(background))
						look(&p)
						must(t, p.Release())
						continue
					}
					must(t, h.ReadRequest(l))
					if own.IntN(8) == 0 {
						must(t, h.Cancel())
						continue
					}
					// The pair's request may stand before a writer's: release it in between.
					must(t, p.Cancel())
					must(t, h.Acquire(background))
					look(&h)
					must(t, h.Release())
					must(t, p.ReadRequest(l))
				}
				must(t, p.Cancel())
			})
		}
		for range 2 {
			own := rand.New(rand.NewPCG(rng.Uint64(), 2))
			all.Go(func() {
				var h Handle
				for range each / 20 {
					must(t, h.WriteRequest(l))
					must(t, Do(background, &h, func(d []uint64) error {
						if writing.Add(1) != 1 || inside.Load() != 0 {
							t.Error("a writer is not alone")
						}
						d[0]++
						d[1]++
						written.Add(1)
						writing.Add(-1)
						return nil
					}))
					for range own.IntN(300) {
						writing.Load()
					}
				}
			})
		}
		all.Wait()
		var h Handle
		must(t, h.ReadRequest(l))
		must(t, DoReading(background, &h, func(d []uint64) error {
			if d[0] != written.Load() {
				t.Errorf("%d of %d writes are left", d[0], written.Load())
			}
			return nil
		}))
	}
}

// Histories with many more reads than writes are linearizable too.
func TestHistoryOfReadersIsLinearizable(t *testing.T) {
	rng := seed.Source(t)
	for range rounds(10) {
		l, first := opened(t)
		clients := []Resource{l, l, l, l, l, l}
		go func() { _ = first.Release() }()
		checkLinearizable(t, readersHistory(t, rng, clients, 25))
	}
}

func BenchmarkReaders(b *testing.B) {
	b.Run("handles", func(b *testing.B) {
		l := newLocation(b, "l", 8)
		b.SetParallelism(4)
		b.RunParallel(func(pb *testing.PB) {
			var h Handle
			for pb.Next() {
				_ = h.ReadRequest(l)
				_ = h.Acquire(background)
				_ = h.Release()
			}
		})
	})
	b.Run("RWMutex", func(b *testing.B) {
		var mu sync.RWMutex
		b.SetParallelism(4)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				mu.RLock()
				mu.RUnlock() //nolint:staticcheck // the empty section is what is measured
			}
		})
	})
}
