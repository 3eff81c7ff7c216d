package stage

import (
	"context"
	"errors"
	"fairway/internal/storage/served"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"fairway/internal/storage"
)

// A server on the pilot's machine makes as many transfers with a host as it is asked for, though
// the pilot waits for all of them.
func TestTransfersThroughAServerOnTheSameMachine(t *testing.T) {
	none := func(context.Context, string) error { return nil }
	server := storage.Limit(getting{do: none}, storage.DefaultTransfers, func(context.Context, time.Duration) error {
		return errors.New("the server has to wait for transfers of the pilot")
	})
	var asked sync.WaitGroup
	asked.Add(storage.DefaultTransfers)
	through := throughServer(getting{do: func(ctx context.Context, pfn string) error {
		asked.Done()
		asked.Wait()
		_, err := server.Get(ctx, pfn, "")
		return err
	}}, nil)
	var transfers sync.WaitGroup
	for range storage.DefaultTransfers {
		transfers.Go(func() {
			if _, err := through.Get(t.Context(), "s3://through-a-server-on-the-same-machine/x", ""); err != nil {
				t.Error(err)
			}
		})
	}
	transfers.Wait()
}

// getting is an element from which files are got.
type getting struct {
	counting
	do func(ctx context.Context, pfn string) error
}

func (g getting) Get(ctx context.Context, pfn, _ string) (int64, error) { return 0, g.do(ctx, pfn) }

// How a file is read follows from what is proved of its folder, and from what the server sees of it.
func TestWaysToAFile(t *testing.T) {
	server, here := storage.Roots{Folder: t.TempDir()}, t.TempDir()
	same, other := filepath.Join(here, "same"), filepath.Join(here, "other")
	for _, path := range []string{same, other} {
		writeText(t, path, "text")
	}
	writeText(t, filepath.Join(server.Folder, "x"), "text")
	through := storage.Local(server)
	r := &Reach{
		near:    storage.Local(storage.Roots{}),
		through: seen{through, same},
		shared:  map[string]served.Reach{"folder:": {Reads: true}, "folder:apart/": {}},
		far:     map[string]bool{},
	}
	for pfn, want := range map[string]struct {
		by      way
		inPlace bool
	}{
		"folder:x": {byPath, true}, "folder:apart/x": {byServer, false}, "folder:x/": {byServer, false},
		"https://data/x": {byEither, false}, "file:" + same: {byPath, false}, "file:" + other: {byServer, false},
		"file:" + here + "/missing": {byServer, false},
	} {
		by, inPlace, err := r.wayTo(t.Context(), pfn)
		if by != want.by || inPlace != want.inPlace || err != nil || r.inPlace(pfn) != want.inPlace {
			t.Errorf("%s: %v, in place %v and %v, %v", pfn, by, inPlace, r.inPlace(pfn), err)
		}
	}
}

// seen is the element of a server that sees a file as it is, and others as longer ones.
type seen struct {
	storage.Element
	path string
}

func (s seen) Stat(_ context.Context, pfn string) (storage.Info, error) {
	path := strings.TrimPrefix(pfn, "file:")
	info, err := os.Stat(path)
	if err != nil {
		return storage.Info{}, err
	}
	i := storage.InfoOf(info)
	if path != s.path {
		i.Size++
	}
	return i, nil
}

// What is shared with the server is read here, and nothing asks that for it.
func TestWhatIsSharedIsReadHere(t *testing.T) {
	roots := storage.Roots{Folder: t.TempDir()}
	writeText(t, filepath.Join(roots.Folder, "x"), "text")
	var asked atomic.Int64
	r := &Reach{
		near: storage.Local(roots), through: counting{&asked, errors.New("the server was asked")}, far: map[string]bool{},
		shared: map[string]served.Reach{"folder:": {Reads: true, Exact: true}},
	}
	body, err := r.Open(t.Context(), "folder:x")
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(body)
	if err = errors.Join(err, body.Close()); err != nil || string(text) != "text" {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := r.Get(t.Context(), "folder:x", filepath.Join(t.TempDir(), "x")); err != nil {
		t.Error(err)
	}
	if info, err := r.Stat(t.Context(), "folder:x"); err != nil || info.Size != 4 || asked.Load() > 0 {
		t.Error(info, err, asked.Load())
	}
}

// What can be stored in neither way is not stored.
func TestStoringAtAServerOutOfReach(t *testing.T) {
	var n atomic.Int64
	refused := errors.New("no")
	r := &Reach{near: counting{&n, refused}, through: counting{&n, refused}, far: map[string]bool{}}
	if err := r.Put(t.Context(), "x", "https://data/x"); !errors.Is(err, refused) {
		t.Error(err)
	}
	r.through = counting{&n, nil}
	if err := r.Put(t.Context(), "x", "https://data/x"); err != nil || !(&nearest{r}).isFar("https://data/y") {
		t.Error("the server of the pilot stores it:", err)
	}
}
