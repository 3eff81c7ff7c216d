package stage

import (
	"bytes"
	"hash/adler32"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/zeebo/blake3"

	"fairway/internal/access"
	"fairway/internal/cache"
	"fairway/internal/share"
	"fairway/internal/storage"
	"fairway/internal/storage/elements"
	"fairway/internal/wire"
	"fairway/sched"
)

// sharingArea is one of a pilot that shares its cache.
func sharingArea(t *testing.T) *Area {
	t.Helper()
	c, err := cache.Open(cache.Config{Dir: t.TempDir(), Name: "p", MaxSpace: 1 << 30})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	s := sched.Default()
	return &Area{
		Sched: s, Log: slog.New(slog.DiscardHandler), Cache: c, Storage: elements.New(storage.Places{}, s.Sleep),
		Sharing: &Sharing{arrivals: share.NewArrivals(s), unserved: map[string]uint64{}, refusals: map[string]int{}},
	}
}

// A transfer that breaks off, and that nothing lets go on where it was cut, is made again,
// as it is without caches of other hosts.
func TestATransferThatIsPassedOnBreaksOff(t *testing.T) {
	text := bytes.Repeat([]byte("0123456789"), 100_000)
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", strconv.Itoa(len(text)))
		if asked.Add(1) == 1 {
			_, _ = w.Write(text[:len(text)/2])
			panic(http.ErrAbortHandler)
		}
		_, _ = w.Write(text)
	}))
	defer server.Close()
	ar := sharingArea(t)
	i := &input{Item: cache.Item{Ref: cache.Ref{LFN: "x", Version: 1, Tag: 1}, Size: int64(len(text))}, pfn: server.URL + "/x"}
	if err := ar.bringShared(t.Context(), i); err != nil {
		t.Fatal(err)
	}
	defer i.cached.Release()
	if got, err := os.ReadFile(i.cached.Path()); err != nil || !bytes.Equal(got, text) || i.cached.Hash() != blake3.Sum256(text) {
		t.Errorf("%d bytes of %d, hash %x, %v", len(got), len(text), i.cached.Hash(), err)
	}
}

// A source that refuses what the TaskQueue says it has is read past, and told of when it goes
// on like that: one file may have gone from its cache a moment before.
func TestASourceThatHasNothingIsTold(t *testing.T) {
	const text = "text"
	var fromStorage atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fromStorage.Add(1)
		_, _ = w.Write([]byte(text))
	}))
	defer server.Close()
	ar, other := sharingArea(t), sharingArea(t)
	source, err := share.Listen(net.IPv4(127, 0, 0, 1), other.Cache, other.Sharing.arrivals, other.Log)
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	key := access.ShareKey{1}
	bring := func(name string) {
		t.Helper()
		i := &input{
			Item: cache.Item{Ref: cache.Ref{LFN: name, Version: 1, Tag: 1}, Size: int64(len(text))}, sum: adler32.Checksum([]byte(text)), hash: blake3.Sum256([]byte(text)),
			pfn: server.URL + "/" + name, source: &wire.Source{
				Pilot: "source", Address: source.Address(), Pin: source.Pin(), Epoch: 1,
				Ticket: key.ShareTicket(name, 1, 1),
			},
		}
		if err := ar.bringShared(t.Context(), i); err != nil {
			t.Fatal(err)
		}
		i.cached.Release()
	}
	told := func() []string {
		m := &wire.SyncRequest{Seq: 1}
		ar.Sharing.Carry(m)
		return m.Unserved
	}
	source.SetKeys([]share.Key{{Epoch: 1, Key: access.ShareKey{2}}})
	for _, name := range []string{"a", "b"} {
		bring(name)
	}
	f, _, err := other.Cache.Fetch(t.Context(), cache.Item{Ref: cache.Ref{LFN: "c", Version: 1, Tag: 1}, Size: int64(len(text))}, func(path string) (int64, cache.Hash, error) {
		return int64(len(text)), blake3.Sum256([]byte(text)), os.WriteFile(path, []byte(text), 0o444)
	})
	if err != nil {
		t.Fatal(err)
	}
	f.Release()
	source.SetKeys([]share.Key{{Epoch: 1, Key: key}})
	bring("c")
	if n := fromStorage.Load(); n != 2 {
		t.Fatalf("%d files were read from storage, of 2 that the source refused and one that it gave", n)
	}
	source.SetKeys([]share.Key{{Epoch: 1, Key: access.ShareKey{2}}})
	for _, name := range []string{"d", "e"} {
		bring(name)
	}
	if all := told(); len(all) > 0 {
		t.Fatal("it is told of after a refusal or two:", all)
	}
	bring("f")
	if all := told(); !slices.Equal(all, []string{"source"}) {
		t.Fatal(all)
	}
	// It is not asked again for what it was named for meanwhile.
	ar.Sharing.Acknowledge(1)
	source.SetKeys([]share.Key{{Epoch: 1, Key: key}})
	asked := fromStorage.Load()
	bring("c2")
	if all := told(); fromStorage.Load() != asked+1 || !slices.Equal(all, []string{"source"}) {
		t.Errorf("%d files were read from storage, and the TaskQueue is told of %v", fromStorage.Load()-asked, all)
	}
}
