package elements

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"fairway/internal/storage"
	"fairway/internal/storage/storagetest"
	"fairway/lib/sched"
)

// fetchAll gets one file of a server many times at once, and returns how often that failed.
func fetchAll(t *testing.T, e storage.Element, pfn string, times int) int64 {
	t.Helper()
	folder := t.TempDir()
	var fetching sync.WaitGroup
	var failed atomic.Int64
	for i := range times {
		fetching.Go(func() {
			if _, err := e.Get(t.Context(), pfn, filepath.Join(folder, fmt.Sprint(i))); err != nil {
				failed.Add(1)
			}
		})
	}
	fetching.Wait()
	return failed.Load()
}

func served(t *testing.T, sleep storage.Sleep) (e storage.Element, proxy *storagetest.Proxy, pfn string) {
	t.Helper()
	server := storagetest.WebDAV(t)
	proxy = storagetest.Before(t, server)
	e = New(storage.Roots{}, sleep)
	if err := e.Put(t.Context(), storagetest.Local(t, "text"), "dav://"+server+"/file"); err != nil {
		t.Fatal(err)
	}
	return e, proxy, "dav://" + proxy.Address + "/file"
}

// countTransfers counts those that are under way at a proxy at once. The first ones stay until
// there are as many as there may be.
func countTransfers(proxy *storagetest.Proxy) (most func() int) {
	var mu sync.Mutex
	under, highest := 0, 0
	full := make(chan struct{})
	fill := sync.OnceFunc(func() { close(full) })
	proxy.Do(-1, func(w http.ResponseWriter, r *http.Request, pass http.Handler) {
		mu.Lock()
		under++
		if highest = max(highest, under); highest == storage.DefaultTransfers {
			fill()
		}
		mu.Unlock()
		<-full
		pass.ServeHTTP(w, r)
		mu.Lock()
		under--
		mu.Unlock()
	})
	return func() int {
		mu.Lock()
		defer mu.Unlock()
		return highest
	}
}

// Of many transfers with one server, a process makes so many at once and no more.
func TestTransfersAtOnceAreLimited(t *testing.T) {
	e, proxy, pfn := served(t, sched.Default().Sleep)
	most := countTransfers(proxy)
	if failed := fetchAll(t, e, pfn, 4*storage.DefaultTransfers); failed > 0 {
		t.Errorf("%d transfers failed", failed)
	}
	if most() != storage.DefaultTransfers {
		t.Errorf("up to %d transfers were under way at once, and not %d", most(), storage.DefaultTransfers)
	}
}

// fetchVariable has a process of this test fetch a file of a server many times at once.
const fetchVariable = "FAIRWAY_TEST_FETCH"

// waits is what it says when it waits for the first time.
const waits = "waits"

// TestFetch is what such a process does.
func TestFetch(t *testing.T) {
	pfn := os.Getenv(fetchVariable)
	if pfn == "" {
		t.Skip("it is for processes that other tests start")
	}
	says := sync.OnceFunc(func() { fmt.Println(waits) })
	sleep := func(ctx context.Context, pause time.Duration) error {
		says()
		return sched.Default().Sleep(ctx, pause)
	}
	if failed := fetchAll(t, New(storage.Roots{}, sleep), pfn, 4*storage.DefaultTransfers); failed > 0 {
		t.Errorf("%d transfers failed", failed)
	}
}

func startFetch(t *testing.T, pfn string, output ...io.Writer) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestFetch$")
	cmd.Env = append(os.Environ(), fetchVariable+"="+pfn)
	cmd.Stdout = io.MultiWriter(output...)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return cmd
}

// All processes of a machine make so many transfers with a server together as one may alone.
func TestProcessesShareTheLimitOfTransfers(t *testing.T) {
	_, proxy, pfn := served(t, sched.Default().Sleep)
	most := countTransfers(proxy)
	var processes []*exec.Cmd
	for range 3 {
		processes = append(processes, startFetch(t, pfn))
	}
	for _, p := range processes {
		if err := p.Wait(); err != nil {
			t.Error(err)
		}
	}
	if most() != storage.DefaultTransfers {
		t.Errorf("up to %d transfers were under way at once, and not %d", most(), storage.DefaultTransfers)
	}
}

