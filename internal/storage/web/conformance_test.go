package web

import (
	"bytes"
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
	"path"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"fairway/internal/storage"
	"fairway/internal/storage/storagetest"
	"fairway/lib/sched"
)

var places atomic.Int64

func TestWebDAVConforms(t *testing.T) {
	address := storagetest.WebDAV(t)
	storagetest.Run(t, func(t *testing.T) storagetest.Folder {
		return storagetest.Folder{
			Element: New(Credentials{}), Replaces: true, Escaped: true, PFN: fmt.Sprintf("dav://%s/%d", address, places.Add(1)),
		}
	})
}

// What holds for a server that was not used before holds when it is known to need two
// requests for a small file.
func TestKnownWebDAVConforms(t *testing.T) {
	address := storagetest.WebDAV(t)
	storagetest.Run(t, func(t *testing.T) storagetest.Folder {
		e := New(Credentials{})
		e.see(server(address), func(h *host) { h.stored, h.neverReplaces = seenEnough+1, true })
		return storagetest.Folder{
			Element: e, Replaces: true, Escaped: true, PFN: fmt.Sprintf("dav://%s/%d", address, places.Add(1)),
		}
	})
}

// server is the URL of a plain one.
func server(address string) *url.URL { return &url.URL{Scheme: "http", Host: address} }

// others passes a file on with another body.
func others(w http.ResponseWriter, r *http.Request, pass http.Handler, body []byte) {
	put := r.Clone(r.Context())
	put.Body, put.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	pass.ServeHTTP(w, put)
}

// gathers is a proxy that passes on what it has as a whole.
func gathers(w http.ResponseWriter, r *http.Request, pass http.Handler) {
	came, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	others(w, r, pass, came)
}

// inTurns is two servers that take one file after the other, of which one shows what comes.
func inTurns(shows int64) storagetest.Fault {
	var files atomic.Int64
	return func(w http.ResponseWriter, r *http.Request, pass http.Handler) {
		if r.Method == http.MethodPut && r.ContentLength > 0 && files.Add(1)%2 == shows {
			others(httptest.NewRecorder(), r, pass, nil)
		}
		pass.ServeHTTP(w, r)
	}
}

// When some small files were stored, a further one takes two requests: it is sent, and
// named. Where that would replace a file, it takes four as before. One whose name is its own
// takes one, if the server shows no part of a file; nothing is left of what finds that out.
func TestSmallFilesTakeFewRequests(t *testing.T) {
	var one sync.Mutex
	for name, c := range map[string]struct {
		own    bool
		server storagetest.Fault // what stands in for another server
		wanted string
	}{
		"the server keeps what is there": {wanted: "PUT MOVE"},
		"the server replaces what is there": {wanted: "HEAD PUT HEAD MOVE",
			server: func(w http.ResponseWriter, r *http.Request, pass http.Handler) {
				r.Header.Del("Overwrite")
				pass.ServeHTTP(w, r)
			}},
		"the name is its own": {own: true, wanted: "PUT"},
		"the server shows what comes": {own: true, wanted: "PUT MOVE",
			server: func(w http.ResponseWriter, r *http.Request, pass http.Handler) {
				if r.Method == http.MethodPut && r.ContentLength > 0 {
					others(httptest.NewRecorder(), r, pass, nil)
				}
				pass.ServeHTTP(w, r)
			}},
		"every second server shows what comes":       {own: true, wanted: "PUT MOVE", server: inTurns(0)},
		"every other second server shows what comes": {own: true, wanted: "PUT MOVE", server: inTurns(1)},
		"a proxy gathers what comes":                 {own: true, wanted: "PUT MOVE", server: gathers},
		"a proxy says that it is one": {own: true, wanted: "PUT MOVE",
			server: func(w http.ResponseWriter, r *http.Request, pass http.Handler) {
				w.Header().Set("Via", "1.1 proxy")
				pass.ServeHTTP(w, r)
			}},
		// It takes one file after the other, so that none is there before what was cut.
		"the server keeps what was cut": {own: true, wanted: "PUT MOVE",
			server: func(w http.ResponseWriter, r *http.Request, pass http.Handler) {
				if r.Method != http.MethodPut || strings.HasSuffix(r.URL.Path, "/") {
					pass.ServeHTTP(w, r)
					return
				}
				one.Lock()
				defer one.Unlock()
				came, err := io.ReadAll(r.Body)
				if err != nil {
					w, r = httptest.NewRecorder(), r.WithContext(context.WithoutCancel(r.Context()))
				}
				others(w, r, pass, came)
			}},
	} {
		t.Run(name, func(t *testing.T) {
			proxy := storagetest.Before(t, storagetest.WebDAV(t))
			var mu sync.Mutex // guards asked
			var asked []string
			proxy.Do(-1, func(w http.ResponseWriter, r *http.Request, pass http.Handler) {
				mu.Lock()
				asked = append(asked, r.Method)
				mu.Unlock()
				if c.server != nil {
					c.server(w, r, pass)
				} else {
					pass.ServeHTTP(w, r)
				}
			})
			e := New(Credentials{})
			t.Cleanup(e.Close)
			folder := fmt.Sprintf("dav://%s/few", proxy.Address)
			put := func(ctx context.Context, i int, contents string) error {
				return e.Put(ctx, storagetest.Local(t, contents), fmt.Sprintf("%s/%d", folder, i))
			}
			ctx := t.Context()
			if c.own {
				ctx = storage.WithOwnName(ctx)
			}
			for i := range 2*seenEnough + 1 {
				mu.Lock()
				asked = nil
				mu.Unlock()
				if err := put(ctx, i, "contents"); err != nil {
					t.Fatal(err)
				}
			}
			if got := strings.Join(asked, " "); got != c.wanted {
				t.Errorf("a small file took %s, not %s", got, c.wanted)
			}
			if err := put(t.Context(), 0, "others"); !errors.Is(err, fs.ErrExist) {
				t.Errorf("a file was put onto another, error %v", err)
			}
			if err := put(ctx, 0, "contents"); err != nil {
				t.Errorf("the same file again: %v", err)
			}
			entries, err := e.List(t.Context(), folder)
			if err != nil || len(entries) != 2*seenEnough+1 {
				t.Errorf("%d files are there, not %d: %v, error %v", len(entries), 2*seenEnough+1, entries, err)
			}
		})
	}
}

