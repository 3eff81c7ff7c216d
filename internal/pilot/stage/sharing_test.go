package stage

import (
	"bytes"
	"errors"
	"fairway/internal/storage/served"
	"hash/adler32"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zeebo/blake3"

	"fairway/internal/access"
	"fairway/internal/cache"
	"fairway/internal/share"
	"fairway/internal/storage"
	"fairway/internal/storage/elements"
	"fairway/internal/wire"
	"fairway/lib/sched"
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
		Sched: s, Log: slog.New(slog.DiscardHandler), Cache: c, Storage: elements.New(storage.Roots{}, s.Sleep),
		Sharing: &Sharing{arrivals: share.NewArrivals(s), unserved: map[string]uint64{}, sources: map[string]*past{}},
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
	i := &input{
		Item: cache.Item{Ref: cache.Ref{LFN: "x", Version: 1, Tag: 1}, Size: int64(len(text))}, pfn: server.URL + "/x",
	}
	if err := ar.bringShared(t.Context(), i); err != nil {
		t.Fatal(err)
	}
	defer i.cached.Release()
	if got, err := os.ReadFile(i.cached.Path()); err != nil || !bytes.Equal(got, text) ||
		i.cached.Hash() != blake3.Sum256(text) {
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
	var log bytes.Buffer
	ar.Log = slog.New(slog.NewTextHandler(&log, nil))
	source, err := share.Listen(net.IPv4(127, 0, 0, 1), other.Cache, other.Sharing.arrivals, other.Log)
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	key := access.ShareKey{1}
	bring := func(name string) {
		t.Helper()
		i := &input{
			Item: cache.Item{Ref: cache.Ref{LFN: name, Version: 1, Tag: 1}, Size: int64(len(text))},
			sum:  adler32.Checksum([]byte(text)), hash: blake3.Sum256([]byte(text)), committed: true,
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
	f, _, err := other.Cache.Fetch(t.Context(), cache.Item{
		Ref: cache.Ref{LFN: "c", Version: 1, Tag: 1}, Size: int64(len(text)),
	}, func(path string) (int64, cache.Hash, error) {
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
	// Who looks at the log is warned once, of whom and why.
	var warned []string
	for line := range strings.Lines(log.String()) {
		if strings.Contains(line, "level=WARN") {
			warned = append(warned, line)
		}
	}
	if len(warned) != 1 || !strings.Contains(warned[0], "source=source") || !strings.Contains(warned[0], "reason=") {
		t.Errorf("warnings: %q", warned)
	}
}

// A source that sends a byte a second is left for the storage element after some seconds, in which the TaskQueue is
// told what is waited for, from where, and how much has come. One that goes on like that is not asked for a while.
func TestASourceThatCrawlsIsLeft(t *testing.T) {
	t.Parallel() // it waits for share.BeginTime and share.StallTime
	const text = "twenty bytes of text"
	storage := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(text))
	}))
	defer storage.Close()
	identity, err := access.NewAuthority("crawling pilot")
	if err != nil {
		t.Fatal(err)
	}
	settings, err := identity.ServerTLS()
	if err != nil {
		t.Fatal(err)
	}
	var asked, sent atomic.Int32
	left := make(chan struct{}, share.MaxStreams)
	source := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		w.Header().Set("Fairway-Size", strconv.Itoa(len(text)))
		every := time.NewTicker(time.Second)
		defer every.Stop()
		for i := range text {
			if _, err := w.Write([]byte(text[i : i+1])); err != nil {
				break
			}
			_ = http.NewResponseController(w).Flush()
			sent.Add(1)
			select {
			case <-every.C:
			case <-r.Context().Done():
				left <- struct{}{}
				return
			}
		}
	}))
	source.TLS = settings
	source.StartTLS()
	defer source.Close()
	ar := sharingArea(t)
	bring := func(name string) {
		i := &input{
			Item: cache.Item{Ref: cache.Ref{LFN: name, Version: 1, Tag: 1}, Size: int64(len(text))},
			sum:  adler32.Checksum([]byte(text)), hash: blake3.Sum256([]byte(text)), committed: true,
			pfn: storage.URL + "/" + name, source: &wire.Source{
				Pilot: "crawler", Address: source.Listener.Addr().String(), Pin: identity.Pin(), Epoch: 1, Ticket: []byte("any"),
			},
		}
		defer ar.Waits.begin(1, i)()
		if err := ar.bringShared(t.Context(), i); err != nil {
			t.Error(err)
			return
		}
		i.cached.Release()
	}
	told := make(chan struct{}, MaxPoor)
	ar.Waits.Wake = func() { told <- struct{}{} }
	var coming sync.WaitGroup
	for i := range MaxPoor {
		coming.Go(func() { bring(strconv.Itoa(i)) })
	}
	for range MaxPoor {
		<-told
	}
	m := new(wire.SyncRequest)
	ar.Waits.Carry(m)
	for _, w := range m.GetWaiting() {
		if w.GetSource() != "crawler" || w.GetAttempt() != 1 || w.GetBytes() >= int64(len(text)) {
			t.Errorf("the TaskQueue is told %v", w)
		}
	}
	coming.Wait()
	for range MaxPoor {
		<-left
	}
	if len(m.GetWaiting()) != MaxPoor || sent.Load() >= int32(MaxPoor*len(text)) {
		t.Errorf("of %d files it is told that they are waited for, and %d bytes came", len(m.GetWaiting()), sent.Load())
	}
	bring("another")
	if asked.Load() != MaxPoor {
		t.Errorf("it was asked %d times", asked.Load())
	}
	ar.Sharing.Carry(m)
	if len(m.GetUnserved()) > 0 {
		t.Error("others are told that it is of no use, though it may be better soon")
	}
}

