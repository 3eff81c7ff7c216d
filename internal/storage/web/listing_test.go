package web

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"fairway/internal/storage"
)

// endless writes a piece again and again, until the other end gives up or most bytes were sent.
func endless(w io.Writer, piece string, most int64) (sent int64) {
	piece = strings.Repeat(piece, 1+(32<<10)/len(piece))
	for sent < most {
		n, err := io.WriteString(w, piece)
		if sent += int64(n); err != nil {
			break
		}
	}
	return sent
}

// A server that lists without an end, or more than one may hold, is left, with an error that
// names it and the limit. What has come is not kept meanwhile.
func TestListingsHaveAnEnd(t *testing.T) {
	const begin = `<D:multistatus xmlns:D="DAV:">`
	for name, c := range map[string]struct {
		first, piece string
		limit        string
	}{
		"nested elements":    {begin, "<D:response>", "MaxDepth"},
		"an endless name":    {begin + "<D:response><D:href>/d/", "a", "MaxText"},
		"a name in parts":    {begin + "<D:response><D:href>/d/", "a<!-- -->", "MaxText"},
		"an endless tag":     {begin, "a", "MaxText"},
		"an endless comment": {begin + "<!--", "a", "MaxText"},
		"endless attributes": {begin + "<D:response", " a='b'", "MaxText"},
		"endless space":      {begin, " ", "MaxText"},
	} {
		t.Run(name, func(t *testing.T) {
			var sent atomic.Int64
			at := served(t, func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(http.StatusMultiStatus)
				_, _ = io.WriteString(w, c.first)
				sent.Store(endless(w, c.piece, storage.MaxListing))
			})
			e := New(Credentials{})
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := e.List(t.Context(), at+"/d")
			runtime.ReadMemStats(&after)
			e.Close()
			var listing *storage.ListingError
			if !errors.As(err, &listing) || !strings.Contains(err.Error(), c.limit) || !strings.Contains(err.Error(), at) ||
				storage.Temporary(err) {
				t.Errorf("%.200v", err)
			}
			if sent.Load() > 8<<20 {
				t.Error("bytes sent:", sent.Load())
			}
			if after.HeapSys > before.HeapSys+64<<20 {
				t.Error("the heap grew by", (after.HeapSys-before.HeapSys)>>20, "MiB")
			}
		})
	}
}

// Names and bytes are bounded in all.
func TestListingsAreBoundedInAll(t *testing.T) {
	const begin, one, end = `<multistatus xmlns="DAV:">`, `<response><href>/d/x</href></response>`, `</multistatus>`
	for times, want := range map[int]string{10: "", 11: "more than 10 names", 100: "more than 1000 bytes"} {
		most := 10
		if times == 100 {
			most = 1000
		}
		entries, err := readListing(strings.NewReader(begin+strings.Repeat(one, times)+end), "/d", most, 1000)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) ||
			err == nil && len(entries) != times {
			t.Errorf("%d: %d names, %v", times, len(entries), err)
		}
	}
}

// A header that does not come to its end within HeaderTime ends the request, whether the server
// drips it or sends answers of status 103 before it; also where the server may read a whole file
// before it answers.
func TestHeadersHaveALimit(t *testing.T) {
	for name, drip := range map[string]string{
		"bytes of a header": "a",
		"early hints":       "HTTP/1.1 103 Early Hints\r\n\r\n",
	} {
		for _, patient := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " patient ", patient), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					serve := func(c net.Conn) {
						first := "HTTP/1.1 200 OK\r\nX-"
						if drip != "a" {
							first = drip
						}
						_, err := io.WriteString(c, first)
						for err == nil {
							<-time.After(time.Second)
							_, err = io.WriteString(c, drip)
						}
					}
					web := inMemory(t, serve)
					retried := storage.Retry(web, storage.DefaultTries, storage.DefaultBackoff, pause)
					e := storage.TellSlow(retried, func(host string, _ error) {
						if host != "http://server" {
							t.Error("slow is", host)
						}
					})
					began := time.Now()
					var err error
					if patient {
						_, err = web.Mark(t.Context(), "http://server/file")
					} else {
						_, err = e.Stat(t.Context(), "http://server/file")
					}
					if spent := time.Since(began); err == nil || !storage.Temporary(err) || spent > storage.AwayTime+10*time.Second ||
						!strings.Contains(err.Error(), "http://server") {
						t.Error(err, spent)
					}
				})
			})
		}
	}
}

// A server that takes a request and never says anything is named, in words for a person.
func TestAServerThatNeverAnswersIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := inMemory(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })
		_, err := web.Stat(t.Context(), "http://server/file")
		if !storage.IsAway(err) || !strings.Contains(err.Error(), "http://server:80 did not answer within 30s") ||
			strings.Contains(err.Error(), "net/http") {
			t.Error(err)
		}
	})
}

func pause(_ context.Context, d time.Duration) error {
	<-time.After(d)
	return nil
}
