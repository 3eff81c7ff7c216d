package stage

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"sync/atomic"
	"testing"

	"fairway/internal/cache"
	"fairway/internal/share"
	"fairway/internal/storage"
	"fairway/internal/storage/elements"
	"fairway/sched"
)

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
	c, err := cache.Open(cache.Config{Dir: t.TempDir(), Name: "p", MaxSpace: 1 << 30})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	s := sched.Default()
	ar := &Area{
		Sched: s, Log: slog.New(slog.DiscardHandler), Cache: c, Storage: elements.New(storage.Places{}, s.Sleep),
		Sharing: &Sharing{arrivals: share.NewArrivals(s), unserved: map[string]uint64{}},
	}
	i := &input{Item: cache.Item{Ref: cache.Ref{LFN: "x", Version: 1, Tag: 1}, Size: int64(len(text))}, pfn: server.URL + "/x"}
	if err := ar.bringShared(t.Context(), i); err != nil {
		t.Fatal(err)
	}
	defer i.cached.Release()
	if got, err := os.ReadFile(i.cached.Path()); err != nil || !bytes.Equal(got, text) || i.cached.Sum() == 0 {
		t.Errorf("%d bytes of %d, sum %08x, %v", len(got), len(text), i.cached.Sum(), err)
	}
}
