package served

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"fairway/internal/storage"
	"fairway/internal/storage/storagetest"
	"fairway/lib/seed"
)

// launchHeader is how the pilots of these tests say who they are.
const launchHeader = "Test-Launch"

type launchKey struct{}

// node is a server with its files.
type node struct {
	key     Key
	folder  string // of the files of the state
	element storage.Element
	config  Config
	handler atomic.Pointer[Handler]
	url     string
	written atomic.Int64 // bytes of bodies that have come to the server
}

func newNode(t *testing.T, change func(*Config)) *node {
	t.Helper()
	n := &node{key: Key{1, 2, 3}, folder: t.TempDir()}
	n.element = storage.Local(storage.Roots{State: n.folder, Folder: n.folder})
	n.config = Config{
		Element: n.element, Unfinished: filepath.Join(n.folder, "unfinished"), Authority: &n.key,
		Launch: func(ctx context.Context) (string, bool) {
			launch, ok := ctx.Value(launchKey{}).(string)
			return launch, ok
		},
	}
	if change != nil {
		change(&n.config)
	}
	n.restart()
	return n
}

// restart puts another handler in the place of the one that is there, whose requests
// end, as those of a process that was killed do.
func (n *node) restart() {
	before := n.handler.Swap(NewHandler(n.config))
	if before == nil {
		return
	}
	for _, one := range before.uploads.all() {
		before.uploads.take(&upload{name: one.name})
		<-one.done
	}
}

func (u *uploads) all() (active []*upload) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, one := range u.active {
		active = append(active, one)
	}
	return active
}

// ServeHTTP stands for the server that knows its launches.
func (n *node) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if launch := r.Header.Get(launchHeader); launch != "" {
		r = r.WithContext(context.WithValue(r.Context(), launchKey{}, launch))
	}
	r.Body = &counted{r.Body, &n.written}
	n.handler.Load().ServeHTTP(w, r)
}

type counted struct {
	io.ReadCloser
	n *atomic.Int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.n.Add(int64(n))
	return n, err
}

// listen makes the server reachable over TLS.
func (n *node) listen(t *testing.T) *node {
	t.Helper()
	server := httptest.NewUnstartedServer(n)
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug) // handshakes are cut too
	server.StartTLS()
	t.Cleanup(server.Close)
	n.url = server.URL
	return n
}

// dialing makes a client of connections that change may spoil.
func dialing(t *testing.T, launch string, change func(net.Conn) net.Conn) *http.Client {
	t.Helper()
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig.InsecureSkipVerify = true
	if change != nil {
		transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			c, err := (&net.Dialer{}).DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return change(c), nil
		}
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: &as{launch, transport}}
}

// as says in each request which launch it comes from.
type as struct {
	launch string
	next   http.RoundTripper
}

func (a *as) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set(launchHeader, a.launch)
	return a.next.RoundTrip(r)
}

// atOnce is a Sleep that takes no time.
func atOnce(ctx context.Context, _ time.Duration) error { return ctx.Err() }

// all is an element whose pilots have tickets for everything.
type all struct {
	*Element
	launch string
	key    *Key
}

func (a all) with(ctx context.Context, right Right, pfn string) context.Context {
	return WithTicket(ctx, pfn, a.key.Ticket(a.launch, right, pfn))
}

func (a all) Open(ctx context.Context, pfn string) (io.ReadCloser, error) {
	return a.Element.Open(a.with(ctx, Read, pfn), pfn)
}

func (a all) Get(ctx context.Context, pfn, path string) (int64, error) {
	return a.Element.Get(a.with(ctx, Read, pfn), pfn, path)
}

func (a all) Stat(ctx context.Context, pfn string) (storage.Info, error) {
	return a.Element.Stat(a.with(ctx, Read, pfn), pfn)
}

func (a all) Put(ctx context.Context, path, pfn string) error {
	return a.Element.Put(a.with(ctx, Write, pfn), path, pfn)
}

// pilot is the element of a pilot.
func (n *node) pilot(t *testing.T, launch string, change func(net.Conn) net.Conn) all {
	t.Helper()
	return all{New(dialing(t, launch, change), n.url, atOnce), launch, &n.key}
}

