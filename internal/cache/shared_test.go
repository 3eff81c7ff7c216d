package cache

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// meet makes caches know each other.
func meet(all ...*Cache) {
	var folders []string
	for _, c := range all {
		folders = append(folders, c.Dir())
	}
	for _, c := range all {
		c.SetPeers(folders)
	}
}

func TestLinksFromPeers(t *testing.T) {
	dir := t.TempDir()
	a, _ := open(t, dir, "a", shared)
	b, seen := open(t, dir, "b", shared)
	put(t, a, "before", 10).Release()
	meet(a, b)
	put(t, a, "after", 10).Release()
	seen.until(t, func() bool { return has(b, "before") && has(b, "after") })
	here, there := put(t, a, "after", 10), put(t, b, "after", 10)
	x, _ := os.Stat(here.Path())
	y, _ := os.Stat(there.Path())
	if !os.SameFile(x, y) {
		t.Error("the host holds the contents twice")
	}
	here.Release()
	there.Release()
	if limitOf(a) != 200 {
		t.Error("the space is not pooled:", limitOf(a))
	}
}

// A file that a peer has is taken from it at once, whatever was noticed, but not
// one of another attempt.
func TestTakesFromPeerWhatIsAsked(t *testing.T) {
	dir := t.TempDir()
	a, _ := open(t, dir, "a", shared)
	b, _ := open(t, dir, "b", shared)
	meet(a, b)
	put(t, a, "x", 10).Release()
	elsewhere := errors.New("it is on the host")
	bring := func(string) (int64, Hash, error) { return 0, Hash{}, elsewhere }
	f, hit, err := b.Fetch(t.Context(), item("x", 10), bring)
	if err != nil || !hit {
		t.Fatal(hit, err)
	}
	f.Release()
	other := item("x", 10)
	other.Tag = 7
	if _, _, err := b.Fetch(t.Context(), other, bring); !errors.Is(err, elsewhere) {
		t.Fatal(err)
	}
}

func TestTheHostDropsAFileAsOne(t *testing.T) {
	dir := t.TempDir()
	a, _ := open(t, dir, "a", shared)
	b, seen := open(t, dir, "b", shared)
	meet(a, b)
	put(t, a, "x", 90).Release()
	seen.until(t, func() bool { return has(b, "x") })
	put(t, a, "y", 90).Release()
	put(t, a, "z", 90).Release() // there is room when the peer has dropped x too
	seen.until(t, func() bool { return !has(b, "x") })
	files, bytes := a.Evicted()
	if more, others := b.Evicted(); files+more != 1 || bytes+others != 90 {
		t.Errorf("of one file of 90 bytes that went, %d of %d bytes are counted", files+more, bytes+others)
	}
}

// What another pilot of the host has in use is not given up for a new file, since that would
// free nothing.
func TestWhatAPeerUsesIsNotGivenUp(t *testing.T) {
	dir := t.TempDir()
	a, seen := open(t, dir, "a", shared)
	b, _ := open(t, dir, "b", shared)
	meet(a, b)
	used := put(t, b, "x", 90)
	seen.until(t, func() bool { return has(a, "x") })
	put(t, a, "y", 90).Release()
	put(t, a, "z", 90).Release()
	if !has(a, "x") || has(a, "y") {
		t.Error("x is in use and y is not, but the cache holds", a.Contents())
	}
	used.Release()
	put(t, a, "w", 90).Release()
	if has(a, "x") {
		t.Error("x is not in use any more, but the cache holds", a.Contents())
	}
}

// A peer that does not look at the folders of others is waited for once.
func TestAPeerThatDropsNothingIsWaitedForOnce(t *testing.T) {
	dir := t.TempDir()
	a, seen := open(t, dir, "a", shared)
	b, _ := open(t, dir, "b", shared)
	a.dropTime = time.Millisecond
	a.SetPeers([]string{a.Dir(), b.Dir()})
	put(t, b, "x", 90).Release()
	seen.until(t, func() bool { return has(a, "x") })
	put(t, a, "y", 90).Release()
	if _, _, err := a.Fetch(t.Context(), item("z", 90), bytes(90)); !errors.Is(err, ErrFull) {
		t.Fatal(err)
	}
	a.dropTime = time.Hour
	waits := true
	for range 100 { // what b did before may be seen only now, and it is waited for again after a change
		ctx, stop := context.WithTimeout(t.Context(), 100*time.Millisecond)
		dropped := a.untilDropped(ctx, []string{fileName(item("x", 90))})
		waits = ctx.Err() != nil
		stop()
		if dropped {
			t.Fatal("a peer that keeps x is said to have dropped it")
		}
		if !waits {
			break
		}
	}
	if waits {
		t.Error("a peer that drops nothing is waited for each time")
	}
}

