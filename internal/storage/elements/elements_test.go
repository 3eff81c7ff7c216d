package elements

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"fairway/internal/storage"
	"fairway/internal/storage/storagetest"
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
	e = New(storage.Places{}, sleep)
	if err := e.Put(t.Context(), storagetest.Local(t, "text"), "dav://"+server+"/file"); err != nil {
		t.Fatal(err)
	}
	return e, proxy, "dav://" + proxy.Address + "/file"
}

// Of many transfers with one server, a process makes so many at once and no more.
func TestTransfersAtOnceAreLimited(t *testing.T) {
	e, proxy, pfn := served(t, nil)
	var mu sync.Mutex
	under, most := 0, 0
	full := make(chan struct{})
	proxy.Do(-1, func(w http.ResponseWriter, r *http.Request, pass http.Handler) {
		mu.Lock()
		under++
		most = max(most, under)
		if under == storage.DefaultTransfers && most == under {
			select {
			case <-full:
			default:
				close(full)
			}
		}
		mu.Unlock()
		<-full // the first ones stay until there are as many as there may be
		pass.ServeHTTP(w, r)
		mu.Lock()
		under--
		mu.Unlock()
	})
	if failed := fetchAll(t, e, pfn, 4*storage.DefaultTransfers); failed > 0 {
		t.Errorf("%d transfers failed", failed)
	}
	if most != storage.DefaultTransfers {
		t.Errorf("up to %d transfers were under way at once, and not %d", most, storage.DefaultTransfers)
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
