package web

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
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

// server is the URL of a plain one.
func server(address string) *url.URL { return &url.URL{Scheme: "http", Host: address} }

// A server is sent files and nothing else: each under another name first, then named. None is tried
// that could be left behind.
func TestNothingIsTried(t *testing.T) {
	proxy := storagetest.Before(t, storagetest.WebDAV(t))
	var mu sync.Mutex // guards asked
	var asked []string
	proxy.Do(-1, func(w http.ResponseWriter, r *http.Request, pass http.Handler) {
		mu.Lock()
		asked = append(asked, r.Method)
		mu.Unlock()
		pass.ServeHTTP(w, r)
	})
	e := New(Credentials{})
	t.Cleanup(e.Close)
	folder := fmt.Sprintf("dav://%s/few", proxy.Address)
	const files = 40
	for i := range files {
		asked = nil
		if err := e.Put(t.Context(), storagetest.Local(t, "contents"), fmt.Sprintf("%s/%d", folder, i)); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(asked, " "); i > 0 && got != "HEAD PUT HEAD MOVE" {
			t.Errorf("a small file took %s", got)
		}
	}
	if entries, err := e.List(t.Context(), folder); err != nil || len(entries) != files {
		t.Errorf("%d files are there, not %d: %v, error %v", len(entries), files, entries, err)
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
	if len(from) > 4 { // a server may end one with an answer that refuses
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