// A peer drops what it is asked to, however long the name of the file is.
func TestAPeerDropsAFileOfTheLongestName(t *testing.T) {
	dir := t.TempDir()
	a, _ := open(t, dir, "a", shared)
	b, seen := open(t, dir, "b", shared)
	lfn := strings.Repeat("x", maxName-len(fileName(item("", 90))))
	put(t, b, lfn, 90).Release()
	b.SetPeers([]string{a.Dir(), b.Dir()})
	defer a.askToDrop([]string{fileName(item(lfn, 90))})()
	seen.until(t, func() bool { return !has(b, lfn) })
}

// Caches that are opened at the same time do not take each other for what
// pilots that are gone have left.
func TestOpenedAtTheSameTime(t *testing.T) {
	dir := t.TempDir()
	var opening sync.WaitGroup
	for i := range 40 {
		opening.Go(func() {
			c, err := Open(Config{Dir: dir, Name: fmt.Sprint(i), MaxSpace: 100, Shared: true})
			if err != nil {
				t.Error(err)
				return
			}
			t.Cleanup(c.Close)
		})
	}
	opening.Wait()
}

func TestPeerLeaves(t *testing.T) {
	dir := t.TempDir()
	a, seen := open(t, dir, "a", shared)
	b, _ := open(t, dir, "b", shared)
	meet(a, b)
	put(t, b, "x", 80).Release()
	put(t, b, "y", 80).Release()
	seen.until(t, func() bool { return has(a, "x") && has(a, "y") })
	b.Close()
	seen.until(t, func() bool { return len(a.Contents()) == 1 })
	if limitOf(a) != 100 {
		t.Error(limitOf(a))
	}
	if _, err := os.Stat(b.Dir()); err == nil {
		t.Error("the folder of the pilot that left is there")
	}
}

// The host's caches never take more than they may, hold nothing twice and
// drop nothing that is in use, whatever two pilots do.
func TestPooledSpaceProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp("", "cache")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		var pilots []*Cache
		for _, name := range []string{"a", "b"} {
			c, err := Open(Config{Dir: dir, Name: name, MaxSpace: 100, MinThreshold: 20, Shared: true})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			pilots = append(pilots, c)
		}
		meet(pilots...)
		var used []*File
		t.Repeat(map[string]func(*rapid.T){
			"fetch": func(t *rapid.T) {
				n := rapid.Int64Range(1, 8).Draw(t, "file")
				c := rapid.SampledFrom(pilots).Draw(t, "pilot")
				i := item(string(rune('a'+n)), 10*n)
				f, _, err := c.Fetch(t.Context(), i, bytes(i.Size))
				if errors.Is(err, ErrFull) {
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				if rapid.Bool().Draw(t, "keep") {
					used = append(used, f)
				} else {
					f.Release()
				}
			},
			"release": func(t *rapid.T) {
				if len(used) == 0 {
					t.Skip("nothing is in use")
				}
				used[0].Release()
				used = used[1:]
			},
			"": func(t *rapid.T) {
				for _, f := range used {
					if _, err := os.Stat(f.Path()); err != nil {
						t.Fatal("dropped while in use:", err)
					}
				}
				if total := diskUse(t, pilots); total > 160 {
					t.Fatal("the host holds", total)
				}
			},
		})
		for _, f := range used {
			f.Release()
		}
	})
}

// diskUse is what the files of all caches take, each once.
func diskUse(t *rapid.T, pilots []*Cache) (sum int64) {
	var seen []os.FileInfo
next:
	for _, c := range pilots {
		entries, err := os.ReadDir(c.Dir())
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if e.Name() == changesName || e.Name() == usesName || e.Name() == trustName {
				continue // bookkeeping
			}
			info, err := e.Info()
			if err != nil {
				continue next // dropped this moment
			}
			known := false
			for _, s := range seen {
				known = known || os.SameFile(s, info)
			}
			if !known {
				seen = append(seen, info)
				sum += info.Size()
			}
		}
	}
	return sum
}