// local is a file at the pilot.
func local(t *testing.T, contents string) string { t.Helper(); return storagetest.Local(t, contents) }

// store puts a file into the state of the server.
func (n *node) store(t *testing.T, name, contents string) string {
	t.Helper()
	path := filepath.Join(n.folder, name)
	if err := errors.Join(
		os.MkdirAll(filepath.Dir(path), 0o777), os.WriteFile(path, []byte(contents), 0o666),
	); err != nil {
		t.Fatal(err)
	}
	return "state:" + name
}

func (n *node) holds(t *testing.T, name, contents string) {
	t.Helper()
	got, err := os.ReadFile(filepath.Join(n.folder, name))
	if err != nil || string(got) != contents {
		t.Fatalf("%s: the server has %d bytes, the right ones: %v; %v", name, len(got), string(got) == contents, err)
	}
}

// unfinished are the names of files that are not complete.
func (n *node) unfinished(t *testing.T) (names []string) {
	t.Helper()
	found, err := os.ReadDir(n.config.Unfinished)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	for _, f := range found {
		names = append(names, f.Name())
	}
	return names
}

func get(t *testing.T, e storage.Element, pfn string) (string, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "got")
	size, err := e.Get(t.Context(), pfn, path)
	got, _ := os.ReadFile(path)
	if err == nil && size != int64(len(got)) {
		t.Errorf("%d bytes are there, and Get says %d", len(got), size)
	}
	return string(got), err
}

func TestConforms(t *testing.T) {
	n := newNode(t, nil).listen(t)
	var places atomic.Int64
	storagetest.Run(t, func(t *testing.T) storagetest.Folder {
		return storagetest.Folder{
			Element: n.pilot(t, "launch", nil), Server: n.element,
			PFN: fmt.Sprintf("state:%d", places.Add(1)),
		}
	})
	if left := n.unfinished(t); len(left) > 0 {
		t.Error("left behind:", left)
	}
}

// What a job must find as on the machine of the server: permission to be executed,
// and the state by which a file is known.
func TestFilesKeepWhatTheyAreKnownBy(t *testing.T) {
	n := newNode(t, nil).listen(t)
	e := n.pilot(t, "launch", nil)
	n.store(t, "in/program", "#!/bin/sh\n")
	original := filepath.Join(n.folder, "in/program")
	modified := time.Unix(1_600_000_000, 123_456_789)
	if err := errors.Join(os.Chmod(original, 0o755), os.Chtimes(original, modified, modified)); err != nil {
		t.Fatal(err)
	}
	pfn := "folder:in/program"
	here, err := n.element.Stat(t.Context(), pfn)
	if err != nil {
		t.Fatal(err)
	}
	there, err := e.Stat(t.Context(), pfn)
	if err != nil || storage.TagOf(pfn, here) != storage.TagOf(pfn, there) {
		t.Errorf("%+v here, %+v there, %v", here, there, err)
	}
	path := filepath.Join(t.TempDir(), "got")
	if _, err := e.Get(t.Context(), pfn, path); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o555 || !info.ModTime().Equal(modified) {
		t.Error(info.Mode(), info.ModTime(), err)
	}
	if err := e.Put(t.Context(), path, "state:out/program"); err != nil {
		t.Fatal(err)
	}
	if info, err = os.Stat(filepath.Join(n.folder, "out/program")); err != nil || info.Mode().Perm() != 0o555 {
		t.Error(info, err)
	}
}

// cutting is a connection that breaks after so many bytes.
type cutting struct {
	net.Conn
	reads, writes *atomic.Int64 // what is left
}

func (c *cutting) Read(p []byte) (int, error) { return c.limited(c.reads, p, c.Conn.Read) }

func (c *cutting) Write(p []byte) (int, error) { return c.limited(c.writes, p, c.Conn.Write) }

func (c *cutting) limited(left *atomic.Int64, p []byte, do func([]byte) (int, error)) (int, error) {
	if left == nil {
		return do(p)
	}
	room := left.Load()
	if room <= 0 {
		_ = c.Close()
		return 0, syscall.ECONNRESET
	}
	n, err := do(p[:min(int64(len(p)), room)])
	left.Add(-int64(n))
	if err == nil && n < len(p) && left.Load() <= 0 {
		_ = c.Close()
		return n, syscall.ECONNRESET
	}
	return n, err
}

