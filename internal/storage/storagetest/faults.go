package storagetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// Fault is what happens to a request on its way: it answers by itself, or has pass
// answer. ErrAbortHandler as a panic breaks the connection.
type Fault func(w http.ResponseWriter, r *http.Request, pass http.Handler)

// Proxy stands in front of a server with HTTP, and does to requests what it is told.
type Proxy struct {
	Address string // host and port

	mu    sync.Mutex // guards the rest
	fault Fault
	left  int // requests that it happens to; negative: all
}

// Before starts a proxy in front of a server. It passes all on until Do is called.
func Before(t *testing.T, server string) *Proxy {
	t.Helper()
	p := new(Proxy)
	pass := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(&url.URL{Scheme: "http", Host: server})
			r.Out.Host = r.In.Host                        // it is signed
			r.Out.Close = r.In.Header.Get("Expect") != "" // else it wants a file that was refused
			r.Out.URL.RawPath, r.Out.URL.RawQuery = r.In.URL.RawPath, r.In.URL.RawQuery
		},
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if fault := p.next(); fault != nil {
			fault(w, r, pass)
			return
		}
		pass.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	p.Address = s.Listener.Addr().String()
	return p
}

func (p *Proxy) next() Fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fault == nil || p.left == 0 {
		return nil
	}
	p.left--
	return p.fault
}

// Do has a fault happen to the next requests; to all where times is negative.
func (p *Proxy) Do(times int, fault Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault, p.left = fault, times
}

// Answer answers with a status and headers in the place of the server.
func Answer(status int, headers ...string) Fault {
	return func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
		_, _ = io.Copy(io.Discard, r.Body)
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
	}
}

// CutAnswer breaks the connection when so many bytes of an answer have passed.
func CutAnswer(after int) Fault {
	return func(w http.ResponseWriter, r *http.Request, pass http.Handler) {
		left := after
		pass.ServeHTTP(&changing{ResponseWriter: w, write: func(p []byte) (int, error) {
			if left -= len(p); left >= 0 {
				return w.Write(p)
			}
			_, _ = w.Write(p[:len(p)+left])
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}}, r)
	}
}

// CutBody breaks the connection when so many bytes of what is sent have passed. The
// server sees less than was announced.
func CutBody(after int64) Fault {
	return func(w http.ResponseWriter, r *http.Request, pass http.Handler) {
		r.Body = io.NopCloser(io.MultiReader(io.LimitReader(r.Body, after), broken{}))
		pass.ServeHTTP(w, r)
		panic(http.ErrAbortHandler)
	}
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errors.New("the connection broke") }

// FlipAnswer changes the first byte of a large answer, and FlipBody that of what is
// sent.
func FlipAnswer(w http.ResponseWriter, r *http.Request, pass http.Handler) {
	flipped := r.Method != http.MethodGet
	pass.ServeHTTP(&changing{ResponseWriter: w, write: func(p []byte) (int, error) {
		if !flipped {
			p, flipped = append([]byte{p[0] ^ 1}, p[1:]...), true
		}
		return w.Write(p)
	}}, r)
}

// FlipBody is described at FlipAnswer.
func FlipBody(w http.ResponseWriter, r *http.Request, pass http.Handler) {
	if r.Method == http.MethodPut && r.ContentLength > 1000 {
		body, skip, flipped := r.Body, 200, false // signed pieces begin with a line
		r.Body = reading(func(p []byte) (int, error) {
			n, err := body.Read(p)
			if !flipped && n > skip {
				p[skip] ^= 1
				flipped = true
			}
			return n, err
		})
	}
	pass.ServeHTTP(w, r)
}

type reading func([]byte) (int, error)

func (r reading) Read(p []byte) (int, error) { return r(p) }
func (r reading) Close() error               { return nil }

// Trickle passes an answer on in small pieces.
func Trickle(w http.ResponseWriter, r *http.Request, pass http.Handler) {
	flush := http.NewResponseController(w)
	pass.ServeHTTP(&changing{ResponseWriter: w, write: func(p []byte) (done int, err error) {
		for len(p) > 0 && err == nil {
			n := min(len(p), 4096)
			_, err = w.Write(p[:n])
			_ = flush.Flush()
			p, done = p[n:], done+n
		}
		return done, err
	}}, r)
}

type changing struct {
	http.ResponseWriter
	write func([]byte) (int, error)
}

func (c *changing) Write(p []byte) (int, error) { return c.write(p) }

// Faulty is a place that is reached through something that makes it fail.
type Faulty struct {
	Folder        // through the proxy
	Direct Folder // past it
	// Checked says that the server tells or compares checksums, so that a byte that
	// is changed on the way is noticed.
	Checked bool
	// GoesOn says that a read which was cut goes on: the server gives a part of a file,
	// and tells whether the file is the same.
	GoesOn bool
}

// Large is a size of files for RunFaults: of several pieces wherever there are any. Small is
// that of files that no element takes for large.
const (
	Large = 3 << 20
	Small = 600 << 10
)

