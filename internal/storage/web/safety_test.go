package web

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"fairway/internal/storage"
	"fairway/internal/storage/storagetest"
)

const secret = "tok3n-that-nobody-may-see"

func served(t *testing.T, handler http.HandlerFunc) string {
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

// A redirection to file:, to this machine from elsewhere, or to plain HTTP from an
// encrypted server leads nowhere.
func TestRedirectionsThatLeadAstray(t *testing.T) {
	for to, from := range map[string]string{
		"file:///etc/passwd":        "http://example.org/x",
		"http://127.0.0.1/x":        "http://example.org/x",
		"http://localhost/x":        "https://example.org/x",
		"http://other.example.org/": "https://example.org/x",
	} {
		via, _ := http.NewRequest(http.MethodGet, from, nil)
		next, _ := http.NewRequest(http.MethodGet, to, nil)
		if err := checkRedirect(next, []*http.Request{via}); !errors.Is(err, storage.ErrRedirect) {
			t.Errorf("%s to %s: %v", from, to, err)
		}
	}
	for _, address := range []string{"127.0.0.1:80", "[::1]:80", "169.254.169.254:80", "0.0.0.0:80"} {
		if err := storage.RefuseNear("tcp", address, nil); !errors.Is(err, storage.ErrRedirect) {
			t.Errorf("%s: %v", address, err)
		}
	}
	astray := served(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "file:///etc/passwd", http.StatusFound)
	})
	e := New(Credentials{})
	defer e.Close()
	if _, err := e.Get(t.Context(), astray, t.TempDir()+"/x"); !errors.Is(err, storage.ErrRedirect) {
		t.Error(err)
	}
}

// A token goes to who refuses access without, not to others, and stands in no
// error.
func TestTokenGoesWhereItIsAskedFor(t *testing.T) {
	t.Setenv("BEARER_TOKEN", "")
	file := t.TempDir() + "/token"
	if err := os.WriteFile(file, []byte(secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("BEARER_TOKEN_FILE", file)
	var leaked atomic.Bool
	public := served(t, func(_ http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			leaked.Store(true)
		}
	})
	good := "Bearer " + secret
	private := served(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != good {
			w.WriteHeader(http.StatusUnauthorized)
		}
	})
	e := New(CredentialsOfUser())
	defer e.Close()
	for _, pfn := range []string{public, private, private, public} {
		if _, err := e.Stat(t.Context(), pfn); err != nil {
			t.Error(err)
		}
	}
	if leaked.Load() {
		t.Error("the token went to a server that did not ask for it")
	}
	if e.mayHaveToken(must(t, "http://example.org/x")) {
		t.Error("the token would go without encryption")
	}
	expired := served(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) })
	_, err := e.Stat(t.Context(), expired+"/x?authz="+secret)
	if !errors.Is(err, storage.ErrPermission) || strings.Contains(err.Error(), secret) || storage.Temporary(err) {
		t.Error(err)
	}
}

// A token goes to the origin that has refused, and along no redirection: neither from a server
// that has not refused to one that does, nor to another port of a server that has.
func TestTokenFollowsNoRedirection(t *testing.T) {
	t.Setenv("BEARER_TOKEN", secret)
	var leaked sync.Map
	refusing := func(name string) string {
		return served(t, func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "" {
				leaked.Store(name, true)
			}
			w.WriteHeader(http.StatusUnauthorized)
		})
	}
	target := refusing("the target of a redirection")
	open := served(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			leaked.Store("a server that has not refused", true)
		}
		http.Redirect(w, r, target, http.StatusFound)
	})
	other := refusing("another port of the same host")
	private := served(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header.Get("Authorization") != "Bearer "+secret:
			w.WriteHeader(http.StatusUnauthorized)
		case r.URL.Path == "/moved":
			http.Redirect(w, r, "/here", http.StatusFound)
		case r.URL.Path == "/away":
			http.Redirect(w, r, other, http.StatusTemporaryRedirect)
		}
	})
	e := New(CredentialsOfUser())
	defer e.Close()
	for range 2 { // the second time it is known who refuses
		for pfn, good := range map[string]bool{open + "/x": false, private + "/away": false, private + "/moved": true} {
			_, err := e.Stat(t.Context(), pfn)
			if good != (err == nil) || !good && (!errors.Is(err, storage.ErrPermission) ||
				!strings.Contains(err.Error(), "gets no token")) {
				t.Errorf("%s: %v", pfn, err)
			}
		}
	}
	leaked.Range(func(name, _ any) bool {
		t.Error("the token went to", name)
		return true
	})
}

