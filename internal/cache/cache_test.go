package cache

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"go.uber.org/goleak"

	"fairway/internal/disk"
	"fairway/internal/eviction"
	"fairway/internal/fault"
	"fairway/lib/sched"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(userVariable); dir != "" {
		if err := ofUser(dir); err != nil {
			fmt.Println(err)
		}
		return
	}
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("fairway/lib/sched.(*pool).work"),
		goleak.IgnoreAnyFunction("fairway/lib/sched.(*source).drive"))
}

// log notes the changes that a cache tells.
type log struct {
	mu      sync.Mutex
	changed chan struct{}
	all     []Change
}

func (l *log) note(c Change) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, c)
	if l.changed != nil {
		close(l.changed)
		l.changed = nil
	}
}

// until waits for a state of the cache that changes lead to.
func (l *log) until(t *testing.T, condition func() bool) {
	t.Helper()
	for {
		l.mu.Lock()
		changed := make(chan struct{})
		l.changed = changed
		l.mu.Unlock()
		if condition() {
			return
		}
		if _, err := sched.Receive(t.Context(), sched.Default(), changed); !errors.Is(err, sched.ErrChannelClosed) {
			t.Fatal(err)
		}
	}
}

func open(t *testing.T, dir, name string, change ...func(*Config)) (*Cache, *log) {
	t.Helper()
	l := &log{}
	cfg := Config{Dir: dir, Name: name, MaxSpace: 100, Changed: l.note}
	for _, f := range change {
		f(&cfg)
	}
	c, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c, l
}

func shared(c *Config) { c.Shared = true }

func item(lfn string, size int64) Item { return Item{Ref: Ref{LFN: lfn, Version: 1}, Size: size} }

// bytes writes a file of the given size.
func bytes(size int64) func(string) (int64, Hash, error) {
	return func(path string) (int64, Hash, error) {
		return size, Hash{}, os.WriteFile(path, make([]byte, size), 0o644)
	}
}

func put(t *testing.T, c *Cache, lfn string, size int64) *File {
	t.Helper()
	f, _, err := c.Fetch(t.Context(), item(lfn, size), bytes(size))
	if err != nil {
		t.Fatal(lfn, err)
	}
	return f
}

func has(c *Cache, lfn string) bool {
	return slices.ContainsFunc(c.Contents(), func(x Change) bool { return x.LFN == lfn })
}

func TestFetchAndGet(t *testing.T) {
	c, l := open(t, t.TempDir(), "p")
	f := put(t, c, "raw/a", 10)
	if info, err := os.Stat(f.Path()); err != nil || info.Size() != 10 {
		t.Fatal(err)
	}
	f.Release()
	again, hit, err := c.Fetch(t.Context(), item("raw/a", 10), func(string) (int64, Hash, error) { panic("it is there") })
	if err != nil || !hit {
		t.Fatal(hit, err)
	}
	again.Release()
	again.Release()
	if len(l.all) != 1 || l.all[0].Gone || l.all[0].Size != 10 {
		t.Fatal(l.all)
	}
}

func TestEvictsTheLeastRecentlyUsed(t *testing.T) {
	c, l := open(t, t.TempDir(), "p")
	for _, lfn := range []string{"a", "b", "c"} {
		put(t, c, lfn, 30).Release()
	}
	if f, ok := c.Get(t.Context(), item("a", 0)); ok {
		f.Release()
	}
	put(t, c, "d", 40).Release()
	if has(c, "b") || !has(c, "a") || !has(c, "d") {
		t.Fatal(c.Contents())
	}
	if last := l.all[len(l.all)-2]; last.LFN != "b" || !last.Gone {
		t.Fatal(l.all)
	}
	c.Drop(Ref{LFN: "a", Version: 1}) // which makes no room for another
	if files, bytes := c.Evicted(); files != 1 || bytes != 30 {
		t.Errorf("%d files of %d bytes were evicted", files, bytes)
	}
}

