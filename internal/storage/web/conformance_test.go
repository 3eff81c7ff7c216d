package web

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"fairway/internal/storage"
	"fairway/internal/storage/storagetest"
)

var places atomic.Int64

func TestWebDAVConforms(t *testing.T) {
	address := storagetest.WebDAV(t)
	storagetest.Run(t, func(t *testing.T) storagetest.Place {
		return storagetest.Place{Element: New(Credentials{}), Replaces: true, Escaped: true, PFN: fmt.Sprintf("dav://%s/%d", address, places.Add(1))}
	})
}

// What holds for a server that was not used before holds when it is known to need two
// requests for a small file.
func TestKnownWebDAVConforms(t *testing.T) {
	address := storagetest.WebDAV(t)
	storagetest.Run(t, func(t *testing.T) storagetest.Place {
		e := New(Credentials{})
		e.see(address, func(h *host) { h.stored, h.keeps = seenEnough+1, true })
		return storagetest.Place{Element: e, Replaces: true, Escaped: true, PFN: fmt.Sprintf("dav://%s/%d", address, places.Add(1))}
	})
}

// When some small files were stored, a further one takes two requests: it is sent, and
// named. Where that would replace a file, it takes four as before.
func TestSmallFilesTakeFewRequests(t *testing.T) {
	for name, c := range map[string]struct {
		without string // header that does not reach the server
		wanted  string
	}{
		"the server keeps what is there":    {"", "PUT MOVE"},
		"the server replaces what is there": {"Overwrite", "HEAD PUT HEAD MOVE"},
	} {
		t.Run(name, func(t *testing.T) {
			proxy := storagetest.Before(t, storagetest.WebDAV(t))
			var asked []string
			proxy.Do(-1, func(w http.ResponseWriter, r *http.Request, pass http.Handler) {
				r.Header.Del(c.without)
				asked = append(asked, r.Method)
				pass.ServeHTTP(w, r)
			})
			e := New(Credentials{})
			t.Cleanup(e.Close)
			put := func(i int, contents string) error {
				return e.Put(t.Context(), storagetest.Local(t, contents), fmt.Sprintf("dav://%s/few/%d", proxy.Address, i))
			}
			for i := range seenEnough + 1 {
				asked = nil
				if err := put(i, "contents"); err != nil {
					t.Fatal(err)
				}
			}
			if got := strings.Join(asked, " "); got != c.wanted {
				t.Errorf("a small file took %s, not %s", got, c.wanted)
			}
			if err := put(0, "others"); !errors.Is(err, fs.ErrExist) {
				t.Errorf("a file was put onto another, error %v", err)
			}
			if err := put(0, "contents"); err != nil {
				t.Errorf("the same file again: %v", err)
			}
			entries, err := e.List(t.Context(), fmt.Sprintf("dav://%s/few", proxy.Address))
			if err != nil || len(entries) != seenEnough+1 {
				t.Errorf("%d files are there, not %d: %v, error %v", len(entries), seenEnough+1, entries, err)
			}
		})
	}
}

func TestRcloneConforms(t *testing.T) {
	if os.Getenv(storagetest.Required) == "" {
		t.Skip("another server with WebDAV: make test-storage runs it")
	}
	address := storagetest.Rclone(t)
	storagetest.Run(t, func(t *testing.T) storagetest.Place {
		return storagetest.Place{Element: New(Credentials{}), Replaces: true, Escaped: true, PFN: fmt.Sprintf("dav://%s/%d", address, places.Add(1))}
	})
}

func TestRcloneUnderFaults(t *testing.T) {
	if os.Getenv(storagetest.Required) == "" {
		t.Skip("another server with WebDAV: make test-storage runs it")
	}
	address := storagetest.Rclone(t)
	storagetest.RunFaults(t, faulty(address, "", false), address)
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
	for i := range 20 {
		pfn := fmt.Sprintf("dav://%s/kept/%d", proxy.Address, i)
		if err := e.Put(t.Context(), storagetest.Local(t, storagetest.Contents(1000)), pfn); err != nil {
			t.Fatal(err)
		}
		if _, err := e.Get(t.Context(), pfn, filepath.Join(t.TempDir(), "got")); err != nil {
			t.Fatal(err)
		}
	}
	if len(from) > 4 { // a server may end one with an answer that refuses
		t.Errorf("20 files came and went on %d connections", len(from))
	}
}

func TestXRootDOverHTTPConforms(t *testing.T) {
	if os.Getenv(storagetest.Required) == "" {
		t.Skip("the server of Debian 12 may end under it: make test-storage runs it")
	}
	storagetest.Run(t, func(t *testing.T) storagetest.Place {
		_, address, _ := storagetest.XRootD(t) // one that ended takes no other test along
		return storagetest.Place{Element: New(Credentials{}), NoTimes: true, Replaces: true, Escaped: true, PFN: fmt.Sprintf("http://%s/store/%d", address, places.Add(1))}
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
		direct := storagetest.Place{Element: e, PFN: "dav://" + address + folder}
		through := storagetest.Place{Element: e, PFN: "dav://" + proxy.Address + folder}
		return storagetest.Faulty{Place: through, Direct: direct, Checked: checked, GoesOn: !checked}
	}
}

func TestWebDAVUnderFaults(t *testing.T) {
	address := storagetest.WebDAV(t)
	storagetest.RunFaults(t, faulty(address, "", false), address)
}

func TestXRootDOverHTTPUnderFaults(t *testing.T) {
	if os.Getenv(storagetest.Required) == "" {
		t.Skip("the server of Debian 12 may end under it: make test-storage runs it")
	}
	_, address, _ := storagetest.XRootD(t)
	storagetest.RunFaults(t, faulty(address, "/store", true), address)
}

func TestFullWebDAV(t *testing.T) {
	storagetest.Full(t, storagetest.Place{Element: New(Credentials{}), PFN: "dav://" + storagetest.FullWebDAV(t) + "/x"})
}