// A file that was sent under its own name, and may still be on its way when that has failed, is
// sent again under another name; so are all files of that host from then on.
func TestAFailedFileTakesAnotherName(t *testing.T) {
	for name, fault := range map[string]storagetest.Fault{
		"no answer in time": storagetest.Answer(http.StatusGatewayTimeout),
		"no server":         storagetest.Answer(http.StatusBadGateway),
		"overload":          storagetest.Answer(http.StatusServiceUnavailable),
		"a broken answer": func(_ http.ResponseWriter, r *http.Request, pass http.Handler) {
			pass.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler)
		},
		"a broken file": storagetest.CutBody(3),
	} {
		t.Run(name, func(t *testing.T) {
			proxy := storagetest.Before(t, storagetest.WebDAV(t))
			web := New(Credentials{})
			t.Cleanup(web.Close)
			web.see(server(proxy.Address), func(h *host) { h.stored, h.neverReplaces, h.hides = 2*seenEnough+1, true, "/" })
			var mu sync.Mutex // guards asked
			var asked []string
			proxy.Do(-1, func(w http.ResponseWriter, r *http.Request, pass http.Handler) {
				mu.Lock()
				if r.Method == http.MethodPut {
					asked = append(asked, strings.TrimRight(path.Base(r.URL.Path), "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"))
				}
				first := len(asked) == 1
				mu.Unlock()
				if first {
					fault(w, r, pass)
				} else {
					pass.ServeHTTP(w, r)
				}
			})
			e := storage.Retry(web, storage.DefaultTries, storage.DefaultBackoff, atOnce)
			for _, name := range []string{"first", "second"} {
				if err := e.Put(
					storage.WithOwnName(t.Context()), storagetest.Local(t, "contents"), "dav://"+proxy.Address+"/"+name,
				); err != nil {
					t.Fatal(err)
				}
			}
			if got := strings.Join(asked, " "); got != "first .unfinished- .unfinished-" {
				t.Errorf("the names of files were %s", got)
			}
			if hides := web.host(server(proxy.Address)).hides; hides != "" {
				t.Errorf("files are sent under their names below %q", hides)
			}
		})
	}
}