// cutOnce breaks the first connection, in one direction, after so many bytes.
func cutOnce(reads bool, after int64) func(net.Conn) net.Conn {
	change, _ := cutAt(reads, after)
	return change
}

// cutAt is cutOnce, and tells what is left of the bytes.
func cutAt(reads bool, after int64) (change func(net.Conn) net.Conn, left *atomic.Int64) {
	var first sync.Once
	left = new(atomic.Int64)
	left.Store(after)
	return func(c net.Conn) net.Conn {
		spoilt := c
		first.Do(func() {
			if reads {
				spoilt = &cutting{Conn: c, reads: left}
			} else {
				spoilt = &cutting{Conn: c, writes: left}
			}
		})
		return spoilt
	}, left
}

// plain makes the server reachable without TLS, so that cuts fall between any two
// bytes of the protocol.
func (n *node) plain(t *testing.T) *node {
	t.Helper()
	server := httptest.NewServer(n)
	t.Cleanup(server.Close)
	n.url = server.URL
	return n
}

// Wherever the connection breaks, in a request, its body, an answer or what
// follows it, the file arrives, and it is the right one.
func TestGoesOnFromAnyByte(t *testing.T) {
	if _, err := os.Stat("/dev/shm"); err == nil {
		t.Setenv("TMPDIR", "/dev/shm") // where bringing a file to disk takes no time
	}
	n := newNode(t, nil).plain(t)
	contents := storagetest.Contents(50)
	pfn := n.store(t, "in", contents)
	const most = 4000
	for _, reads := range []bool{true, false} {
		for after := range int64(most) {
			change, left := cutAt(reads, after)
			if got, err := get(t, n.pilot(t, "launch", change), pfn); err != nil || got != contents {
				t.Fatalf("get, cut after %d bytes (of answers: %v): %d bytes, %v", after, reads, len(got), err)
			}
			if left.Load() > 0 { // it was not cut
				t.Logf("get: cut after each of %d bytes (of answers: %v)", after, reads)
				break
			}
		}
		for after := range int64(most) {
			change, left := cutAt(reads, after)
			name := fmt.Sprintf("out/%v/%d", reads, after)
			if err := n.pilot(t, "launch", change).Put(t.Context(), local(t, contents), "state:"+name); err != nil {
				t.Fatalf("put, cut after %d bytes (of answers: %v): %v", after, reads, err)
			}
			n.holds(t, name, contents)
			if left.Load() > 0 {
				t.Logf("put: cut after each of %d bytes (of answers: %v)", after, reads)
				break
			}
		}
	}
	if left := n.unfinished(t); len(left) > 0 {
		t.Error("left behind:", left)
	}
}

// A large file on a bad line is not sent from its beginning again and again.
func TestSendsOnlyWhatIsMissing(t *testing.T) {
	random := seed.Source(t)
	n := newNode(t, nil).listen(t)
	contents := storagetest.Contents(8 << 20)
	pfn := n.store(t, "in", contents)
	var came atomic.Int64
	var mu sync.Mutex
	bad := func(c net.Conn) net.Conn {
		mu.Lock()
		defer mu.Unlock()
		reads, writes := new(atomic.Int64), new(atomic.Int64)
		reads.Store(10_000 + random.Int64N(2<<20))
		writes.Store(10_000 + random.Int64N(2<<20))
		return &cutting{&received{c, &came}, reads, writes}
	}
	e := n.pilot(t, "launch", bad)
	if got, err := get(t, e, pfn); err != nil || got != contents {
		t.Fatal(len(got), err)
	}
	const most = 9 << 20 // with headers, and what was under way at each cut
	if came.Load() > most {
		t.Errorf("%d bytes came for a file of %d", came.Load(), len(contents))
	}
	if err := e.Put(t.Context(), local(t, contents), "state:out"); err != nil {
		t.Fatal(err)
	}
	n.holds(t, "out", contents)
	if n.written.Load() > most {
		t.Errorf("%d bytes were taken for a file of %d", n.written.Load(), len(contents))
	}
}

type received struct {
	net.Conn
	n *atomic.Int64
}

func (r *received) Read(p []byte) (int, error) {
	n, err := r.Conn.Read(p)
	r.n.Add(int64(n))
	return n, err
}