func TestFollowsAdvice(t *testing.T) {
	c, _ := open(t, t.TempDir(), "p")
	for _, lfn := range []string{"a", "b", "c"} {
		put(t, c, lfn, 30).Release()
	}
	c.SetHints([]Ref{{LFN: "c", Version: 1}, {LFN: "unknown", Version: 1}, {LFN: "c", Version: 1}}, 0)
	put(t, c, "d", 60).Release()
	if has(c, "c") || has(c, "a") || !has(c, "b") {
		t.Fatal(c.Contents())
	}
}

func TestNeverDropsWhatIsInUse(t *testing.T) {
	c, _ := open(t, t.TempDir(), "p")
	a, b := put(t, c, "a", 50), put(t, c, "b", 50)
	if _, _, err := c.Fetch(t.Context(), item("c", 10), bytes(10)); !errors.Is(err, ErrFull) {
		t.Fatal(err)
	}
	if _, _, err := c.Fetch(t.Context(), item("huge", 101), bytes(101)); !errors.Is(err, ErrFull) {
		t.Fatal(err)
	}
	a.Release()
	if _, _, err := c.Fetch(t.Context(), item("d", 60), bytes(60)); !errors.Is(err, ErrFull) {
		t.Fatal(err)
	}
	if !has(c, "a") {
		t.Fatal("dropped although that made no room")
	}
	b.Release()
	put(t, c, "d", 60).Release()
}

func TestMinThresholdIsKeptFree(t *testing.T) {
	c, _ := open(t, t.TempDir(), "p", func(c *Config) { c.MinThreshold = 40 })
	if limitOf(c) != 60 {
		t.Fatal(limitOf(c))
	}
	if _, _, err := c.Fetch(t.Context(), item("a", 61), bytes(61)); !errors.Is(err, ErrFull) {
		t.Fatal(err)
	}
}

func TestOneFetchForMany(t *testing.T) {
	c, _ := open(t, t.TempDir(), "p")
	var brought atomic.Int32
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			f, _, err := c.Fetch(context.Background(), item("a", 10), func(path string) (int64, Hash, error) {
				brought.Add(1)
				return bytes(10)(path)
			})
			if err != nil {
				t.Error(err)
				return
			}
			f.Release()
		})
	}
	group.Wait()
	if brought.Load() != 1 {
		t.Fatal(brought.Load())
	}
}

func TestFailedFetchLeavesNothing(t *testing.T) {
	c, _ := open(t, t.TempDir(), "p")
	failure := errors.New("failure")
	for _, bring := range []func(string) (int64, Hash, error){
		func(string) (int64, Hash, error) { return 0, Hash{}, failure },
		func(path string) (int64, Hash, error) { _, _, _ = bytes(3)(path); return 0, Hash{}, failure },
		bytes(9),
	} {
		if _, _, err := c.Fetch(t.Context(), item("a", 10), bring); err == nil {
			t.Fatal("no error")
		}
	}
	if left, _ := os.ReadDir(c.folder); len(left) != 2 {
		t.Fatal(left)
	}
	put(t, c, "b", 100).Release()
}

// What a lost attempt wrote, or an input held before, is never given for what
// another attempt wrote, or it holds now; both may be there.
func TestContentsAreToldApart(t *testing.T) {
	c, _ := open(t, t.TempDir(), "p")
	lost, committed := item("a", 10), item("a", 10)
	lost.Tag, committed.Tag = 1, 1<<63|1
	f, _, err := c.Fetch(t.Context(), lost, bytes(10))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Release()
	if _, ok := c.Get(t.Context(), committed); ok {
		t.Fatal("the lost one was given")
	}
	f, hit, err := c.Fetch(t.Context(), committed, bytes(10))
	if err != nil || hit {
		t.Fatal(hit, err)
	}
	f.Release()
	for _, i := range []Item{lost, committed} {
		f, ok := c.Get(t.Context(), i)
		if !ok {
			t.Fatalf("%x is gone", i.Tag)
		}
		f.Release()
	}
	if _, ok := c.Get(t.Context(), item("a", 10)); ok {
		t.Fatal("given to one who does not say which it wants")
	}
}

