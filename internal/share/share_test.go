package share

import (
	"bytes"
	"context"
	"errors"
	"hash/adler32"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zeebo/blake3"

	"fairway/internal/access"
	"fairway/internal/cache"
	"fairway/lib/sched"
)

// pilot is one that serves its cache, with the key of epoch 7.
type pilot struct {
	*Server
	t      *testing.T
	key    access.ShareKey
	folder string // of the cache
}

func newPilot(t *testing.T, key byte) *pilot {
	t.Helper()
	folder := t.TempDir()
	c, err := cache.Open(cache.Config{Dir: folder, Name: "p", MaxSpace: 1 << 30})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	s, err := Listen(net.IPv4(127, 0, 0, 1), c, NewArrivals(sched.Default()), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	p := &pilot{Server: s, t: t, key: access.ShareKey{key}, folder: folder}
	s.SetKeys([]Key{{7, p.key}, {8, access.ShareKey{key, 8}}})
	return p
}

func item(text []byte) cache.Item {
	return cache.Item{Ref: cache.Ref{LFN: "a/b c.dat", Version: 3, Tag: 1 << 63}, Size: int64(len(text))}
}

func (p *pilot) source(i cache.Item) Source {
	return Source{Address: p.Address(), Pin: p.Pin(), Epoch: 7, Ticket: p.key.ShareTicket(i.LFN, i.Version, i.Tag)}
}

// holds puts a file into the pilot's cache.
func (p *pilot) holds(i cache.Item, text []byte) {
	p.t.Helper()
	f, _, err := p.cache.Fetch(p.t.Context(), i, func(path string) (int64, cache.Hash, error) {
		return int64(len(text)), blake3.Sum256(text), os.WriteFile(path, text, 0o555)
	})
	if err != nil {
		p.t.Fatal(err)
	}
	f.Release()
}

// gets has a pilot read a file from others into its own cache.
func (p *pilot) gets(i cache.Item, hash cache.Hash, from Source, origin *Source) error {
	p.t.Helper()
	return p.proves(i, Proof{Hash: hash}, from, origin)
}

func (p *pilot) proves(i cache.Item, proof Proof, from Source, origin *Source) error {
	a := p.arrivals.Add(i)
	var got cache.Hash
	f, _, err := p.cache.Fetch(p.t.Context(), i, func(path string) (int64, cache.Hash, error) {
		var err error
		got, err = Get(p.t.Context(), from, origin, i, proof, a, path)
		if _, there := os.Lstat(path); err != nil && there == nil {
			p.t.Error("something is left of a file that did not come")
		}
		return i.Size, got, err
	})
	if err == nil {
		f.Release()
	}
	a.End(got)
	return err
}

func (p *pilot) contents(i cache.Item) []byte {
	p.t.Helper()
	f, ok := p.cache.Get(p.t.Context(), i)
	if !ok {
		return nil
	}
	defer f.Release()
	text, err := os.ReadFile(f.Path())
	if err != nil {
		p.t.Fatal(err)
	}
	return text
}

// A chain of pilots has a file as it was, with its permissions and its time.
func TestFromPilotToPilot(t *testing.T) {
	text := bytes.Repeat([]byte("0123456789"), 100_000)
	i, sum := item(text), blake3.Sum256(text)
	first := newPilot(t, 1)
	first.holds(i, text)
	from := first
	for n := range byte(3) {
		p := newPilot(t, n+2)
		if err := p.gets(i, sum, from.source(i), nil); err != nil {
			t.Fatal(err)
		}
		from = p
	}
	if !bytes.Equal(from.contents(i), text) {
		t.Error("another file has arrived")
	}
	a, _ := first.cache.Get(t.Context(), i)
	b, _ := from.cache.Get(t.Context(), i)
	defer a.Release()
	defer b.Release()
	x, _ := os.Stat(a.Path())
	y, _ := os.Stat(b.Path())
	if y.Mode().Perm() != 0o555 || !x.ModTime().Equal(y.ModTime()) {
		t.Error(y.Mode(), x.ModTime(), y.ModTime())
	}
}

// A ticket is for one file at one pilot, while its epoch lasts.
func TestOnlyWithATicket(t *testing.T) {
	text := []byte("secret")
	i := item(text)
	p := newPilot(t, 1)
	p.holds(i, text)
	good := p.source(i)
	for name, change := range map[string]func(*Source){
		"none":              func(s *Source) { s.Ticket = nil },
		"of another file":   func(s *Source) { s.Ticket = p.key.ShareTicket(i.LFN, i.Version+1, i.Tag) },
		"of another name":   func(s *Source) { s.Ticket = p.key.ShareTicket("a/b", i.Version, i.Tag) },
		"of another pilot":  func(s *Source) { other := access.ShareKey{2}; s.Ticket = other.ShareTicket(i.LFN, i.Version, i.Tag) },
		"of another epoch":  func(s *Source) { s.Epoch = 8 },
		"of an older epoch": func(s *Source) { s.Epoch = 6 },
	} {
		bad := good
		change(&bad)
		reader := newPilot(t, 9)
		if err := reader.gets(i, blake3.Sum256(text), bad, nil); err == nil || errors.Is(err, ErrUnserved) {
			t.Errorf("ticket %s: %v", name, err)
		}
		if reader.contents(i) != nil {
			t.Errorf("ticket %s: the file has come", name)
		}
	}
	p.SetKeys([]Key{{8, access.ShareKey{1, 8}}, {9, access.ShareKey{1, 9}}})
	ahead := good
	ahead.Epoch = 10
	for name, ticket := range map[string]Source{"not told yet": ahead, "over": good} { // a job was queued for long
		reader := newPilot(t, 9)
		if err := reader.gets(i, blake3.Sum256(text), ticket, nil); err == nil || errors.Is(err, ErrRefused) {
			t.Errorf("that the epoch of a ticket is %s counts against the pilot that serves: %v", name, err)
		}
		if reader.contents(i) != nil {
			t.Errorf("the file has come, and the epoch of the ticket is %s", name)
		}
	}
}

// Names that lead elsewhere are names of no cached file, even with a ticket for them, and a
// file that has such a name stands in no other place than the cache.
func TestNamesLeadOutOfNoCache(t *testing.T) {
	text := []byte("text")
	long := strings.Repeat("x/", 2000)
	for _, name := range []string{
		"../../../../../../etc/hostname", "/etc/hostname", "file:/etc/hostname", "a\x00b", "a\nb", "%2e%2e/x", "?lfn=x", long,
	} {
		i := item(text)
		i.LFN = name
		p := newPilot(t, 1)
		if err := newPilot(t, 9).gets(i, blake3.Sum256(text), p.source(i), nil); err == nil {
			t.Errorf("%.40q has come from a pilot that does not hold it", name)
		}
		f, _, err := p.cache.Fetch(t.Context(), i, func(path string) (int64, cache.Hash, error) {
			if inside := p.folder + "/"; !strings.HasPrefix(filepath.Clean(path), inside) {
				t.Errorf("%.40q is fetched to %s", name, path)
			}
			return int64(len(text)), blake3.Sum256(text), os.WriteFile(path, text, 0o555)
		})
		if err != nil {
			continue // refused
		}
		if !strings.HasPrefix(filepath.Clean(f.Path()), p.folder+"/") {
			t.Errorf("%.40q is cached as %s", name, f.Path())
		}
		f.Release()
		reader := newPilot(t, 9)
		if err := reader.gets(i, blake3.Sum256(text), p.source(i), nil); err == nil && string(reader.contents(i)) != "text" {
			t.Errorf("%.40q has other contents: %q", name, reader.contents(i))
		}
	}
}

// A pilot passes on what has come before the rest is there: else sixteen hosts would
// have a file sixteen times later than the first.
func TestPassesOnWhatArrives(t *testing.T) {
	text := bytes.Repeat([]byte("0123456789"), 200_000)
	i, sum := item(text), blake3.Sum256(text)
	first, second := newPilot(t, 1), newPilot(t, 2)
	a := first.arrivals.Add(i)
	half, done := make(chan struct{}), make(chan error, 1)
	go func() {
		f, _, err := first.cache.Fetch(t.Context(), i, func(path string) (int64, cache.Hash, error) {
			out, err := a.Begin(path)
			if err != nil {
				return 0, cache.Hash{}, err
			}
			for _, part := range [][]byte{text[:len(text)/2], text[len(text)/2:]} {
				if _, err := out.Write(part); err != nil {
					return 0, cache.Hash{}, err
				}
				a.wrote(len(part))
				<-half
			}
			return i.Size, sum, nil
		})
		if err == nil {
			f.Release()
		}
		a.End(sum)
		done <- err
	}()
	coming := second.arrivals.Add(i)
	got := make(chan error, 1)
	path := filepath.Join(t.TempDir(), "x")
	go func() {
		_, err := Get(t.Context(), first.source(i), nil, i, Proof{Hash: sum}, coming, path)
		got <- err
	}()
	buffer := make([]byte, 1)
	if _, _, err := coming.readAt(t.Context(), buffer, i.Size/2-1); err != nil || buffer[0] != text[i.Size/2-1] {
		t.Error("half of the file is there and was not passed on:", err)
	}
	close(half)
	if err := errors.Join(<-done, <-got); err != nil {
		t.Fatal(err)
	}
	if there, err := os.ReadFile(path); err != nil || !bytes.Equal(there, text) {
		t.Error("another file has arrived", err)
	}
	coming.End(sum)
}

// A file that is asked for may come without arriving: another pilot of the host has brought it.
func TestAFileThatCameOtherwiseIsSent(t *testing.T) {
	text := []byte("one byte and some more")
	p, q, i := newPilot(t, 1), newPilot(t, 2), item(text)
	p.arrivals.patience = time.Hour
	got := make(chan error)
	go func() { got <- q.gets(i, blake3.Sum256(text), p.source(i), nil) }()
	for len(p.streams) == 0 {
		runtime.Gosched()
	}
	p.holds(i, text)
	p.arrivals.Came()
	if err := <-got; err != nil || !bytes.Equal(q.contents(i), text) {
		t.Errorf("%q, %v", q.contents(i), err)
	}
}

// A source that sends other bytes is found out, whatever it says of them itself.
func TestLyingSource(t *testing.T) {
	truth, lie := []byte("0123456789"), []byte("0124266789") // of the same adler32
	if adler32.Checksum(truth) != adler32.Checksum(lie) {
		t.Fatal("the lie is easily found")
	}
	i := item(truth)
	liar := newPilot(t, 1)
	liar.holds(i, lie)
	origin := newPilot(t, 2)
	origin.holds(i, truth)
	told := origin.source(i)
	for name, get := range map[string]func(*pilot) error{
		"the sum is known":    func(p *pilot) error { return p.gets(i, blake3.Sum256(truth), liar.source(i), nil) },
		"the origin knows it": func(p *pilot) error { return p.gets(i, cache.Hash{}, liar.source(i), &told) },
	} {
		p := newPilot(t, 3)
		if err := get(p); !errors.Is(err, ErrUnserved) {
			t.Errorf("%s: %v", name, err)
		}
		if p.contents(i) != nil {
			t.Errorf("%s: the lie is in the cache", name)
		}
	}
	if err := newPilot(t, 3).gets(i, cache.Hash{}, origin.source(i), &told); err != nil {
		t.Error(err)
	}
	_ = liar.Close()
	for _, from := range []*pilot{origin, liar} { // of which one would be out of reach if it were asked
		if err := newPilot(t, 3).gets(i, cache.Hash{}, from.source(i), nil); err == nil || errors.Is(err, ErrUnserved) {
			t.Errorf("nobody knows the sum: %v", err)
		}
	}
}

// The adler32 in a commit is compared beside a hash that is not there. If the hash alone is wrong,
// the source is not blamed.
func TestAFalseHashBesideAnAdler32(t *testing.T) {
	truth, lie, forged := []byte("0123456789"), []byte("evil bytes"), []byte("0124266789")
	i := item(truth)
	for name, c := range map[string]struct {
		sent, told []byte
		right      bool
		blamed     bool
	}{
		"right":                           {truth, truth, true, false},
		"a lie, and the hash of it":       {lie, lie, false, true},
		"the truth, and the hash of lies": {truth, lie, false, false},
		"a forged adler32":                {forged, truth, false, false},
	} {
		source, reader := newPilot(t, 1), newPilot(t, 2)
		source.holds(i, c.sent)
		err := reader.proves(i, Proof{blake3.Sum256(c.told), adler32.Checksum(truth)}, source.source(i), nil)
		if (err == nil) != c.right || errors.Is(err, ErrUnserved) != c.blamed || (reader.contents(i) != nil) != c.right {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A lie that is passed on while it arrives is found out by all to whom it comes. Who has
// passed it on is not blamed.
func TestALieThatIsPassedOn(t *testing.T) {
	truth := bytes.Repeat([]byte("0123456789"), 100_000)
	lie := bytes.Clone(truth)
	copy(lie[500_000:], "0124266789") // of the same adler32
	i, hash := item(truth), cache.Hash(blake3.Sum256(truth))
	liar, second, third := newPilot(t, 1), newPilot(t, 2), newPilot(t, 3)
	liar.holds(i, lie)
	last := make(chan error, 1)
	go func() { last <- third.gets(i, hash, second.source(i), nil) }() // which waits for the second one
	if err := second.gets(i, hash, liar.source(i), nil); !errors.Is(err, ErrUnserved) {
		t.Error(err)
	}
	if err := <-last; err == nil || errors.Is(err, ErrUnserved) {
		t.Error(err)
	}
	if second.contents(i) != nil || third.contents(i) != nil {
		t.Error("the lie is in a cache")
	}
}

// What breaks off in the middle leaves nothing, and may be tried again.
func TestSourceDiesInTheMiddle(t *testing.T) {
	text := bytes.Repeat([]byte("0123456789"), 100_000)
	i := item(text)
	for name, die := range map[string]func(*pilot, *Arrival){
		"its own source ends": func(_ *pilot, a *Arrival) { a.End(cache.Hash{}) },
		"the pilot ends":      func(p *pilot, _ *Arrival) { _ = p.Close() },
	} {
		first, second := newPilot(t, 1), newPilot(t, 2)
		a := first.arrivals.Add(i)
		if _, err := a.Begin(filepath.Join(t.TempDir(), "x")); err != nil {
			t.Fatal(err)
		}
		if _, err := a.file.Write(text[:1000]); err != nil {
			t.Fatal(err)
		}
		a.wrote(1000)
		coming := second.arrivals.Add(i)
		path, got := filepath.Join(t.TempDir(), "x"), make(chan error, 1)
		go func() {
			_, err := Get(t.Context(), first.source(i), nil, i, Proof{Hash: cache.Hash{1}}, coming, path)
			got <- err
		}()
		if _, _, err := coming.readAt(t.Context(), make([]byte, 1), 999); err != nil {
			t.Error(err)
		}
		die(first, a)
		if err := <-got; !errors.Is(err, ErrPoor) || errors.Is(err, ErrUnserved) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := os.Lstat(path); err == nil {
			t.Errorf("%s: a part of the file is left", name)
		}
	}
}

// A pilot whose own source breaks off begins anew. Those that read from it go on where they
// are; if they got other bytes before, it breaks off and is not blamed for them.
func TestArrivalBeginsAnew(t *testing.T) {
	text := bytes.Repeat([]byte("0123456789"), 100_000)
	i, sum := item(text), blake3.Sum256(text)
	for name, before := range map[string]string{"with the same bytes": "0123456789", "with others": "lies, lies"} {
		first, second := newPilot(t, 1), newPilot(t, 2)
		a, coming := first.arrivals.Add(i), second.arrivals.Add(i)
		path, got := filepath.Join(t.TempDir(), "x"), make(chan error, 1)
		go func() {
			_, err := Get(t.Context(), first.source(i), nil, i, Proof{Hash: sum}, coming, path)
			got <- err
		}()
		f, _, err := first.cache.Fetch(t.Context(), i, func(path string) (int64, cache.Hash, error) {
			for _, bytes := range [][]byte{[]byte(before), text} {
				out, err := a.Begin(path)
				if err != nil {
					return 0, cache.Hash{}, err
				}
				if _, err = out.Write(bytes); err != nil {
					return 0, cache.Hash{}, err
				}
				a.wrote(len(bytes))
				if _, _, err := coming.readAt(t.Context(), make([]byte, 1), int64(len(bytes)-1)); err != nil {
					return 0, cache.Hash{}, err
				}
				if len(bytes) == len(text) {
					break
				}
				if err := os.Remove(path); err != nil {
					return 0, cache.Hash{}, err
				}
			}
			return i.Size, sum, nil
		})
		if err != nil {
			t.Fatal(name, err)
		}
		f.Release()
		a.End(sum)
		err = <-got
		if there, _ := os.ReadFile(path); name == "with the same bytes" && (err != nil || !bytes.Equal(there, text)) {
			t.Error(name, err)
		} else if name == "with others" && (err == nil || errors.Is(err, ErrUnserved)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Who answers at the address is not who it should be, or nobody does.
func TestSourceIsSomebodyElse(t *testing.T) {
	text := []byte("text")
	i := item(text)
	p, other := newPilot(t, 1), newPilot(t, 1)
	p.holds(i, text)
	other.holds(i, text)
	somebody := p.source(i)
	somebody.Pin = other.Pin()
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	noTLS := p.source(i)
	noTLS.Address = plain.Listener.Addr().String()
	nobody := other.source(i)
	_ = other.Close()
	for name, from := range map[string]Source{"another key": somebody, "plain HTTP": noTLS, "nobody": nobody} {
		if err := newPilot(t, 3).gets(i, blake3.Sum256(text), from, nil); !errors.Is(err, ErrUnserved) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A file of another size than was asked for never fills the disk.
func TestSourceSendsTooMuch(t *testing.T) {
	text := []byte("text")
	p := newPilot(t, 1)
	p.holds(item([]byte("longer text")), []byte("longer text"))
	if err := newPilot(t, 2).gets(item(text), blake3.Sum256(text), p.source(item(text)), nil); !errors.Is(err,
		ErrUnserved) {
		t.Error(err)
	}
}

// Who gets a file waits for a source that is slower than a storage element would be for some seconds, not until it
// has sent all.
func TestASlowSourceIsLeft(t *testing.T) {
	for name, c := range map[string]struct {
		size, rate int64 // bytes, and bytes a second
		comes      bool
	}{
		"a byte a second":           {20, 1, false},
		"a large file, bytewise":    {1 << 30, 1, false},
		"a tenth of what is needed": {8 << 20, StallBytes / 100, false},
		"a small file":              {10, 1, true},
		"twice what is needed":      {8 << 20, StallBytes / 5, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			a := NewArrivals(sched.Default()).Add(cache.Item{Size: c.size})
			out, err := a.Begin(filepath.Join(t.TempDir(), "x"))
			if err != nil {
				t.Fatal(err)
			}
			defer out.Close()
			stalled, began := endSlow(cancel, c.size), time.Now()
			body := &bounded{&dripping{ctx, c.size, c.rate}, c.size, 0, stalled}
			switch err := receive(ctx, body, out, a, io.Discard); {
			case c.comes && err != nil:
				t.Errorf("%s: %v", name, err)
			case !c.comes && (!errors.Is(err, ErrPoor) || time.Since(began) > BeginTime+StallTime):
				t.Errorf("%s: %v after %v", name, err, time.Since(began))
			}
			stalled.Stop()
		})
	}
}

// dripping gives bytes once a second.
type dripping struct {
	ctx        context.Context
	left, rate int64
}

func (d *dripping) Read(p []byte) (int, error) {
	if d.left == 0 {
		return 0, io.EOF
	}
	select {
	case <-time.After(time.Second):
	case <-d.ctx.Done():
		return 0, d.ctx.Err()
	}
	n := min(d.left, d.rate, int64(len(p)))
	d.left -= n
	return int(n), nil
}

// A pilot that sends as much as it may refuses more at once.
func TestStreamsAreLimited(t *testing.T) {
	text := []byte("text")
	i := item(text)
	p := newPilot(t, 1)
	p.holds(i, text)
	for range MaxStreams {
		p.streams <- struct{}{}
	}
	if err := newPilot(t, 2).gets(i, blake3.Sum256(text), p.source(i), nil); !errors.Is(err, ErrPoor) {
		t.Error(err)
	}
	<-p.streams
	if err := newPilot(t, 2).gets(i, blake3.Sum256(text), p.source(i), nil); err != nil {
		t.Error(err)
	}
}

// Strangers cannot keep a pilot from those that have a ticket, nor take all its descriptors.
func TestStrangersHaveLittleTime(t *testing.T) {
	text := []byte("text")
	i := item(text)
	p := newPilot(t, 1)
	p.holds(i, text)
	var first net.Conn
	for range maxStrangers + 8 {
		conn, err := net.Dial("tcp", p.Address())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if first == nil {
			first = conn
		}
	}
	if err := newPilot(t, 2).gets(i, blake3.Sum256(text), p.source(i), nil); err != nil {
		t.Error(err)
	}
	_ = first.SetReadDeadline(time.Now().Add(access.HeaderTime / 2))
	if _, err := first.Read(make([]byte, 1)); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("the oldest of too many strangers is still there")
	}
}

// Whatever is asked for, nothing is sent without a ticket, and nothing ends the server.
func FuzzRequest(f *testing.F) {
	f.Add("lfn=a&version=1&tag=ff", "7", "AAAA")
	f.Add("lfn=a&version=1&tag=ff", "9", "AAAA")
	f.Add("lfn=..%2f..%2fetc%2fpasswd&version=-1&tag=zz", "x", "")
	s := &Server{
		arrivals: NewArrivals(sched.Default()), keys: []Key{{7, access.ShareKey{1}}}, streams: make(chan struct{}, 1),
	}
	f.Fuzz(func(t *testing.T, query, epoch, ticket string) {
		r := httptest.NewRequest(http.MethodGet, filePath, nil)
		r.URL.RawQuery = query
		r.Header[epochHeader], r.Header[ticketHeader] = []string{epoch}, []string{ticket}
		w := httptest.NewRecorder()
		if _, ok := s.asked(w, r); ok ||
			!slices.Contains([]int{http.StatusForbidden, http.StatusBadRequest, http.StatusServiceUnavailable}, w.Code) {
			t.Error(w.Code, ok)
		}
	})
}
