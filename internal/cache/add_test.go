package cache

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// asked is a context that tells when somebody waits under it.
type asked struct {
	context.Context
	once    sync.Once
	waiting chan struct{}
}

func (a *asked) Done() <-chan struct{} {
	a.once.Do(func() { close(a.waiting) })
	return a.Context.Done()
}

// Whoever wants a file that is being brought in waits until it is there, and brings it itself if it does
// not come, unless its own time is over.
func TestOthersWaitForTheOneThatBrings(t *testing.T) {
	for _, fails := range []bool{false, true} {
		c, _ := open(t, t.TempDir(), "p")
		failure := errors.New("failure")
		path := filepath.Join(t.TempDir(), "made")
		if err := os.WriteFile(path, make([]byte, 10), 0o600); err != nil {
			t.Fatal(err)
		}
		var group sync.WaitGroup
		begun, over := make(chan struct{}), make(chan struct{})
		group.Go(func() {
			f, hit, err := c.Fetch(t.Context(), item("a", 10), func(path string) (int64, Hash, error) {
				close(begun)
				<-over
				if fails {
					return 0, Hash{}, failure
				}
				return bytes(10)(path)
			})
			if hit || fails != (err != nil) {
				t.Error(hit, err)
			}
			if err == nil {
				f.Release()
			}
		})
		<-begun
		never := func(string) (int64, Hash, error) { return 0, Hash{}, errors.New("it is brought in already") }
		late, cancel := context.WithCancel(t.Context())
		cancel()
		if _, _, err := c.Fetch(late, item("a", 10), never); !errors.Is(err, context.Canceled) {
			t.Error("one whose time is over:", err)
		}
		if err := c.Add(late, item("a", 10), path); !errors.Is(err, context.Canceled) {
			t.Error("one whose time is over adds:", err)
		}
		fetches := &asked{Context: t.Context(), waiting: make(chan struct{})}
		adds := &asked{Context: t.Context(), waiting: make(chan struct{})}
		group.Go(func() {
			f, hit, err := c.Fetch(fetches, item("a", 10), bytes(10))
			if err != nil || !hit && !fails {
				t.Error("it waited, and got", hit, err)
				return
			}
			f.Release()
		})
		group.Go(func() {
			if err := c.Add(adds, item("a", 10), path); err != nil {
				t.Error("it waited to add:", err)
			}
		})
		<-fetches.waiting
		<-adds.waiting
		close(over)
		group.Wait()
		if !has(c, "a") || c.used != 10 || c.reserved != 0 {
			t.Error("it holds", c.Contents(), "of", c.used, "bytes, and", c.reserved)
		}
		put(t, c, "b", 100).Release() // so nobody has it in use
	}
}

// What was added is in nobody's use, and stands where it was.
func TestAddedFilesCanGo(t *testing.T) {
	c, _ := open(t, t.TempDir(), "p")
	folder := t.TempDir()
	path := filepath.Join(folder, "made")
	if err := os.WriteFile(path, []byte("0123456789"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time it is there
		if err := c.Add(t.Context(), item("a", 10), path); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Add(t.Context(), item("b", 11), path); err == nil || has(c, "b") {
		t.Error("a file of another size was added:", err)
	}
	if err := c.Add(t.Context(), item("c", 10), folder); err == nil ||
		!strings.Contains(err.Error(), "not a regular file") {
		t.Error("a folder was added:", err)
	}
	if err := c.Add(t.Context(), item("c", 10), path+".missing"); !errors.Is(err, os.ErrNotExist) {
		t.Error("a file that is not there was added:", err)
	}
	put(t, c, "d", 100).Release()
	if text, err := os.ReadFile(path); has(c, "a") || err != nil || string(text) != "0123456789" {
		t.Errorf("it holds %v; there stands %q, %v", c.Contents(), text, err)
	}
}

// From another disk a copy is added, which nobody may write to.
func TestAddedFromAnotherDisk(t *testing.T) {
	path := filepath.Join(smallDisk(t), "made")
	if err := os.WriteFile(path, []byte("0123456789"), 0o600); err != nil {
		t.Fatal(err)
	}
	for mode, want := range map[os.FileMode]os.FileMode{0o666: 0o444, 0o755: 0o555, 0o200: 0o400} {
		c, _ := open(t, t.TempDir(), "p")
		if err := errors.Join(os.Chmod(path, mode), c.Add(t.Context(), item("a", 10), path)); err != nil {
			t.Fatal(err)
		}
		f := put(t, c, "a", 10)
		text, err := os.ReadFile(f.Path())
		info, statErr := os.Stat(f.Path())
		if errors.Join(err, statErr) != nil || string(text) != "0123456789" || info.Mode().Perm() != want {
			t.Errorf("of mode %o it has %q and the mode %o", mode, text, info.Mode().Perm())
		}
		f.Release()
	}
}

// Two files go where one is too small by a byte.
func TestAsMuchGoesAsIsNeeded(t *testing.T) {
	c, _ := open(t, t.TempDir(), "p")
	put(t, c, "a", 50).Release()
	put(t, c, "b", 49).Release()
	put(t, c, "c", 1).Release()
	put(t, c, "d", 51).Release()
	if has(c, "a") || has(c, "b") || !has(c, "c") || !has(c, "d") {
		t.Error(c.Contents())
	}
}

// A mark that says nothing counts as one all the same: the file was fetched ahead.
func TestBrokenMarksOfFilesFetchedAhead(t *testing.T) {
	for _, text := range []string{"", "x y", "5", "5 -3"} {
		c, _ := open(t, t.TempDir(), "p")
		put(t, c, "a", 10).Release()
		ref := item("a", 10).Ref
		c.marksAhead.Store(true)
		if err := os.WriteFile(c.aheadPath(c.folder, ref), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if began, took, ok := c.TakeAhead(ref); !ok || took != 0 || !began.IsZero() {
			t.Errorf("%q: %v %v %v", text, began, took, ok)
		}
		if _, _, ok := c.TakeAhead(ref); ok {
			t.Errorf("%q is told twice", text)
		}
	}
}