// RunFaults checks that whatever goes wrong between an element and its server, a
// transfer is tried again or refused, and never leaves a wrong or half file under a
// final name. The element of open must try again (storage.Retry).
func RunFaults(t *testing.T, size int, open func(t *testing.T, proxy *Proxy) Faulty, server string) {
	proxy := Before(t, server)
	redirect := func(to string) Fault {
		return Answer(http.StatusTemporaryRedirect, "Location", to)
	}
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("not this"))
	}))
	t.Cleanup(other.Close)
	for name, one := range map[string]struct {
		fault   Fault
		times   int
		refused bool // also at the last try
		checked bool // only where there are checksums
		goesOn  bool // a read does where it was cut, and so has to come to its end
	}{
		"cut at once":           {fault: CutAnswer(0), times: 2},
		"an answer cut":         {fault: CutAnswer(size / 2), times: 3},
		"a body cut":            {fault: CutBody(int64(size / 2)), times: 1},
		"always cut":            {fault: CutAnswer(size / 4), times: -1, goesOn: true},
		"bodies always cut":     {fault: CutBody(int64(size / 2)), times: -1},
		"slow":                  {fault: Trickle, times: -1},
		"500 for a while":       {fault: Answer(500), times: 2},
		"503 with Retry-After":  {fault: Answer(503, "Retry-After", "1"), times: 2},
		"423 while others move": {fault: Answer(423), times: 2},
		"429":                   {fault: Answer(429), times: 2},
		"500 for ever":          {fault: Answer(500), times: -1, refused: true},
		"507":                   {fault: Answer(507), times: -1, refused: true},
		"a token that expired":  {fault: Answer(401, "WWW-Authenticate", "Bearer"), times: -1, refused: true},
		"refused":               {fault: Answer(403), times: -1, refused: true},
		"redirected to a file":  {fault: redirect("file:///etc/passwd"), times: -1, refused: true},
		"redirected to no end":  {fault: redirect("/again"), times: -1, refused: true},
		"an answer changed":     {fault: FlipAnswer, times: 1, checked: true},
		"always changed":        {fault: FlipAnswer, times: -1, checked: true},
		"a body changed":        {fault: FlipBody, times: 1, checked: true},
		"bodies always changed": {fault: FlipBody, times: -1, checked: true},
	} {
		t.Run(name, func(t *testing.T) {
			p := open(t, proxy)
			if one.checked && !p.Checked {
				t.Skip("the server tells no checksum")
			}
			right := Contents(size)
			proxy.Do(0, nil)
			put(t, p.Direct, "there", right)
			proxy.Do(one.times, one.fault)
			local := filepath.Join(t.TempDir(), "got")
			_, err := p.Element.Get(t.Context(), p.file("there"), local)
			whole(t, "what was got", func() (string, error) { got, err := os.ReadFile(local); return string(got), err }, right,
				err)
			if (err == nil) && one.refused {
				t.Error("it was got all the same")
			}
			if err != nil && !one.refused && (one.times >= 0 || one.goesOn && p.GoesOn) {
				t.Errorf("it was not got in the end: %v", err)
			}
			proxy.Do(one.times, one.fault)
			if read, err := readAll(t.Context(), p.Folder, "there"); err == nil && read != right {
				t.Errorf("%d bytes were read of %d, the beginning is right: %v", len(read), len(right),
					strings.HasPrefix(right, read))
			}
			proxy.Do(one.times, one.fault)
			err = p.Element.Put(t.Context(), Local(t, right), p.file("new"))
			if err == nil && one.refused {
				t.Error("it was put all the same")
			}
			if err != nil && !one.refused && one.times >= 0 {
				t.Errorf("it was not put in the end: %v", err)
			}
			proxy.Do(one.times, one.fault)
			again := p.Element.Put(t.Context(), Local(t, right), p.file("there"))
			if (again == nil) && one.refused || again != nil && !one.refused && one.times >= 0 || errors.Is(again, fs.ErrExist) {
				t.Errorf("it was put again, with the same contents: %v", again)
			}
			proxy.Do(0, nil)
			whole(t, "what was put", func() (string, error) { return readAll(t.Context(), p.Direct, "new") }, right, err)
		})
	}
}

func readAll(ctx context.Context, p Folder, name string) (string, error) {
	body, err := p.Element.Open(ctx, p.file(name))
	if err != nil {
		return "", err
	}
	defer body.Close()
	got, err := io.ReadAll(body)
	return string(got), err
}

// whole checks that something is there as it should be, or not at all, and that an
// operation has told the truth about it.
func whole(t *testing.T, what string, read func() (string, error), right string, told error) {
	t.Helper()
	switch got, err := read(); {
	case errors.Is(err, fs.ErrNotExist) && told == nil:
		t.Errorf("%s is not there, and was said to be", what)
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		t.Error(err)
	case got != right:
		t.Errorf("%s has %d bytes of %d under its final name, the beginning is right: %v; %v", what, len(got), len(right),
			strings.HasPrefix(right, got), told)
	}
}

// Full checks on a place of 2 MiB that a file with no room is refused, is not there,
// and does not hold up a smaller one.
func Full(t *testing.T, p Folder) {
	err := p.Element.Put(t.Context(), Local(t, Contents(8<<20)), p.file("large"))
	if err == nil {
		t.Error("8 MiB went into 2")
	}
	if info, err := p.Element.Stat(t.Context(), p.file("large")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%+v, %v", info, err)
	}
	for i := range 3 { // unfinished files would fill it
		put(t, p, fmt.Sprint("small", i), Contents(400<<10))
		check(t, p, fmt.Sprint("small", i), Contents(400<<10))
	}
}
