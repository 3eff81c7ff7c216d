package stage

import (
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"fairway/internal/storage"
	"fairway/internal/storage/served"
)

// Where a folder is seen through another mount, with coarse times and other inodes,
// its files have not changed. What the pilot writes there does not reach the server.
func TestOtherTimesAndInodesAreNoChange(t *testing.T) {
	server := storage.Roots{State: t.TempDir(), Folder: t.TempDir()}
	mounted := storage.Roots{State: t.TempDir(), Folder: t.TempDir()}
	writeText(t, filepath.Join(server.Folder, "a"), "a")
	modified := time.Unix(1_700_000_000, 987_654_321)
	if err := os.Chtimes(filepath.Join(server.Folder, "a"), modified, modified); err != nil {
		t.Fatal(err)
	}
	writeText(t, filepath.Join(mounted.Folder, "a"), "a")
	if err := os.Chtimes(filepath.Join(mounted.Folder, "a"), modified, modified.Truncate(time.Second)); err != nil {
		t.Fatal(err)
	}
	r := &Reach{near: storage.Local(mounted), shared: map[string]served.Reach{"folder:": {Reads: true}}}
	r.through = storage.Local(server)
	ar := &Area{Reach: r, Storage: r}
	info, err := storage.Local(server).Stat(t.Context(), "folder:a")
	if err != nil {
		t.Fatal(err)
	}
	i := &input{pfn: "folder:a"}
	if err := ar.here(t.Context(), i); err != nil {
		t.Error(err)
	}
	i.Tag, i.Size = storage.TagOf("folder:a", info), 1
	got := filepath.Join(t.TempDir(), "got")
	if _, err := ar.get(t.Context(), i, got); err != nil {
		t.Fatal(err)
	}
	if i.before, err = os.Stat(got); err != nil || !ar.intact(i) {
		t.Error("it counts as changed:", err)
	}
	writeText(t, filepath.Join(server.Folder, "a"), "b")
	if _, err := ar.get(t.Context(), i, got+"2"); err == nil {
		t.Error("a change at the server is not seen")
	}
	out := filepath.Join(t.TempDir(), "out")
	writeText(t, out, "output")
	if err := r.Put(t.Context(), out, "state:x"); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(filepath.Join(server.State, "x")); string(text) != "output" {
		t.Errorf("%q, %v", text, err)
	}
}

// A file of another server that the node cannot reach comes through its own server,
// and is not looked for again there.
func TestOtherServersThroughTheOwn(t *testing.T) {
	var near, through atomic.Int64
	r := &Reach{near: counting{&near, storage.ErrPermission}, through: counting{&through, nil}, far: map[string]bool{}}
	for range 3 {
		if _, err := r.Stat(t.Context(), "https://data/x"); err != nil {
			t.Error(err)
		}
	}
	if near.Load() != 1 || through.Load() != 3 {
		t.Error(near.Load(), through.Load())
	}
	r = &Reach{near: counting{&near, os.ErrNotExist}, through: counting{&through, nil}, far: map[string]bool{}}
	if _, err := r.Stat(t.Context(), "https://data/x"); !isMissing(err) {
		t.Error("what is not there is not there:", err)
	}
}

// Who is patient waits for a server of files that is away, not for one that only their own server reaches.
func TestBothWaysAreTriedBeforeAnybodyWaits(t *testing.T) {
	for away, longest := range map[time.Duration]time.Duration{0: 10 * time.Second, 2 * time.Minute: 3 * time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			began, told := time.Now(), 0
			retried := func(until time.Time) storage.Element {
				return storage.Retry(awayUntil{until: until}, storage.DefaultTries, storage.DefaultBackoff, pause)
			}
			r := &Reach{
				near: retried(began.Add(time.Hour)), through: retried(began.Add(away)), sleep: pause, far: map[string]bool{},
			}
			ctx := storage.WithPatience(t.Context(), storage.Patience, func(string, error) { told++ })
			if _, err := r.Stat(ctx, "https://data/x"); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(began); took < away || took > longest || (told > 0) != (away > 0) {
				t.Errorf("away for %v: it took %v, and people were told %d times", away, took, told)
			}
		})
	}
}

// awayUntil cannot be reached until a time.
type awayUntil struct {
	counting
	until time.Time
}

func (a awayUntil) Stat(context.Context, string) (storage.Info, error) {
	if time.Now().Before(a.until) {
		return storage.Info{}, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ENETUNREACH}
	}
	return storage.Info{Size: 1}, nil
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

type counting struct {
	n   *atomic.Int64
	err error
}

func (c counting) Stat(context.Context, string) (storage.Info, error) {
	c.n.Add(1)
	return storage.Info{}, c.err
}

func (c counting) Open(context.Context, string) (io.ReadCloser, error)   { return nil, c.err }
func (c counting) Get(context.Context, string, string) (int64, error)    { return 0, c.err }
func (c counting) Put(context.Context, string, string) error             { return c.err }
func (c counting) Remove(context.Context, string) error                  { return c.err }
func (c counting) List(context.Context, string) ([]storage.Entry, error) { return nil, c.err }

func writeText(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
