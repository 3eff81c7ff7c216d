package crash

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"fairway/internal/storage/storagetest"
	"fairway/test/files"
)

// gated is a WebDAV server that holds some of the files that it is to keep, by their
// number. Its channels tell that one comes, and let it go on.
type gated struct {
	*httptest.Server
	mu       sync.Mutex // guards names
	names    map[string]bool
	come, on chan struct{}
}

func newGated(t *testing.T, file *regexp.Regexp, held ...int) *gated {
	t.Helper()
	behind, err := url.Parse("http://" + storagetest.WebDAV(t))
	if err != nil {
		t.Fatal(err)
	}
	g := &gated{names: map[string]bool{}, come: make(chan struct{}), on: make(chan struct{})}
	proxy := httputil.NewSingleHostReverseProxy(behind)
	proxy.ErrorHandler = func(http.ResponseWriter, *http.Request, error) {} // a pilot that was ended
	g.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if name := file.FindString(r.URL.Path + r.Header.Get("Destination")); r.Method == http.MethodPut ||
			r.Method == "MOVE" {
			if n := g.note(name); slices.Contains(held, n) {
				body, _ := io.ReadAll(r.Body) // only then does the server notice that the caller has gone
				r.Body = io.NopCloser(bytes.NewReader(body))
				g.come <- struct{}{}
				select {
				case <-g.on:
				case <-r.Context().Done():
				}
			}
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(g.Close)
	return g
}

// note returns the number of a file that is seen first, and else 0.
func (g *gated) note(name string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	if name == "" || g.names[name] {
		return 0
	}
	g.names[name] = true
	return len(g.names)
}

// A signal during the stage-out of many outputs is heeded. The first lets the job store all
// it wrote, and the run says so and how far that is; the second ends it between two files.
func TestSignalsWhileManyOutputsAreStored(t *testing.T) {
	const outputs, first, second = 300, 50, 100
	g := newGated(t, regexp.MustCompile(`part-\d+`), first, second)
	folder := t.TempDir()
	files.Write(t, filepath.Join(folder, "workflow.yaml"), `
workflow: many
steps:
  make: {writes: "part-{n}", command: 'for i in $(seq 300); do echo $i > part-$i; done'}
`)
	run := exec.Command(fairway, "run", "--storage", "dav"+strings.TrimPrefix(g.URL, "http")+"/store",
		filepath.Join(folder, "workflow.yaml"))
	var summary strings.Builder
	run.Stdout = &summary
	said, err := run.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	hung := time.AfterFunc(patience, func() { _ = run.Process.Kill() })
	defer hung.Stop()
	lines := make(chan string, 1000)
	go func() {
		defer close(lines)
		for s := bufio.NewScanner(said); s.Scan(); {
			lines <- s.Text()
		}
	}()
	// until reads what the run says until a file that is held comes, or it says some text.
	until := func(text string) {
		t.Helper()
		for {
			select {
			case <-g.come:
				if text == "" {
					return
				}
				t.Fatalf("a file came before the run said %q", text)
			case line, more := <-lines:
				t.Log(line)
				if !more {
					_ = run.Wait()
					t.Fatalf("the run ended before %q:\n%s", text, summary.String())
				}
				if text != "" && strings.Contains(line, text) {
					return
				}
			}
		}
	}

	until("")
	if err := run.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	until("ending when the running attempts have ended and stored their outputs")
	until("49 of 300 outputs stored")
	g.on <- struct{}{}
	until("") // it goes on
	if err := run.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	until("ending now")
	for line := range lines {
		t.Log(line)
	}
	_ = run.Wait()
	if code := run.ProcessState.ExitCode(); code != 143 {
		t.Errorf("exit code %d", code)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if n := len(g.names); n != second {
		t.Errorf("%d of %d files were stored or begun, though the second signal came at number %d", n, outputs, second)
	}
	if left := results(t, folder); len(left) > 0 {
		t.Errorf("%d results of a job that is not done", len(left))
	}
}
