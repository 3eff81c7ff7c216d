package served

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"fairway/internal/storage"
	"fairway/internal/storage/storagetest"
)

// pipes is a server and a client that are connected in memory, so that their time
// may be virtual.
type pipes struct {
	accepted chan net.Conn
	closed   chan struct{}
	once     sync.Once
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.accepted:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { p.once.Do(func() { close(p.closed) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "memory"} }

func (p *pipes) dial(context.Context, string, string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case p.accepted <- there:
		return here, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// inMemory serves the files of a node, and returns how to reach it.
func inMemory(t *testing.T, n *node) *pipes {
	p := &pipes{accepted: make(chan net.Conn), closed: make(chan struct{})}
	server := &http.Server{Handler: n}
	var group sync.WaitGroup
	group.Go(func() { _ = server.Serve(p) })
	t.Cleanup(func() { _ = server.Close(); group.Wait() })
	return p
}

// A pilot that stops in the middle, or sends and takes hardly anything, does not
// hold a stream of the server.
func TestServerGivesUpStalledPilots(t *testing.T) {
	for name, method := range map[string]string{"one that sends": http.MethodPut, "one that takes": http.MethodGet} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNode(t, nil)
				contents := storagetest.Contents(1 << 20)
				pfn := n.store(t, "in", contents)
				p := inMemory(t, n)
				c, err := p.dial(t.Context(), "", "")
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				began := time.Now()
				if method == http.MethodGet {
					ask(t, n, c, http.MethodGet, readPath, pfn, nil)
					if _, err := io.ReadFull(c, make([]byte, 10_000)); err != nil {
						t.Fatal(err)
					}
				} else {
					sums, _ := sumsOf(strings.NewReader(contents))
					ask(t, n, c, http.MethodPut, writePath, "state:out", &file{size: 1 << 20, mode: 0o644, sums: sums})
					for ended := false; !ended; { // a byte now and then
						_, err := c.Write([]byte("x"))
						<-time.After(10 * time.Second)
						ended = err != nil
					}
				}
				h := n.handler.Load()
				for h.streams.busy() {
					<-time.After(time.Second)
				}
				if spent := time.Since(began); spent > 2*storage.StallTime {
					t.Error("it took", spent)
				}
			})
		})
	}
}

func (s *streams) busy() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.own) > 0
}

// ask writes the head of a request.
func ask(t *testing.T, n *node, c net.Conn, method, path, pfn string, f *file) {
	t.Helper()
	right := Read
	if method == http.MethodPut {
		right = Write
	}
	r, err := http.NewRequest(method, "http://server"+path+"?pfn="+pfn, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set(launchHeader, "launch")
	e := &Element{client: writing{c}}
	if f != nil {
		writeFile(r.Header, *f)
		r.ContentLength, r.Body = f.size, http.NoBody
	}
	_, _ = e.ask(WithTicket(t.Context(), pfn, n.key.Ticket("launch", right, pfn)), r, pfn)
}

// writing is a client that writes the head of a request and does no more.
type writing struct{ net.Conn }

func (w writing) Do(r *http.Request) (*http.Response, error) {
	var head strings.Builder
	head.WriteString(r.Method + " " + r.URL.RequestURI() + " HTTP/1.1\r\nHost: server\r\n")
	if r.ContentLength > 0 {
		head.WriteString("Content-Length: 1048576\r\n")
	}
	_ = r.Header.Write(&head)
	_, err := w.Write([]byte(head.String() + "\r\n"))
	return nil, errors.Join(err, io.EOF)
}

// A server that stops in the middle is asked again.
func TestPilotGivesUpAStalledAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t, nil)
		contents := storagetest.Contents(1 << 20)
		pfn := n.store(t, "in", contents)
		p := inMemory(t, n)
		stopped := false
		transport := &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			c, err := p.dial(ctx, network, address)
			if !stopped {
				stopped = true
				c = &stopping{c, 300_000, 300_000, make(chan struct{}), sync.Once{}}
			}
			return c, err
		}}
		defer transport.CloseIdleConnections()
		e := all{New(&http.Client{Transport: &as{"launch", transport}}, "http://server", waiting), "launch", &n.key}
		began := time.Now()
		if got, err := get(t, e, pfn); err != nil || got != contents {
			t.Error(len(got), err)
		}
		stopped = false
		transport.CloseIdleConnections()
		if err := e.Put(t.Context(), local(t, contents), "state:out"); err != nil {
			t.Error(err)
		}
		n.holds(t, "out", contents)
		if spent := time.Since(began); spent < 2*storage.StallTime || spent > 3*storage.StallTime {
			t.Error("it took", spent)
		}
	})
}

func waiting(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// stopping is a connection on which nothing moves after so many bytes, until it is
// closed.
type stopping struct {
	net.Conn
	reads, writes int
	closed        chan struct{}
	once          sync.Once
}

func (s *stopping) Read(p []byte) (int, error) {
	if s.reads <= 0 {
		<-s.closed
		return 0, net.ErrClosed
	}
	n, err := s.Conn.Read(p)
	s.reads -= n
	return n, err
}

func (s *stopping) Write(p []byte) (int, error) {
	if s.writes <= 0 {
		<-s.closed
		return 0, net.ErrClosed
	}
	n, err := s.Conn.Write(p)
	s.writes -= n
	return n, err
}

func (s *stopping) Close() error {
	s.once.Do(func() { close(s.closed) })
	return s.Conn.Close()
}

// While the server cannot be reached, a transfer waits, and ends with its context.
func TestWaitsForTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nobody := &http.Client{Transport: &http.Transport{DialContext: func(context.Context, string,
			string) (net.Conn, error) {
			return nil, errors.New("connection refused")
		}}}
		e := New(nobody, "http://server", waiting)
		path := local(t, "x")
		for _, operation := range []func(context.Context) error{
			func(ctx context.Context) error { _, err := e.Get(ctx, "state:x", path+".got"); return err },
			func(ctx context.Context) error { _, err := e.Stat(ctx, "state:x"); return err },
			func(ctx context.Context) error { return e.Put(ctx, path, "state:x") },
		} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			began := time.Now()
			err := operation(ctx)
			if spent := time.Since(began); spent != time.Hour || !errors.Is(err, context.DeadlineExceeded) ||
				!strings.Contains(err.Error(), "connection refused") {
				t.Error(spent, err)
			}
			cancel()
		}
	})
}

// A pilot whose turn does not come is told to come back, and comes.
func TestWaitsForItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		open := &slowly{began: make(chan struct{}, 100), goes: make(chan struct{})}
		n := newNode(t, func(c *Config) {
			open.Element = c.Element
			c.Element, c.Streams = open, 1
		})
		pfn := n.store(t, "x", "contents")
		p := inMemory(t, n)
		transport := &http.Transport{DialContext: p.dial}
		defer transport.CloseIdleConnections()
		pilot := func(launch string) all {
			return all{New(&http.Client{Transport: &as{launch, transport}}, "http://server", waiting), launch, &n.key}
		}
		var group sync.WaitGroup
		for _, launch := range []string{"first", "second"} {
			group.Go(func() {
				if got, err := get(t, pilot(launch), pfn); err != nil || got != "contents" {
					t.Error(got, err)
				}
			})
		}
		<-time.After(10 * QueueTime)
		close(open.goes)
		group.Wait()
	})
}