// A server that was killed and started again goes on with what it has.
func TestUploadOutlivesTheServer(t *testing.T) {
	n := newNode(t, nil).listen(t)
	contents := storagetest.Contents(4 << 20)
	e := n.pilot(t, "launch", cutOnce(false, 3<<20))
	restarted := false
	e.sleep = func(ctx context.Context, _ time.Duration) error {
		if !restarted {
			restarted = true
			n.restart()
		}
		return ctx.Err()
	}
	if err := e.Put(t.Context(), local(t, contents), "state:x"); err != nil {
		t.Fatal(err)
	}
	n.holds(t, "x", contents)
	if !restarted || n.written.Load() > 6<<20 {
		t.Errorf("restarted: %v; %d bytes were taken", restarted, n.written.Load())
	}
}

// spoiling changes one byte of the bodies that go through it.
type spoiling struct {
	next              http.RoundTripper
	requests, answers bool
	at                int64
}

func (s *spoiling) RoundTrip(r *http.Request) (*http.Response, error) {
	if s.requests && r.Body != nil && r.Method == http.MethodPut {
		r = r.Clone(r.Context())
		r.Body = &spoilt{ReadCloser: r.Body, at: s.at}
	}
	answer, err := s.next.RoundTrip(r)
	if err == nil && s.answers && r.Method == http.MethodGet {
		answer.Body = &spoilt{ReadCloser: answer.Body, at: s.at}
	}
	return answer, err
}

type spoilt struct {
	io.ReadCloser
	at int64
}

func (s *spoilt) Read(p []byte) (int, error) {
	n, err := s.ReadCloser.Read(p)
	if s.at >= 0 && s.at < int64(n) {
		p[s.at] ^= 1
	}
	s.at -= int64(n)
	return n, err
}

// A byte that changes on its way is noticed at the other end: nothing appears, and
// the error says that another try may go well.
func TestWrongBytesAreNotKept(t *testing.T) {
	n := newNode(t, nil).listen(t)
	pfn := n.store(t, "in", storagetest.Contents(1000))
	e := n.pilot(t, "launch", nil)
	e.client = &http.Client{
		Transport: &spoiling{next: dialing(t, "launch", nil).Transport, requests: true, answers: true, at: 999},
	}
	got, err := get(t, e, pfn)
	if wrong := (*storage.ChecksumError)(nil); !errors.As(err, &wrong) || !storage.Temporary(err) || got != "" {
		t.Error("get:", len(got), err)
	}
	if err = e.Put(t.Context(), local(t, storagetest.Contents(1000)), "state:x"); err == nil || !storage.Temporary(err) ||
		!strings.Contains(err.Error(), "BLAKE3") {
		t.Error("put:", err)
	}
	if _, err := os.Lstat(filepath.Join(n.folder, "x")); !errors.Is(err, fs.ErrNotExist) || len(n.unfinished(t)) > 0 {
		t.Error("something is left:", err, n.unfinished(t))
	}
}

// What somebody changes while it is read is not given to a job as if it were one
// file, also where the connection broke in between.
func TestFileThatChangesIsNotMixed(t *testing.T) {
	n := newNode(t, nil).listen(t)
	pfn := n.store(t, "in", storagetest.Contents(4<<20))
	e := n.pilot(t, "launch", cutOnce(true, 1<<20))
	e.sleep = func(ctx context.Context, _ time.Duration) error {
		n.store(t, "in", strings.Repeat("x", 4<<20))
		return ctx.Err()
	}
	if got, err := get(t, e, pfn); err == nil || !storage.Temporary(err) || got != "" {
		t.Error(len(got), err)
	}
}

// raw sends a request as no pilot does.
func (n *node) raw(t *testing.T, launch, method, path string, header map[string]string, body io.Reader) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, n.url+path, body)
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range header {
		r.Header.Set(name, value)
	}
	answer, err := dialing(t, launch, nil).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(answer.Body)
	return answer.StatusCode, string(text)
}