// A server that tells a checksum while it is looked for what was cut is asked for that of each file.
func TestChecksumsCountMoreThanOneRequest(t *testing.T) {
	proxy := storagetest.Before(t, storagetest.WebDAV(t))
	e := New(Credentials{})
	t.Cleanup(e.Close)
	proxy.Do(-1, func(w http.ResponseWriter, r *http.Request, pass http.Handler) {
		if e.host(server(proxy.Address)).stored == 2*seenEnough { // the MKCOL of the first that was cut
			e.see(server(proxy.Address), func(h *host) { h.sums, h.neverReplaces, h.hides = true, false, "" })
		}
		pass.ServeHTTP(w, r)
	})
	for i := range 2*seenEnough + 1 {
		if err := e.Put(storage.WithOwnName(t.Context()), storagetest.Local(t, "contents"),
			fmt.Sprintf("dav://%s/sums/%d", proxy.Address, i)); err != nil {
			t.Fatal(err)
		}
	}
	if seen := e.host(server(proxy.Address)); seen.hides != "" || !seen.sums {
		t.Errorf("files are sent under their names below %q, checksums: %v", seen.hides, seen.sums)
	}
}

// What is known of a server holds for one store of it: behind a host may be several servers.
func TestStoreOf(t *testing.T) {
	store := "/data/" + storage.StorePrefix + "abcdefghijklmnop/"
	for name, wanted := range map[string]string{
		store + "a/b.v1.a7": store,
		store + "b.v1.a7":   store,
		"/data/b":           "/data/",
		"/b":                "/",
	} {
		if got := storeOf(name); got != wanted {
			t.Errorf("%s is in %s, not %s", name, got, wanted)
		}
	}
}

