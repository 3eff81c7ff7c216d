package stage

import (
	"fairway/internal/access"
	"path/filepath"
	"testing"
	"time"

	"fairway/internal/cache"
	"fairway/internal/wire"
)

// What was fetched ahead is told of the attempt that reads it first, up to its turn: from
// then on somebody waited for it.
func TestWhatWasFetchedAheadIsToldUpToTheTurn(t *testing.T) {
	began := time.Unix(1_700_000_000, 0)
	in := &Inputs{ahead: []fetchedAhead{{began, 3 * time.Second}}}
	for turn, want := range map[time.Duration]time.Duration{
		time.Minute:  3 * time.Second,
		time.Second:  time.Second,
		-time.Second: 0,
	} {
		if got := in.Ahead(began.Add(turn)); got != want {
			t.Errorf("with the turn after %v: %v ahead, want %v", turn, got, want)
		}
	}
	in.ahead = append(in.ahead, fetchedAhead{began.Add(time.Second), time.Second})
	if got := in.Ahead(began.Add(time.Minute)); got != 4*time.Second {
		t.Error("two files were fetched ahead for", got)
	}
}

// A pilot that has no room for a file leaves alone what a neighbour of its host has noted of its
// own copy, and one without a cache fetches nothing.
func TestAFileIsFetchedAheadInVain(t *testing.T) {
	ar, folder := sharingArea(t), t.TempDir()
	open := func(name string) *cache.Cache {
		c, err := cache.Open(cache.Config{Dir: folder, Name: name, MaxSpace: 1, Shared: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		return c
	}
	var neighbour *cache.Cache
	ar.Cache, neighbour = open("p"), open("n")
	ar.Cache.SetPeers([]string{filepath.Join(folder, "n")})
	f := &wire.InputFile{File: &wire.FileRef{Lfn: "x", Version: 1, Tag: 1}, Size: 10, Pfn: "nowhere"}
	neighbour.MarkAhead(RefOf(f.GetFile()), time.Now())
	ar.Prefetch(t.Context(), f)
	if _, _, first := ar.Cache.TakeAhead(RefOf(f.GetFile())); !first {
		t.Error("the mark of the neighbour has gone")
	}
	ar.Cache = nil
	ar.Prefetch(t.Context(), f)
}

// What a pilot tells of its cache is never more than a message may say.
func TestCountsOfACacheAreBounded(t *testing.T) {
	ar := sharingArea(t)
	if c := ar.CacheCounts(); c != nil {
		t.Error("of nothing it tells", c)
	}
	ar.prefetched.files.Store(1)
	ar.prefetched.bytes.Store(access.MaxAmount + 1)
	if c := ar.CacheCounts(); c.GetPrefetchedBytes() != access.MaxAmount || c.GetPrefetchedFiles() != 1 {
		t.Error("it tells", c)
	}
	ar.Cache = nil
	if c := ar.CacheCounts(); c != nil {
		t.Error("without a cache it tells", c)
	}
}

// Of a file whose size nobody has told the cache holds as much as there is.
func TestFilesOfUnknownSizeAreCached(t *testing.T) {
	for _, size := range []int64{0, 4} {
		ar := sharingArea(t)
		ar.Sharing = nil
		path := filepath.Join(t.TempDir(), "x")
		writeText(t, path, "text")
		i := newInput(&wire.InputFile{File: &wire.FileRef{Lfn: "x", Tag: 1}, Pfn: "file:" + path, Size: size})
		if err := ar.bring(t.Context(), i); err != nil || i.cached == nil || i.Size != 4 || i.cached.Size() != 4 {
			t.Fatalf("with the size %d: %v, %d bytes", size, err, i.Size)
		}
		i.cached.Release()
		gone := newInput(&wire.InputFile{File: &wire.FileRef{Lfn: "y", Tag: 1}, Pfn: "file:" + path + ".gone", Size: size})
		if err := ar.bring(t.Context(), gone); !isMissing(err) {
			t.Error("a file that is not there:", err)
		}
	}
}