// model is what a cache of one pilot must do.
type model struct {
	limit int64
	order []Item // the least recently used first
	pins  map[Ref]int
}

func (m *model) index(r Ref) int {
	for n, i := range m.order {
		if i.Ref == r {
			return n
		}
	}
	return -1
}

func (m *model) fetch(i Item) bool {
	if n := m.index(i.Ref); n >= 0 {
		m.order = append(append(m.order[:n:n], m.order[n+1:]...), i)
		return true
	}
	excess := i.Size - m.limit
	var free int64
	for _, x := range m.order {
		excess += x.Size
		if m.pins[x.Ref] == 0 {
			free += x.Size
		}
	}
	if free < excess {
		return false
	}
	var kept []Item
	for _, x := range m.order {
		if excess > 0 && m.pins[x.Ref] == 0 {
			excess -= x.Size
			continue
		}
		kept = append(kept, x)
	}
	m.order = append(kept, i)
	return true
}

func TestEvictionProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp("", "cache")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		c, err := Open(Config{Dir: dir, Name: "p", MaxSpace: 100})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		m := &model{limit: 100, pins: map[Ref]int{}}
		var used []*File
		t.Repeat(map[string]func(*rapid.T){
			"fetch": func(t *rapid.T) {
				n := rapid.Int64Range(0, 11).Draw(t, "file")
				i := item(string(rune('a'+n)), 10*n)
				f, _, err := c.Fetch(t.Context(), i, bytes(i.Size))
				if want := m.fetch(i); (err == nil) != want {
					t.Fatalf("%v, the model says %v", err, want)
				}
				if err == nil && rapid.Bool().Draw(t, "keep") {
					used = append(used, f)
					m.pins[i.Ref]++
				} else if err == nil {
					f.Release()
				}
			},
			"release": func(t *rapid.T) {
				if len(used) == 0 {
					t.Skip("nothing is in use")
				}
				m.pins[used[0].entry.Ref]--
				used[0].Release()
				used = used[1:]
			},
			"": func(t *rapid.T) {
				for _, i := range m.order {
					if !has(c, i.LFN) {
						t.Fatal(i, "is not there")
					}
				}
				ordered := 0
				for range c.order.Going() {
					ordered++
				}
				if len(c.Contents()) != len(m.order) || ordered != len(m.order) {
					t.Fatal(c.Contents(), ordered, m.order)
				}
			},
		})
	})
}

// What a peer is still writing has its room, too.
func TestReservationsOfPeersCount(t *testing.T) {
	dir := t.TempDir()
	a, _ := open(t, dir, "a", shared)
	b, _ := open(t, dir, "b", shared)
	meet(a, b)
	f, _, err := a.Fetch(t.Context(), item("x", 90), func(path string) (int64, Hash, error) {
		if _, _, err := b.Fetch(t.Context(), item("y", 120), bytes(120)); !errors.Is(err, ErrFull) {
			t.Error("the room that a file is being written into was given away:", err)
		}
		put(t, b, "z", 100).Release()
		return bytes(90)(path)
	})
	if err != nil {
		t.Fatal(err)
	}
	f.Release()
}

// Each pilot runs jobs of its own, so each keeps room for them.
func TestMinThresholdIsKeptFreeForEachPilot(t *testing.T) {
	dir := t.TempDir()
	a, _ := open(t, dir, "a", shared, func(c *Config) { c.MinThreshold = 40 })
	b, _ := open(t, dir, "b", shared, func(c *Config) { c.MinThreshold = 40 })
	meet(a, b)
	if limitOf(a) != 120 {
		t.Fatal(limitOf(a))
	}
}