func TestIndexIsRebuilt(t *testing.T) {
	dir := t.TempDir()
	c, _ := open(t, dir, "p")
	put(t, c, "deep/a b%@", 10).Release()
	put(t, c, ".hidden", 20).Release()
	for name, size := range map[string]int{newPrefix + "1": 5, "half@1@0000000000000000@7": 6, "not ours": 1} {
		if err := os.WriteFile(filepath.Join(c.folder, name), make([]byte, size), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	c.Close()
	again, _ := open(t, dir, "p")
	if !has(again, "deep/a b%@") || !has(again, ".hidden") || len(again.Contents()) != 2 {
		t.Fatal(again.Contents())
	}
	if left, _ := os.ReadDir(again.folder); len(left) != 4 {
		t.Fatal(left)
	}
}

func TestInheritsFromTheDead(t *testing.T) {
	dir := t.TempDir()
	dead, _ := open(t, dir, "dead")
	put(t, dead, "a", 60).Release()
	put(t, dead, "b", 30).Release()
	alive, _ := open(t, dir, "alive")
	if len(alive.Contents()) != 0 {
		t.Fatal("taken from the living")
	}
	dead.Close()
	heir, _ := open(t, dir, "heir", func(c *Config) { c.MaxSpace = 50 })
	if has(heir, "a") || !has(heir, "b") {
		t.Fatal(heir.Contents())
	}
	if _, err := os.Stat(dead.folder); err == nil {
		t.Fatal("the folder of the dead is there")
	}
}

// It costs the same however many files the dead one has left.
func TestTakesOverAFolderAsAWhole(t *testing.T) {
	dir := t.TempDir()
	alive, _ := open(t, dir, "alive")
	put(t, alive, "own", 5).Release()
	dead, _ := open(t, dir, "dead", shared)
	put(t, dead, "a", 10).Release()
	dead.Close()
	left, err := os.Stat(dead.folder)
	if err != nil {
		t.Fatal(err)
	}
	c, _ := open(t, dir, "next", shared)
	if now, err := os.Stat(c.folder); err != nil || !os.SameFile(now, left) {
		t.Errorf("it has a folder of its own: %v", err)
	}
	if !has(c, "a") || has(c, "own") || !has(alive, "own") {
		t.Error(c.Contents(), alive.Contents())
	}
	if _, err := Open(Config{Dir: dir, Name: "next", MaxSpace: 100}); err == nil {
		t.Error("its folder is not locked")
	}
	again, _ := open(t, dir, "dead", shared)
	if has(again, "a") {
		t.Error("the name of the dead one stands for what was taken over")
	}
}

func TestTwoPilotsOfOneName(t *testing.T) {
	dir := t.TempDir()
	open(t, dir, "p")
	if _, err := Open(Config{Dir: dir, Name: "p", MaxSpace: 1}); !errors.Is(err, disk.ErrHeld) {
		t.Fatal(err)
	}
}

func TestNameTooLong(t *testing.T) {
	c, _ := open(t, t.TempDir(), "p")
	if _, _, err := c.Fetch(t.Context(), item(strings.Repeat("/", 90), 1), bytes(1)); !errors.Is(err, ErrFull) {
		t.Fatal(err)
	}
}

func TestAdd(t *testing.T) {
	c, _ := open(t, t.TempDir(), "p")
	path := filepath.Join(t.TempDir(), "output")
	if _, _, err := bytes(10)(path); err != nil {
		t.Fatal(err)
	}
	if err := c.Add(t.Context(), item("a", 10), path); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil || !has(c, "a") {
		t.Fatal(err)
	}
	c.Drop(Ref{LFN: "a", Version: 1})
	if has(c, "a") {
		t.Fatal("it was dropped")
	}
}

// smallDisk mounts a disk of 64 KiB.
func smallDisk(t *testing.T) string {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("mounting a tmpfs needs root")
	}
	dir := t.TempDir()
	if err := syscall.Mount("fairway-test", dir, "tmpfs", 0, "size=64k"); err != nil {
		t.Skip("no tmpfs here:", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	return dir
}

// fill leaves no room on a small disk.
func fill(t *testing.T, dir string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "filler"), make([]byte, 64<<10), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
}

func TestDiskFull(t *testing.T) {
	c, _ := open(t, smallDisk(t), "p", func(c *Config) { c.MaxSpace = 1 << 30 })
	if _, _, err := c.Fetch(t.Context(), item("a", 1<<20), bytes(1<<20)); !errors.Is(err, ErrNoSpace) {
		t.Fatal(err)
	}
	if left, _ := os.ReadDir(c.folder); len(left) != 2 {
		t.Fatal("left behind:", left)
	}
}

// What the dead left may be all that stands in the way of a pilot. It goes only as far as
// that takes, and what the living have stays.
func TestOpensOnADiskFullOfWhatTheDeadLeft(t *testing.T) {
	dir := smallDisk(t)
	large := func(c *Config) { c.MaxSpace, c.Shared = 1<<30, true }
	alive, _ := open(t, dir, "alive", large)
	put(t, alive, "theirs", 4096).Release()
	dead, _ := open(t, dir, "dead", large)
	put(t, dead, "older", 4096).Release()
	put(t, dead, "newer", 4096).Release()
	for i, lfn := range []string{"theirs", "older", "newer"} {
		at := time.Unix(int64(1000+i), 0)
		for _, c := range []*Cache{alive, dead} {
			_ = os.Chtimes(filepath.Join(c.folder, fileName(item(lfn, 4096))), at, at)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "heir"), 0o777); err != nil { // so that it takes no folder over as a whole
		t.Fatal(err)
	}
	fill(t, dir)
	if _, err := Open(Config{Dir: dir, Name: "refused", MaxSpace: 1 << 30, Shared: true}); !errors.Is(err, ErrNoSpace) {
		t.Fatal("nobody has left anything, and yet:", err)
	}
	dead.Close()
	heir, _ := open(t, dir, "heir", large)
	if has(heir, "older") || !has(heir, "newer") || !has(alive, "theirs") {
		t.Error("it has", heir.Contents(), "and the living pilot", alive.Contents())
	}
}

// Failing at any point leaves a cache that is consistent and of use.
func TestFaults(t *testing.T) {
	for _, point := range []string{"cache.add.reserved", "cache.add.written"} {
		c, _ := open(t, t.TempDir(), "p")
		disarm, err := fault.Arm(point + ":error")
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := c.Fetch(t.Context(), item("a", 10), bytes(10)); !errors.Is(err, fault.ErrInjected) {
			t.Fatal(point, err)
		}
		disarm()
		if left, _ := os.ReadDir(c.folder); len(left) != 2 || c.reserved != 0 {
			t.Fatal(point, left)
		}
		put(t, c, "b", 100).Release()
	}
}

func FuzzNames(f *testing.F) {
	f.Add("store/data/a b.root", uint32(1), int64(5), uint64(7))
	f.Fuzz(func(t *testing.T, lfn string, version uint32, size int64, tag uint64) {
		i := Item{Ref{lfn, version, tag}, max(0, size)}
		// What is no UTF-8 the TaskQueue has not named, and could not be told.
		if got, ok := parseName(fileName(i)); ok != utf8.ValidString(lfn) || ok && got != i {
			t.Fatalf("%+v became %+v, %v", i, got, ok)
		}
		_, _ = parseName(lfn)
		if strings.ContainsAny(fileName(i), "/\x00") || strings.HasPrefix(fileName(i), ".") {
			t.Fatal(fileName(i))
		}
	})
}

func limitOf(c *Cache) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.limit()
}

func ExampleCache() {
	dir, _ := os.MkdirTemp("", "cache")
	defer os.RemoveAll(dir)
	c, _ := Open(Config{Dir: dir, Name: "pilot-1", MaxSpace: 1 << 20})
	defer c.Close()
	for range 2 {
		f, hit, _ := c.Fetch(context.Background(), Item{Ref: Ref{LFN: "raw/a"}, Size: 5},
			func(path string) (int64, Hash, error) {
				return 5, Hash{}, os.WriteFile(path, []byte("hello"), 0o644)
			})
		text, _ := os.ReadFile(f.Path())
		fmt.Println(hit, string(text))
		f.Release()
	}
	// Output:
	// false hello
	// true hello
}

// A file that somebody has removed or cut beneath the cache is no hit: it is brought in again.
func TestWhatIsGoneOrCutIsNoHit(t *testing.T) {
	c, l := open(t, t.TempDir(), "p")
	for lfn, spoil := range map[string]func(path string) error{
		"removed": os.Remove,
		"cut":     func(path string) error { return os.Truncate(path, 5) },
		"linked":  func(path string) error { return errors.Join(os.Remove(path), os.Symlink("/dev/zero", path)) },
	} {
		f := put(t, c, lfn, 10)
		f.Release()
		if err := spoil(f.Path()); err != nil {
			t.Fatal(err)
		}
		if f, ok := c.Get(t.Context(), item(lfn, 10)); ok || has(c, lfn) {
			t.Error(lfn, "counts as there:", f)
		}
		again, hit, err := c.Fetch(t.Context(), item(lfn, 10), bytes(10))
		if err != nil || hit {
			t.Fatal(lfn, hit, err)
		}
		if info, err := os.Lstat(again.Path()); err != nil || info.Size() != 10 {
			t.Error(lfn, info, err)
		}
		again.Release()
	}
	if len(l.all) != 9 || c.used != 30 {
		t.Error(c.used, "bytes are used, and it tells", l.all)
	}
}

// A cache whose folder is gone, or cannot be written to, has no room, whatever it held.
func TestWithoutItsFolderACacheHasNoRoom(t *testing.T) {
	for _, lost := range []func(folder string) error{
		os.RemoveAll,
		func(folder string) error { return os.Rename(folder, folder+".moved") },
		func(folder string) error {
			err := errors.Join(syscall.Mount(folder, folder, "", syscall.MS_BIND, ""),
				syscall.Mount("", folder, "", syscall.MS_BIND|syscall.MS_REMOUNT|syscall.MS_RDONLY, ""))
			t.Cleanup(func() { _ = syscall.Unmount(folder, syscall.MNT_DETACH) })
			return err
		},
	} {
		c, _ := open(t, t.TempDir(), "p", shared)
		put(t, c, "before", 10).Release()
		if err := lost(c.folder); errors.Is(err, syscall.EPERM) {
			t.Log("not tried: mounting needs root")
			continue
		} else if err != nil {
			t.Fatal(err)
		}
		if _, _, err := c.Fetch(t.Context(), item("after", 10), bytes(10)); !errors.Is(err, ErrFull) {
			t.Error(err)
		}
		if c.reserved != 0 {
			t.Error(c.reserved, "bytes stay reserved")
		}
	}
}

// A node gives up files by the policy that it was given.
func TestGoesByItsPolicy(t *testing.T) {
	c, _ := open(t, t.TempDir(), "p", func(c *Config) { c.Policy = eviction.LFU })
	for _, lfn := range []string{"a", "b", "c"} {
		put(t, c, lfn, 30).Release()
	}
	for _, lfn := range []string{"a", "a", "b", "c", "c"} {
		if f, ok := c.Get(t.Context(), item(lfn, 0)); ok {
			f.Release()
		}
	}
	put(t, c, "d", 40).Release()
	if has(c, "b") || !has(c, "a") || !has(c, "c") {
		t.Fatal(c.Contents())
	}
	if _, err := Open(Config{Dir: t.TempDir(), Name: "q", Policy: "oldest"}); err == nil ||
		!strings.Contains(err.Error(), `"oldest" is unknown; known are [fifo lru`) {
		t.Fatal(err)
	}
}
