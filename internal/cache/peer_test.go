package cache

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/zeebo/blake3"
)

// lookedAt makes b a peer of a that a looks at only when refresh is called.
func lookedAt(a, b *Cache) *peer {
	a.mu.Lock()
	defer a.mu.Unlock()
	p := &peer{folder: b.Dir(), stop: func() {}, known: map[string]bool{}}
	a.peers[p.folder] = p
	return p
}

// What a peer has a cache takes when it looks, and gives up when the peer has, or asks for it.
func TestEachLookAtAPeer(t *testing.T) {
	dir := t.TempDir()
	a, _ := open(t, dir, "a", shared)
	b, _ := open(t, dir, "b", shared)
	p := lookedAt(a, b)
	put(t, b, "x", 10).Release()
	put(t, b, "y", 10).Release()
	p.slow = true
	if !a.refresh(p, true) || !has(a, "x") || !has(a, "y") || p.slow {
		t.Fatal("it did not take what the peer has:", a.Contents(), p.slow)
	}
	b.Drop(item("x", 10).Ref)
	if !a.refresh(p, true) || has(a, "x") || !has(a, "y") {
		t.Error("the peer has y alone, and it", a.Contents())
	}
	put(t, a, "own", 10).Release()
	kept := put(t, a, "used", 10)
	defer kept.Release()
	done := b.askToDrop([]string{fileName(item("own", 10)), fileName(item("used", 10))})
	if !a.refresh(p, true) || has(a, "own") || !has(a, "used") || !has(a, "y") {
		t.Error("asked to drop its own, and what is in use, it has", a.Contents())
	}
	done()
	if names, _ := filepath.Glob(filepath.Join(b.Dir(), dropPrefix+"*")); len(names) > 0 {
		t.Error("it is asked for ever:", names)
	}
	a.Drop(item("y", 10).Ref)
	if !a.refresh(p, true) || has(a, "y") {
		t.Error("it has taken back what it had dropped:", a.Contents())
	}
	if a.refresh(p, false) || limitOf(a) != 100 {
		t.Error("the peer is gone, and the limit is", limitOf(a))
	}
	if a.refresh(p, true) {
		t.Error("it looks at a peer that has left")
	}
}

// With a peer goes its space: what does not fit then is given up. The folder of one that was killed
// is removed.
func TestWithoutAPeerThereIsLessSpace(t *testing.T) {
	dir := t.TempDir()
	a, _ := open(t, dir, "a", shared)
	b, _ := open(t, dir, "b", shared)
	a.SetPeers([]string{a.Dir(), b.Dir()})
	put(t, a, "x", 80).Release()
	put(t, a, "y", 80).Release()
	kill(b)
	a.SetPeers([]string{a.Dir()})
	if has(a, "x") || !has(a, "y") || limitOf(a) != 100 {
		t.Error("it has", a.Contents(), "in", limitOf(a))
	}
	if _, err := os.Stat(b.Dir()); err == nil {
		t.Error("the folder of the one that was killed is there")
	}
	c, _ := open(t, dir, "c", shared)
	if err := os.RemoveAll(a.Dir()); err != nil {
		t.Fatal(err)
	}
	if a.SetPeers([]string{c.Dir()}); limitOf(a) != 100 {
		t.Error("a cache without its folder follows a peer")
	}
}

// What several pilots hold counts once, and what they write counts for each.
func TestWhatAHostHolds(t *testing.T) {
	dir := t.TempDir()
	a, _ := open(t, dir, "a", shared)
	b, _ := open(t, dir, "b", shared)
	c, _ := open(t, dir, "c", shared)
	lookedAt(b, a)
	put(t, a, "x", 10).Release()
	put(t, b, "x", 10).Release() // a link
	put(t, b, "y", 20).Release()
	put(t, a, "z", 40).Release()
	for _, p := range []*Cache{a, b} {
		lookedAt(c, p)
	}
	total := func() int64 {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.total()
	}
	if got := total(); got != 70 {
		t.Error("the host holds", got)
	}
	a.mu.Lock()
	a.reserved = 5
	a.claim()
	a.mu.Unlock()
	if got := total(); got != 75 {
		t.Error("with what is being written the host holds", got)
	}
	a.mu.Lock()
	a.reserved = 0
	a.mu.Unlock()
	if claimed, ok := c.peers[b.Dir()].claimed(); !ok || claimed != (claim{files: b.used}) {
		t.Error("a peer claims", claimed, ok)
	}
}

// However often files are used, what tells of that does not grow, and tells of nothing afterwards.
func TestUsesTakeNoMoreRoomThanNeeded(t *testing.T) {
	dir := t.TempDir()
	a, _ := open(t, dir, "a", shared)
	b, _ := open(t, dir, "b", shared)
	lookedAt(a, b)
	lookedAt(b, a)
	for range 5 {
		x, y := put(t, b, "x", 10), put(t, b, "y", 10)
		if used := a.usedByPeers(); len(used) != 2 {
			t.Fatal("two files are in use, and seen are", used)
		}
		x.Release()
		y.Release()
		if used := a.usedByPeers(); len(used) != 0 {
			t.Fatal("in use are", used)
		}
	}
	if info, err := os.Stat(filepath.Join(b.Dir(), usesName)); err != nil || info.Size() != 2*useSize {
		t.Error(info.Size(), err)
	}
}

// A copy of what another user has is taken if it is what it should be, as old as it is there.
func TestCopiesOfOtherUsersFilesAreChecked(t *testing.T) {
	const size = 1<<20 + 5
	text := make([]byte, size)
	for i := range text {
		text[i] = byte(i >> 8)
	}
	dir, old := t.TempDir(), time.Unix(1_700_000_000, 0)
	c, _ := open(t, dir, "a", grouped)
	other := filepath.Join(dir, "other")
	wanted := item("x", size)
	there := filepath.Join(other, fileName(wanted))
	c.others = map[string]int{other: 0}
	copied := func(ctx context.Context, hash Hash, held []byte) (bool, error) {
		t.Helper()
		write(t, there)
		if err := os.WriteFile(there, held, 0o666); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(there, old, old); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "copy")
		ok, err := c.CopyFromGroup(ctx, wanted, hash, path)
		info, statErr := os.Stat(path)
		if ok != (statErr == nil) {
			t.Fatalf("copied %v, and the copy: %v", ok, statErr)
		}
		if ok && (!info.ModTime().Equal(old) || info.Size() != size || info.Mode().Perm()&0o222 != 0) {
			t.Error("the copy is from", info.ModTime(), info.Size(), info.Mode())
		}
		return ok, err
	}
	hash := Hash(blake3.Sum256(text))
	if ok, err := copied(t.Context(), hash, text); !ok || err != nil {
		t.Error("a good file:", ok, err)
	}
	if ok, err := copied(t.Context(), Hash{}, text); ok || err != nil {
		t.Error("without a hash:", ok, err)
	}
	late, cancel := context.WithCancel(t.Context())
	cancel()
	if ok, err := copied(late, hash, text); ok || err == nil {
		t.Error("its time is over:", ok, err)
	}
	for n, held := range [][]byte{text[:size-1], append(text[:size:size], 0), append([]byte{1}, text[1:]...)} {
		if ok, err := copied(t.Context(), hash, held); ok || err != nil || c.others[other] != n+1 {
			t.Errorf("%d bytes: %v, %v, and wrong so far %d", len(held), ok, err, c.others[other])
		}
	}
	if ok, err := copied(t.Context(), hash, text); ok || err != nil {
		t.Error("a folder of many wrong files is looked into:", ok, err)
	}
}