func must(t *testing.T, pfn string) *url.URL {
	u, err := storage.ParseURL(pfn)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// What a URL hides is in no error, whether the server fails or cannot be reached.
func TestErrorsShowNoSecrets(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := "http://" + l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	e := New(Credentials{})
	defer e.Close()
	gone := served(t, http.NotFound)
	for _, pfn := range []string{
		nobody + "/x?sig=" + secret, gone + "/x?sig=" + secret, strings.Replace(gone, "//", "//user:"+secret+"@", 1),
		"http://" + secret + "@:x/",
	} {
		for _, err := range []error{
			second(e.Stat(t.Context(), pfn)), second(e.Get(t.Context(), pfn, t.TempDir()+"/x")),
			second(e.List(t.Context(), pfn)), e.Remove(t.Context(), pfn),
		} {
			if err != nil && strings.Contains(err.Error(), secret) {
				t.Error(err)
			}
		}
	}
}

// An error says what a person can do, or at least how far a transfer came.
func TestErrorsSayWhatHelps(t *testing.T) {
	encrypted := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(encrypted.Close)
	for want, pfn := range map[string]string{
		"without an answer": served(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }),
		"broke off after 4 bytes": served(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "9")
			_, _ = w.Write([]byte("four"))
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}),
		"a user and a password": served(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
			w.WriteHeader(http.StatusUnauthorized)
		}),
		"X509_CERT_DIR": encrypted.URL,
	} {
		e := New(Credentials{})
		if _, err := e.Get(t.Context(), pfn, t.TempDir()+"/x"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %q", err, want)
		}
		e.Close()
	}
}

func second[T any](_ T, err error) error { return err }

// Bytes that do not have the checksum that the server tells are not kept.
func TestWrongBytesAreNotKept(t *testing.T) {
	for name, header := range map[string][2]string{
		"adler32": {"Digest", "adler32=00000001"},
		"md5":     {"Content-MD5", "AAAAAAAAAAAAAAAAAAAAAA=="},
		"length":  {"Content-Length", "100"},
	} {
		url := served(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set(header[0], header[1])
			_, _ = w.Write([]byte("only this"))
		})
		e, path := New(Credentials{}), t.TempDir()+"/x"
		_, err := e.Get(t.Context(), url, path)
		if _, left := os.Lstat(path); err == nil || !storage.Temporary(err) || !errors.Is(left, fs.ErrNotExist) {
			t.Errorf("%s: %v, %v", name, err, left)
		}
		e.Close()
	}
}

// A server that is busy is asked again after pauses that grow, one that refuses is
// not.
func TestTriesAgain(t *testing.T) {
	for status, tries := range map[int]int{429: 4, 500: 4, 503: 4, 403: 1, 404: 1} {
		var asked atomic.Int32
		url := served(t, func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodHead { // where that is refused, the file is asked for in its place
				asked.Add(1)
			}
			w.WriteHeader(status)
		})
		var pauses []time.Duration
		web := New(Credentials{})
		e := storage.Retry(web, 4, time.Second, func(_ context.Context, d time.Duration) error {
			pauses = append(pauses, d)
			return nil
		})
		if _, err := e.Stat(t.Context(), url); err == nil || int(asked.Load()) != tries || len(pauses) != tries-1 {
			t.Errorf("%d: %v, asked %d times", status, err, asked.Load())
		}
		for i, pause := range pauses {
			if most := time.Second << i; pause < most/2 || pause > most {
				t.Errorf("pause %d is %v", i, pause)
			}
		}
		web.Close()
	}
}

// A server that says when it wants to be asked again is left alone until then, but
// holds nobody for ever.
func TestServersSayWhenToComeBack(t *testing.T) {
	for said, least := range map[string]time.Duration{
		"7":     7 * time.Second,
		"60000": storage.MaxRetryAfter,
		"soon":  500 * time.Millisecond,
		"-1":    500 * time.Millisecond,
	} {
		url := served(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", said)
			w.WriteHeader(http.StatusServiceUnavailable)
		})
		web := New(Credentials{})
		e := storage.Retry(web, 2, time.Second, func(_ context.Context, d time.Duration) error {
			if d < least || d > least+time.Second {
				t.Errorf("%s: a pause of %v", said, d)
			}
			return nil
		})
		if _, err := e.Stat(t.Context(), url); err == nil {
			t.Error("it went well")
		}
		web.Close()
	}
}

// A large file goes once over the network, also into a folder that is not there yet.
func TestLargeFilesAreSentOnce(t *testing.T) {
	server := storagetest.WebDAV(t)
	proxy := storagetest.Before(t, server)
	var sent atomic.Int64
	proxy.Do(-1, func(w http.ResponseWriter, r *http.Request, pass http.Handler) {
		if r.Method == http.MethodPut {
			sent.Add(r.ContentLength)
		}
		pass.ServeHTTP(w, r)
	})
	e := New(Credentials{})
	defer e.Close()
	contents := storagetest.Contents(2 << 20)
	if err := e.Put(t.Context(), storagetest.Local(t, contents), "dav://"+proxy.Address+"/new/folder/x"); err != nil {
		t.Fatal(err)
	}
	if got := sent.Load(); got != int64(len(contents)) {
		t.Errorf("%d bytes were sent for %d", got, len(contents))
	}
}