// A pilot that lies about lengths gets a refusal that says what is wrong.
func TestWrongLengthsAreRefused(t *testing.T) {
	n := newNode(t, nil).listen(t)
	sums, err := sumsOf(strings.NewReader("12345"))
	if err != nil {
		t.Fatal(err)
	}
	for what, change := range map[string]func(http.Header){
		"more than was announced":  func(h http.Header) { h.Set(sizeHeader, "4") },
		"less than was announced":  func(h http.Header) { h.Set(sizeHeader, "6") },
		"a size below 0":           func(h http.Header) { h.Set(sizeHeader, "-1") },
		"no size":                  func(h http.Header) { h.Del(sizeHeader) },
		"a part of another length": func(h http.Header) { h.Set("Content-Range", "bytes 2-3/5") },
		"a part beyond the end":    func(h http.Header) { h.Set("Content-Range", "bytes 9-4/5") },
		"odd permissions":          func(h http.Header) { h.Set(modeHeader, "4755") },
		"half a sum":               func(h http.Header) { h.Set(blake3Header, "ab") },
	} {
		h := http.Header{}
		writeFile(h, file{size: 5, mode: 0o644, sums: sums})
		change(h)
		header := map[string]string{}
		for name := range h {
			header[name] = h.Get(name)
		}
		if status, text := n.raw(
			t, "launch", http.MethodPut, writePath+"?pfn=state:x", header, strings.NewReader("12345"),
		); status != http.StatusBadRequest || text == "" {
			t.Errorf("%s: %d %s", what, status, text)
		}
	}
}

// Nobody but the launch to which it was given may use a ticket, for nothing else.
func TestOnlyWhatWasGranted(t *testing.T) {
	n := newNode(t, nil).listen(t)
	n.store(t, "mine", "mine")
	n.store(t, "other", "other")
	outside := filepath.Join(filepath.Dir(n.folder), "outside")
	if err := os.WriteFile(outside, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	e := New(dialing(t, "launch", nil), n.url, atOnce)
	read := n.key.Ticket("launch", Read, "state:mine")
	path := local(t, "x")
	other := Key{9}
	for what, one := range map[string]struct {
		pattern string
		ticket  []byte
		pfn     string
	}{
		"no ticket":                   {"state:mine", nil, "state:mine"},
		"a part of a ticket":          {"state:mine", read[:8], "state:mine"},
		"another file":                {"state:other", read, "state:other"},
		"the ticket of another file":  {"state:mine", read, "state:other"},
		"that of another launch":      {"state:mine", n.key.Ticket("launch2", Read, "state:mine"), "state:mine"},
		"that of another server":      {"state:mine", other.Ticket("launch", Read, "state:mine"), "state:mine"},
		"one for writing":             {"state:mine", n.key.Ticket("launch", Write, "state:mine"), "state:mine"},
		"a path that leads elsewhere": {"state:*", n.key.PatternTicket("launch", Read, "state:*"), "state:../outside"},
		"an absolute path":            {"state:mine", read, outside},
		"a name with a star":          {"state:*", n.key.Ticket("launch", Read, "state:*"), "state:other"},
		"a pattern, as a file":        {"state:*", n.key.PatternTicket("launch", Read, "state:*"), "folder:mine"},
	} {
		ctx := WithPatternTicket(t.Context(), one.pattern, one.ticket)
		if body, err := e.Open(ctx, one.pfn); err == nil {
			t.Errorf("%s: it was read", what)
			body.Close()
		}
		if err := e.Put(ctx, path, one.pfn); err == nil {
			t.Errorf("%s: it was written", what)
		}
	}
	pattern := "state:parts/*.v1.a7"
	ctx := WithPatternTicket(t.Context(), pattern, n.key.PatternTicket("launch", Write, pattern))
	if err := e.Put(ctx, path, "state:parts/a.v1.a7"); err != nil {
		t.Error(err)
	}
	for _, pfn := range []string{"state:parts/a.v1.a8", "state:parts/b/a.v1.a7", "state:parts/../a.v1.a7", "state:other"} {
		var refused *storage.StatusError
		if err := e.Put(ctx, path, pfn); !errors.As(err, &refused) {
			t.Errorf("%s: %v", pfn, err)
		}
	}
	n.holds(t, "other", "other")
	var refused *storage.StatusError
	if err := e.Put(WithTicket(t.Context(), "state:mine", read), path, "state:mine"); !errors.As(err, &refused) ||
		refused.Status != http.StatusForbidden || !strings.Contains(refused.Text, "launch") {
		t.Error(err)
	}
	if status, text := n.raw(
		t, "", http.MethodGet, readPath+"?pfn=state:mine", nil, nil,
	); status != http.StatusUnauthorized || strings.Contains(text, "mine") {
		t.Error("without a launch:", status, text)
	}
	links := filepath.Join(n.folder, "link")
	if err := os.Symlink(outside, links); err != nil {
		t.Fatal(err)
	}
	if got, err := get(t, n.pilot(t, "launch", nil), "state:link"); err == nil {
		t.Errorf("a link led to %q", got)
	}
}

// Two pilots, or one whose first connection hangs, may send the same file.
func TestWritersOfOneFile(t *testing.T) {
	n := newNode(t, nil).listen(t)
	contents := storagetest.Contents(1 << 20)
	path := local(t, contents)
	hangs, begun := make(chan struct{}), make(chan struct{})
	stuck := n.pilot(t, "launch", nil)
	stuck.client = &http.Client{Transport: &hanging{dialing(t, "launch", nil).Transport, begun, hangs}}
	var first, group sync.WaitGroup
	errs := make([]error, 5)
	first.Go(func() { errs[0] = stuck.Put(t.Context(), path, "state:x") })
	<-begun
	for i := 1; i < len(errs); i++ {
		e := n.pilot(t, []string{"launch", "other"}[i%2], nil)
		group.Go(func() { errs[i] = e.Put(t.Context(), path, "state:x") })
	}
	group.Wait()
	close(hangs)
	first.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
	n.holds(t, "x", contents)
}

// hanging sends half of the body of the first upload, and then nothing.
type hanging struct {
	next         http.RoundTripper
	begun, hangs chan struct{}
}

func (h *hanging) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodPut && h.begun != nil {
		begun := h.begun
		h.begun = nil
		r = r.Clone(r.Context())
		r.Header.Del("Expect")
		r.Body = &half{ReadCloser: r.Body, left: r.ContentLength / 2, begun: begun, hangs: h.hangs}
	}
	return h.next.RoundTrip(r)
}