// Pilots of a host that want one file at the same time load the element once.
func TestOneFetchForManyPilots(t *testing.T) {
	dir := t.TempDir()
	var all []*Cache
	for _, name := range []string{"a", "b", "c"} {
		c, _ := open(t, dir, name, shared)
		all = append(all, c)
	}
	meet(all...)
	var brought atomic.Int32
	begun, others := make(chan struct{}), make(chan struct{})
	var group sync.WaitGroup
	fetch := func(c *Cache) {
		f, _, err := c.Fetch(t.Context(), item("x", 10), func(path string) (int64, Hash, error) {
			if brought.Add(1) == 1 {
				close(begun)
				<-others
			}
			return bytes(10)(path)
		})
		if err != nil {
			t.Error(err)
			return
		}
		f.Release()
	}
	group.Go(func() { fetch(all[0]) })
	<-begun
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := all[1].Fetch(ctx, item("x", 10), bytes(10)); !errors.Is(err, context.Canceled) {
		t.Error("a pilot does not wait for the one that brings the file in:", err)
	}
	group.Go(func() { fetch(all[1]) })
	group.Go(func() { fetch(all[2]) })
	close(others)
	group.Wait()
	if brought.Load() != 1 {
		t.Error("the file was brought in", brought.Load(), "times")
	}
}

// A pilot that dies while it brings a file in leaves its turn to the others.
func TestTurnOfADeadPilotIsFree(t *testing.T) {
	dir := t.TempDir()
	a, _ := open(t, dir, "a", shared)
	b, _ := open(t, dir, "b", shared)
	meet(a, b)
	if _, err := a.turns.take(t.Context(), fileName(item("x", 10)), nothing); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.turns.take(ctx, fileName(item("x", 10)), nothing); err == nil {
		t.Fatal("two pilots have one turn")
	}
	_ = a.turns.file.Close() // as the kernel does for a process that ends
	put(t, b, "x", 10).Release()
}

func nothing() string { return "" }

// A pilot waits for another that brings a file in as long as more of the file comes. Of one
// that was stopped nothing comes, and the file is brought in past it.
func TestTurnOfAStoppedPilotIsNotWaitedFor(t *testing.T) {
	dir := t.TempDir()
	a, _ := open(t, dir, "a", shared)
	b, _ := open(t, dir, "b", shared)
	meet(a, b)
	b.turns.limit = time.Millisecond
	begun, over := make(chan struct{}), make(chan struct{})
	var group sync.WaitGroup
	defer group.Wait()
	defer close(over)
	group.Go(func() {
		_, _, _ = a.Fetch(t.Context(), item("x", 10), func(path string) (int64, Hash, error) {
			_, _, _ = bytes(3)(path)
			close(begun)
			<-over
			return 0, Hash{}, errors.New("it was stopped")
		})
	})
	<-begun
	const more = 5 // each look comes after the limit, since a pause is as long
	name, looks := fileName(item("x", 10)), 0
	release, err := b.turns.take(t.Context(), name, func() string {
		looks++
		return fmt.Sprint(min(looks, more)) // and then it stands still
	})
	if err != nil {
		t.Fatal(err)
	}
	release()
	if looks < more {
		t.Errorf("it waited for %d looks only, though each time more had come", looks)
	}
	if come := b.comingAtPeers(name); !strings.Contains(come, " 3 ") {
		t.Errorf("what has come of the file is not seen: %q", come)
	}
	put(t, b, "x", 10).Release()
}

// Of all readers of a file that was fetched ahead one is told so, at any pilot of the host,
// and none when the file has gone and come again.
func TestTheFirstReaderIsToldOfAFileFetchedAhead(t *testing.T) {
	dir := t.TempDir()
	a, _ := open(t, dir, "a", shared)
	b, _ := open(t, dir, "b", shared)
	meet(a, b)
	fetch := func(lfn string) {
		t.Helper()
		f, _, err := a.Fetch(t.Context(), item(lfn, 10), func(path string) (int64, Hash, error) {
			a.MarkAhead(item(lfn, 10).Ref, time.Now().Add(-time.Second))
			return bytes(10)(path)
		})
		if err != nil {
			t.Fatal(err)
		}
		f.Release()
	}
	fetch("x")
	var told atomic.Int32
	var readers sync.WaitGroup
	for _, c := range []*Cache{a, b, a, b} {
		readers.Go(func() {
			if _, took, ok := c.TakeAhead(item("x", 10).Ref); ok {
				told.Add(1)
				if took < time.Second {
					t.Error("it took", took)
				}
			}
		})
	}
	readers.Wait()
	if n := told.Load(); n != 1 {
		t.Error(n, "readers were told")
	}
	fetch("y")
	a.Drop(item("y", 10).Ref)
	put(t, a, "y", 10).Release()
	if _, _, ok := b.TakeAhead(item("y", 10).Ref); ok {
		t.Error("a file that was fetched for a job counts as fetched ahead")
	}
}