// Servers that show a part of a file are seen to, and get files under other names first.
func TestServersThatShowPartsAreKnown(t *testing.T) {
	if os.Getenv(storagetest.Required) == "" {
		t.Skip("other servers than nginx: make test-storage runs them")
	}
	_, xrootd, _ := storagetest.XRootD(t)
	for _, folder := range []string{storagetest.Rclone(t) + "/parts", xrootd + "/store/parts"} {
		e := New(Credentials{})
		t.Cleanup(e.Close)
		r, err := newRequest(http.MethodPut, "dav://"+folder+"/x", nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := e.Put(t.Context(), storagetest.Local(t, "contents"), r.pfn); err != nil {
			t.Fatal(err)
		}
		u := &upload{e: e, r: r}
		if !u.hides(t.Context(), r.url.Path+"-missing") {
			t.Errorf("%s is thought to show what is not there", folder)
		}
		if u.cut(t.Context()) != "" {
			t.Errorf("%s is thought to show no part of a file", folder)
		}
	}
}

func TestRcloneConforms(t *testing.T) {
	if os.Getenv(storagetest.Required) == "" {
		t.Skip("another server with WebDAV: make test-storage runs it")
	}
	address := storagetest.Rclone(t)
	storagetest.Run(t, func(t *testing.T) storagetest.Folder {
		// It answers 423 to who moves a file while others do.
		e := storage.Retry(New(Credentials{}), storage.DefaultTries, storage.DefaultBackoff, sched.Default().Sleep)
		return storagetest.Folder{
			Element: e, Replaces: true, Escaped: true, PFN: fmt.Sprintf("dav://%s/%d", address, places.Add(1)),
		}
	})
}

func TestRcloneUnderFaults(t *testing.T) {
	if os.Getenv(storagetest.Required) == "" {
		t.Skip("another server with WebDAV: make test-storage runs it")
	}
	address := storagetest.Rclone(t)
	storagetest.RunFaults(t, storagetest.Large, faulty(address, "", false), address)
}

// Files come and go on the connections of those before them: one for requests that are
// answered soon, and one for those that the server may think about. A connection for each
// request costs more than a small file.
func TestConnectionsAreKept(t *testing.T) {
	proxy := storagetest.Before(t, storagetest.WebDAV(t))
	var mu sync.Mutex
	from := map[string]bool{}
	proxy.Do(-1, func(w http.ResponseWriter, r *http.Request, pass http.Handler) {
		mu.Lock()
		from[r.RemoteAddr] = true
		mu.Unlock()
		pass.ServeHTTP(w, r)
	})
	e := New(Credentials{})
	t.Cleanup(e.Close)
	for i := range 60 {
		pfn := fmt.Sprintf("dav://%s/kept/%d", proxy.Address, i)
		if err := e.Put(t.Context(), storagetest.Local(t, storagetest.Contents(1000)), pfn); err != nil {
			t.Fatal(err)
		}
		if _, err := e.Get(t.Context(), pfn, filepath.Join(t.TempDir(), "got")); err != nil {
			t.Fatal(err)
		}
	}
	if len(from) > 4+2*probes { // a server may end one with an answer that refuses
		t.Errorf("60 files came and went on %d connections", len(from))
	}
}

func TestXRootDOverHTTPConforms(t *testing.T) {
	if os.Getenv(storagetest.Required) == "" {
		t.Skip("the server of Debian 12 may end under it: make test-storage runs it")
	}
	storagetest.Run(t, func(t *testing.T) storagetest.Folder {
		_, address, _ := storagetest.XRootD(t) // one that ended takes no other test along
		return storagetest.Folder{Element: New(Credentials{}), NoTimes: true, Replaces: true, Escaped: true,
			PFN: fmt.Sprintf("http://%s/store/%d", address, places.Add(1))}
	})
}

// atOnce tries again without a pause.
func atOnce(context.Context, time.Duration) error { return nil }

func faulty(address, root string, checked bool) func(*testing.T, *storagetest.Proxy) storagetest.Faulty {
	return func(t *testing.T, proxy *storagetest.Proxy) storagetest.Faulty {
		web := New(Credentials{})
		t.Cleanup(web.Close)
		folder := fmt.Sprintf("%s/%d", root, places.Add(1))
		e := storage.Retry(web, storage.DefaultTries, storage.DefaultBackoff, atOnce)
		direct := storagetest.Folder{Element: e, PFN: "dav://" + address + folder}
		through := storagetest.Folder{Element: e, PFN: "dav://" + proxy.Address + folder}
		return storagetest.Faulty{Folder: through, Direct: direct, Checked: checked, GoesOn: !checked}
	}
}

func TestWebDAVUnderFaults(t *testing.T) {
	address := storagetest.WebDAV(t)
	storagetest.RunFaults(t, storagetest.Large, faulty(address, "", false), address)
}

// named is an element whose files have names of their own.
type named struct{ storage.Element }

func (n named) Put(ctx context.Context, path, pfn string) error {
	return n.Element.Put(storage.WithOwnName(ctx), path, pfn)
}

// A small file that is sent under its final name is there complete or not at all.
func TestKnownWebDAVUnderFaults(t *testing.T) {
	address := storagetest.WebDAV(t)
	storagetest.RunFaults(t, storagetest.Small, func(t *testing.T, proxy *storagetest.Proxy) storagetest.Faulty {
		f := faulty(address, "", false)(t, proxy)
		e := New(Credentials{})
		t.Cleanup(e.Close)
		e.see(server(proxy.Address), func(h *host) { h.stored, h.neverReplaces, h.hides = 2*seenEnough+1, true, "/" })
		f.Element = named{storage.Retry(e, storage.DefaultTries, storage.DefaultBackoff, atOnce)}
		return f
	}, address)
}

func TestXRootDOverHTTPUnderFaults(t *testing.T) {
	if os.Getenv(storagetest.Required) == "" {
		t.Skip("the server of Debian 12 may end under it: make test-storage runs it")
	}
	_, address, _ := storagetest.XRootD(t)
	storagetest.RunFaults(t, storagetest.Large, faulty(address, "/store", true), address)
}

func TestFullWebDAV(t *testing.T) {
	storagetest.Full(t, storagetest.Folder{Element: New(Credentials{}), PFN: "dav://" + storagetest.FullWebDAV(t) + "/x"})
}

// A server may close a connection that was kept alive just when the next request comes. What changes
// nothing when it is repeated is sent again on another connection.
func TestRequestsOnClosedConnectionsAreRepeated(t *testing.T) {
	for name, ask := range map[string]func(*Element, string) error{
		"remove": func(e *Element, pfn string) error { return e.Remove(t.Context(), pfn) },
		"list": func(e *Element, pfn string) error {
			_, err := e.List(t.Context(), pfn)
			return err
		},
		"stat": func(e *Element, pfn string) error {
			_, err := e.Stat(t.Context(), pfn)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			var asked atomic.Int32
			address := storagetest.WebDAV(t)
			proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if asked.Add(1) == 2 {
					panic(http.ErrAbortHandler)
				}
				httputil.NewSingleHostReverseProxy(server(address)).ServeHTTP(w, r)
			}))
			defer proxy.Close()
			e, pfn := New(Credentials{}), fmt.Sprintf("dav://%s/%d", proxy.Listener.Addr(), places.Add(1))
			if err := e.Remove(t.Context(), pfn); err != nil {
				t.Fatal(err)
			}
			if err := ask(e, pfn); err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%v, after %d requests", err, asked.Load())
			}
			if asked.Load() < 3 {
				t.Errorf("only %d requests", asked.Load())
			}
		})
	}
}