type half struct {
	io.ReadCloser
	left         int64
	begun, hangs chan struct{}
}

func (h *half) Read(p []byte) (int, error) {
	if h.left <= 0 {
		close(h.begun)
		<-h.hangs
		return 0, io.ErrUnexpectedEOF
	}
	n, err := h.ReadCloser.Read(p[:min(int64(len(p)), h.left)])
	h.left -= int64(n)
	return n, err
}

// However large a file is, it is never in memory, at neither end.
func TestMemoryDoesNotGrowWithTheFile(t *testing.T) {
	n := newNode(t, nil).listen(t)
	const size = 64 << 20
	path := filepath.Join(t.TempDir(), "large")
	if err := errors.Join(os.WriteFile(path, nil, 0o644), os.Truncate(path, size)); err != nil {
		t.Fatal(err)
	}
	e := n.pilot(t, "launch", nil)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if err := e.Put(t.Context(), path, "state:large"); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Get(t.Context(), "state:large", path+".got"); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if taken := after.TotalAlloc - before.TotalAlloc; taken > size/2 {
		t.Errorf("%d bytes were allocated on the way of %d there and back", taken, size)
	}
}

func TestFullDisk(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("mounting a tmpfs needs root")
	}
	folder := t.TempDir()
	if err := syscall.Mount("fairway-test", folder, "tmpfs", 0, "size="+strconv.Itoa(1<<20)); err != nil {
		t.Skip("no tmpfs here:", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(folder, 0) })
	n := newNode(t, func(c *Config) {
		c.Element = storage.Local(storage.Roots{State: folder})
		c.Unfinished = folder + "/unfinished"
	}).listen(t)
	e := n.pilot(t, "launch", nil)
	if err := e.Put(t.Context(), local(t, storagetest.Contents(4<<20)), "state:x"); !errors.Is(err, storage.ErrNoSpace) {
		t.Error(err)
	}
	if err := e.Put(t.Context(), local(t, storagetest.Contents(512<<10)), "state:y"); err != nil {
		t.Error("nothing of the first should be left:", err)
	}
}