// Of two processes with many transfers, one that waits makes the next, though the other has all
// that may be made and would go on.
func TestAProcessThatWaitsMakesTheNextTransfer(t *testing.T) {
	e, proxy, pfn := served(t, sched.Default().Sleep)
	other := pfn + "2"
	if err := e.Put(t.Context(), storagetest.Local(t, "text"), other); err != nil {
		t.Fatal(err)
	}
	came, goOn := make(chan string), make(chan struct{})
	proxy.Do(-1, func(w http.ResponseWriter, r *http.Request, pass http.Handler) {
		select {
		case came <- r.URL.Path:
		case <-t.Context().Done():
		}
		select {
		case <-goOn:
		case <-t.Context().Done():
		}
		pass.ServeHTTP(w, r)
	})
	first := startFetch(t, pfn)
	for range storage.DefaultTransfers {
		<-came
	}
	from, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	second := startFetch(t, other, to)
	if said, err := bufio.NewReader(from).ReadString('\n'); err != nil || said != waits+"\n" {
		t.Fatalf("it said %q: %v", said, err)
	}
	goOn <- struct{}{}
	if path := <-came; path != "/file2" {
		t.Errorf("the next transfer is that of %s", path)
	}
	for _, p := range []*exec.Cmd{first, second} {
		_ = p.Process.Kill()
		_ = p.Wait()
	}
}

// A process that is killed while it makes as many transfers as may be leaves them to others,
// and so does one that is stopped.
func TestTransfersOfProcessesThatAreGone(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGSTOP} {
		e, proxy, pfn := served(t, sched.Default().Sleep)
		came := make(chan struct{}, storage.DefaultTransfers)
		proxy.Do(storage.DefaultTransfers, func(_ http.ResponseWriter, r *http.Request, _ http.Handler) {
			came <- struct{}{}
			<-r.Context().Done()
		})
		p := startFetch(t, pfn)
		for range storage.DefaultTransfers {
			<-came
		}
		if err := p.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		if failed := fetchAll(t, e, pfn, 1); failed > 0 {
			t.Errorf("after %v of another process the transfer failed", signal)
		}
		_ = p.Process.Kill()
		_ = p.Wait()
	}
}

// A server that is overloaded is left alone for a while by each of its clients, and they do
// not come back together.
func TestAnOverloadedServerIsAskedAgainAtOtherTimes(t *testing.T) {
	const files = 3 * storage.DefaultTransfers
	var mu sync.Mutex
	pauses := map[time.Duration]bool{}
	e, proxy, pfn := served(t, func(_ context.Context, pause time.Duration) error {
		mu.Lock()
		defer mu.Unlock()
		pauses[pause] = true
		return nil
	})
	proxy.Do(files, storagetest.Answer(http.StatusServiceUnavailable)) // fewer than let one fail four times
	failed := fetchAll(t, e, pfn, files)
	if longest := storage.DefaultBackoff << (storage.DefaultTries - 2); len(pauses) < files/2 {
		t.Errorf("%d answers of 503 led to %d different pauses", files, len(pauses))
	} else {
		for pause := range pauses {
			if pause < storage.DefaultBackoff/2 || pause > longest {
				t.Errorf("a pause of %v", pause)
			}
		}
	}
	if most := int64(files / storage.DefaultTries); failed > most {
		t.Errorf("%d of %d transfers failed, and the answers were enough for %d", failed, files, most)
	}
}

// Whoever is asked for a scheme of a network knows it: the element, what changes names there,
// and what makes URLs for programs.
func TestAllSchemesAreKnownEverywhere(t *testing.T) {
	all := New(storage.Roots{}, nil)
	for _, protocol := range []storage.Protocol{storage.HTTP, storage.S3, storage.XRootD} {
		schemes := storage.SchemesOf(protocol)
		if len(schemes) == 0 {
			t.Errorf("protocol %d has no scheme", protocol)
		}
		for _, scheme := range schemes {
			pfn := scheme + "://h/b/f"
			if all[scheme] == nil || storage.ProtocolOf(strings.ToUpper(scheme)+"://h") != protocol {
				t.Errorf("no element knows %s", scheme)
			}
			if _, err := Publishing(pfn); err != nil {
				t.Error(err)
			}
			if _, err := NewURLs().Of(t.Context(), pfn, time.Minute); errors.Is(err, storage.ErrScheme) {
				t.Error(err)
			}
		}
	}
}
