package web

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"fairway/internal/storage"
)

// inMemory is an HTTP element whose only server writes an answer by itself.
func inMemory(t *testing.T, serve func(net.Conn)) *Element {
	h := New(Credentials{})
	var serving sync.WaitGroup
	t.Cleanup(serving.Wait)
	dial := func(context.Context, string, string) (net.Conn, error) {
		here, there := net.Pipe()
		serving.Go(func() {
			defer there.Close()
			request := make([]byte, 4096)
			if _, err := there.Read(request); err == nil {
				serve(there)
			}
		})
		return here, nil
	}
	for _, named := range h.client.Transport.(*transports).named {
		named.DialContext = dial
	}
	t.Cleanup(h.client.CloseIdleConnections)
	return h
}

// A server that stalls in the middle of a file does not hold anybody for ever,
// whether it sends nothing or hardly anything.
func TestStalledTransferEnds(t *testing.T) {
	for name, pause := range map[string]time.Duration{"nothing comes": 0, "a byte now and then": 10 * time.Second} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := inMemory(t, func(c net.Conn) {
					fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n%s", strings.Repeat("x", 5000))
					for pause > 0 {
						<-time.After(pause)
						if _, err := c.Write([]byte("x")); err != nil {
							return
						}
					}
					_, _ = c.Read(make([]byte, 1)) // until the other end gives up
				})
				began := time.Now()
				var stall *storage.StallError
				if _, err := h.Get(t.Context(), "http://server/file", t.TempDir()+"/file"); !errors.As(err, &stall) ||
					!storage.Temporary(err) {
					t.Error(err)
				}
				if spent := time.Since(began); spent > 2*storage.StallTime {
					t.Error("it took", spent)
				}
			})
		})
	}
}

// A file without an announced length that is longer than it is known to be ends there.
func TestEndlessFileEndsAtItsSize(t *testing.T) {
	at := served(t, func(w http.ResponseWriter, _ *http.Request) { endless(w, "more ", 1<<30) })
	h := New(Credentials{})
	defer h.Close()
	path := t.TempDir() + "/file"
	var more *storage.MoreError
	if _, err := h.Get(storage.WithMost(t.Context(), 1000), at, path); !errors.As(err, &more) || storage.Temporary(err) {
		t.Error(err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("a part of it is there")
	}
}

// A slow reader is no stalled server.
func TestSlowReaderDoesNotStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := inMemory(t, func(c net.Conn) {
			fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc")
		})
		body, err := h.Open(t.Context(), "http://server/file")
		if err != nil {
			t.Fatal(err)
		}
		defer body.Close()
		<-time.After(10 * storage.StallTime)
		if text, err := io.ReadAll(body); string(text) != "abc" || err != nil {
			t.Errorf("%q, %v", text, err)
		}
	})
}

func TestTransferEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := inMemory(t, func(c net.Conn) {
			fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\nx")
			_, _ = c.Read(make([]byte, 1))
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		if _, err := h.Get(ctx, "http://server/file", t.TempDir()+"/file"); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if spent := time.Since(began); spent != time.Second {
			t.Error("it took", spent)
		}
	})
}