// A launch that begins files and never ends them takes a bounded number of names.
func TestUnfinishedFilesAreBounded(t *testing.T) {
	n := newNode(t, nil).plain(t)
	dead := errors.New("the pilot is gone")
	for i := range UnfinishedOfLaunch + 8 {
		e := n.pilot(t, "launch", cutOnce(false, 100_000))
		e.sleep = func(context.Context, time.Duration) error { return dead }
		if err := e.Put(t.Context(), local(t, storagetest.Contents(200_000+i)), fmt.Sprint("state:", i)); !errors.Is(err,
			dead) {
			t.Fatal(err)
		}
	}
	if left := len(n.unfinished(t)); left > UnfinishedOfLaunch || left < UnfinishedOfLaunch/2 {
		t.Error(left)
	}
}

// failing breaks off in the middle of a file, as a bad disk does.
type failing struct{ storage.Element }

func (f failing) Open(context.Context, string) (io.ReadCloser, error) {
	return io.NopCloser(io.MultiReader(strings.NewReader("beginning"), &broken{})), nil
}

type broken struct{}

func (*broken) Read([]byte) (int, error) { return 0, syscall.EIO }

// What the server cannot read is not asked for without end, and the reason is told.
func TestServerThatCannotReadSaysSo(t *testing.T) {
	n := newNode(t, func(c *Config) { c.Element = failing{c.Element} }).listen(t)
	pfn := n.store(t, "x", "beginning and end")
	if _, err := get(t, n.pilot(t, "launch", nil), pfn); err == nil ||
		!strings.Contains(err.Error(), syscall.EIO.Error()) || !storage.Temporary(err) {
		t.Error(err)
	}
}

// relayed is a server somewhere else, which does not tell sizes.
type relayed struct{ contents string }

func (r relayed) Open(context.Context, string) (io.ReadCloser, error) {
	return io.NopCloser(strings.NewReader(r.contents)), nil
}

func (relayed) Stat(context.Context, string) (storage.Info, error) {
	return storage.Info{Size: -1}, nil
}

func (relayed) Get(context.Context, string, string) (int64, error) { return 0, storage.ErrScheme }
func (relayed) Put(context.Context, string, string) error          { return storage.ErrReadOnly }
func (relayed) Remove(context.Context, string) error               { return storage.ErrReadOnly }
func (relayed) List(context.Context, string) ([]storage.Entry, error) {
	return nil, storage.ErrNoList
}

// Files of other servers are passed on, also of those that tell no size.
func TestPassesOnFilesOfOthers(t *testing.T) {
	contents := storagetest.Contents(2 << 20)
	n := newNode(t, func(c *Config) {
		c.Element = storage.Schemes{"https": relayed{contents}}
	}).listen(t)
	for _, after := range []int64{1 << 30, 1 << 20} {
		if got, err := get(t, n.pilot(t, "launch", cutOnce(true, after)), "https://other/x?sig=1"); err != nil ||
			got != contents {
			t.Error(after, len(got), err)
		}
	}
}

// Random operations of several pilots on a bad line end as on a good one.
func TestPilotsOnABadLine(t *testing.T) {
	random := seed.Source(t)
	n := newNode(t, nil).listen(t)
	var group sync.WaitGroup
	for pilot := range 4 {
		source := rand.New(rand.NewPCG(random.Uint64(), 0))
		var mu sync.Mutex
		e := n.pilot(t, fmt.Sprint("launch", pilot), func(c net.Conn) net.Conn {
			mu.Lock()
			defer mu.Unlock()
			reads, writes := new(atomic.Int64), new(atomic.Int64)
			reads.Store(source.Int64N(400_000))
			writes.Store(source.Int64N(400_000))
			return &cutting{c, reads, writes}
		})
		group.Go(func() {
			for i := range 10 {
				contents := storagetest.Contents(1 + i*50_000 + pilot)
				pfn := fmt.Sprintf("state:%d/%d", pilot, i)
				if err := e.Put(t.Context(), local(t, contents), pfn); err != nil {
					t.Error(err)
					return
				}
				if got, err := get(t, e, pfn); err != nil || got != contents {
					t.Error(pfn, len(got), err)
				}
			}
		})
	}
	group.Wait()
	if left := n.unfinished(t); len(left) > 0 {
		slices.Sort(left)
		t.Error("left behind:", left)
	}
}