// Where the commit of an output has no hash, the one that some pilot has told proves nothing: what
// a job reads has the adler32 of the commit, and a good stored file is not lost. A hash in the
// commit alone is believed.
func TestAHashThatIsNotInTheCommitProvesNothing(t *testing.T) {
	const good, bad = "good text", "evil text"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(good))
	}))
	defer server.Close()
	liar := sharingArea(t)
	source, err := share.Listen(net.IPv4(127, 0, 0, 1), liar.Cache, liar.Sharing.arrivals, liar.Log)
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	key := access.ShareKey{1}
	source.SetKeys([]share.Key{{Epoch: 1, Key: key}})
	ref := cache.Ref{LFN: "x", Version: 1, Tag: 1}
	f, _, err := liar.Cache.Fetch(t.Context(), cache.Item{Ref: ref, Size: int64(len(bad))},
		func(path string) (int64, cache.Hash, error) {
			return int64(len(bad)), blake3.Sum256([]byte(bad)), os.WriteFile(path, []byte(bad), 0o444)
		})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Release()
	from := &wire.Source{
		Pilot: "liar", Address: source.Address(), Pin: source.Pin(), Epoch: 1, Ticket: key.ShareTicket("x", 1, 1),
	}
	hash := blake3.Sum256([]byte(bad))
	for _, committed := range []bool{false, true} {
		for _, from := range []*wire.Source{from, nil} {
			if committed && from != nil {
				continue // then it is no lie
			}
			ar := sharingArea(t)
			i := newInput(&wire.InputFile{
				File: RefToWire(ref), Size: int64(len(good)), Pfn: server.URL + "/x", Adler32: adler32.Checksum([]byte(good)),
				Blake3:    hash[:],
				Committed: committed, Source: from,
			})
			if err := ar.bring(t.Context(), i); err != nil {
				t.Fatal(err)
			}
			defer i.cached.Release()
			got, err := os.ReadFile(i.cached.Path())
			if err != nil || string(got) != good || !committed && i.cached.Hash() != blake3.Sum256([]byte(good)) {
				t.Errorf("%q with the hash %x has come, %v", got, i.cached.Hash(), err)
			}
			if i.before, err = os.Stat(i.cached.Path()); err != nil {
				t.Fatal(err)
			}
			in := &Inputs{ar: ar, attempt: &Execution{Ctx: t.Context()}}
			if err := in.verify(i, i.cached.Path()); isSpoilt(err) != committed {
				t.Errorf("with a hash that is in the commit (%v): %v", committed, err)
			}
			m := &wire.SyncRequest{Seq: 1}
			if ar.Sharing.Carry(m); (len(m.Unserved) == 1) != (from != nil) {
				t.Errorf("the TaskQueue is told of %v", m.Unserved)
			}
		}
	}
}

// The TaskQueue is told of a source until it has heard so.
func TestSourcesAreToldOfUntilHeard(t *testing.T) {
	s := &Sharing{unserved: map[string]uint64{"p": 0}}
	carried := func(seq uint64) int {
		m := &wire.SyncRequest{Seq: seq}
		s.Carry(m)
		return len(m.GetUnserved())
	}
	s.Acknowledge(9) // of nothing that was said
	if carried(5) != 1 {
		t.Error("it is told of nobody")
	}
	if s.Acknowledge(4); carried(6) != 1 {
		t.Error("it is not told again")
	}
	if s.Acknowledge(5); carried(7) != 0 {
		t.Error("it is told of what was heard")
	}
}

// told is the body of a file of which mode and time are known.
type told struct {
	io.Reader
	modified time.Time
}

func (told) Close() error                           { return nil }
func (b told) Attributes() (fs.FileMode, time.Time) { return 0o755, b.modified }

// What is passed on as it comes is as old as the file, and nobody may write to it.
func TestWhatIsPassedOnIsLikeTheFile(t *testing.T) {
	ar := sharingArea(t)
	for _, modified := range []time.Time{{}, time.Unix(1_700_000_000, 0)} {
		i := &input{Item: cache.Item{Ref: cache.Ref{LFN: "x", Version: 1}, Size: 4}}
		path := t.TempDir() + "/x"
		arrival := ar.Sharing.arrivals.Add(i.Item)
		size, err := stream(told{strings.NewReader("text"), modified}, arrival, path, i.newSums(true))
		arrival.End(cache.Hash{})
		if err != nil || size != 4 {
			t.Fatal(size, err)
		}
		info := infoOf(t, path)
		if info.Mode().Perm() != 0o555 || info.ModTime().Equal(modified) != !modified.IsZero() {
			t.Errorf("it has the mode %o and is from %v", info.Mode().Perm(), info.ModTime())
		}
	}
}

// What is in a folder here is linked, and needs not be opened to be passed on; what is elsewhere does.
func TestOnlyWhatIsElsewhereIsPassedOn(t *testing.T) {
	ar := sharingArea(t)
	opened := errors.New("it was opened")
	var n atomic.Int64
	ar.Storage = counting{&n, opened}
	if body, err := ar.openStream(t.Context(), "file:/x"); body != nil || err != nil {
		t.Error("a file of a folder here:", body, err)
	}
	if _, err := ar.openStream(t.Context(), "https://data/x"); !errors.Is(err, opened) {
		t.Error("a file of a server:", err)
	}
	ar.Reach = &Reach{shared: map[string]served.Reach{"folder:": {Reads: true}}}
	if body, err := ar.openStream(t.Context(), "folder:x"); body != nil || err != nil {
		t.Error("a file of a shared folder:", body, err)
	}
	if _, err := ar.openStream(t.Context(), "file:/x"); !errors.Is(err, opened) {
		t.Error("a file that the server has:", err)
	}
}
