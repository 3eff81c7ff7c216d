package access

import (
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// behindGate is a server with a gate that lets few strangers in.
func behindGate(t *testing.T, most int) *testServer {
	t.Helper()
	s := &testServer{authority: authority(t), tokens: NewTokens()}
	settings, err := s.authority.ServerTLS("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	plain, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := newGate(plain)
	g.most, g.time = most, 0
	s.addresses = []string{plain.Addr().String()}
	s.http = NewServer(Handler(s.tokens, map[string]http.Handler{
		"/": http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}),
	}), slog.New(slog.DiscardHandler))
	go s.http.Serve(newSecured(tls.NewListener(g, settings)))
	t.Cleanup(func() { s.http.Close() })
	return s
}

// Connections that say nothing do not keep pilots out, and end none of theirs.
func TestStrangersKeepNobodyOut(t *testing.T) {
	s := behindGate(t, 4)
	known := NewLine(s.launch("known")).Client(1)
	defer known.CloseIdleConnections()
	get := func(client *http.Client, reused bool) {
		t.Helper()
		trace := &httptrace.ClientTrace{GotConn: func(c httptrace.GotConnInfo) {
			if c.Reused != reused {
				t.Errorf("reused: %v", c.Reused)
			}
		}}
		r, err := http.NewRequestWithContext(httptrace.WithClientTrace(t.Context(), trace), http.MethodGet, BaseURL+"/", nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
	}
	get(known, false)
	var silent []net.Conn
	for range 20 {
		c, err := net.Dial("tcp", s.addresses[0])
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		silent = append(silent, c)
	}
	for _, c := range silent[:16] { // the oldest had to go
		if _, err := c.Read(make([]byte, 1)); err == nil || errors.Is(err, net.ErrClosed) {
			t.Error("a stranger is still there:", err)
		}
	}
	get(known, true)
	late := NewLine(s.launch("late")).Client(1)
	defer late.CloseIdleConnections()
	get(late, false)
	get(late, true)
}

// A launch does not take the connections that others need.
func TestALaunchHasFewConnections(t *testing.T) {
	s := behindGate(t, 1000)
	l := NewLine(s.launch("greedy"))
	status := func() int {
		t.Helper()
		client := l.Client(1)
		t.Cleanup(client.CloseIdleConnections)
		answer, err := client.Get(BaseURL + "/")
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(answer.Body)
		answer.Body.Close()
		if answer.StatusCode != http.StatusOK && !strings.Contains(string(text), "a pilot needs few") {
			t.Errorf("%s", text)
		}
		return answer.StatusCode
	}
	for range MaxLaunchConnections {
		if got := status(); got != http.StatusOK {
			t.Fatal(got)
		}
	}
	if got := status(); got != http.StatusServiceUnavailable {
		t.Error(got)
	}
	other := NewLine(s.launch("other")).Client(1)
	defer other.CloseIdleConnections()
	if answer, err := other.Get(BaseURL + "/"); err != nil || answer.StatusCode != http.StatusOK {
		t.Error(answer, err)
	}
}

// pipes is a listener within a bubble of virtual time.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	c, ok := <-p
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}
func (p pipes) Close() error   { return nil }
func (p pipes) Addr() net.Addr { return &net.UnixAddr{} }

// Who says nothing, or one letter from time to time, is cut off.
func TestSlowCallersAreCutOff(t *testing.T) {
	for name, say := range map[string]func(c net.Conn){
		"nothing": func(net.Conn) {},
		"a header, letter by letter": func(c net.Conn) {
			for range strings.Repeat("x", 1000) {
				if _, err := c.Write([]byte("G")); err != nil {
					return
				}
				<-time.After(time.Second)
			}
		},
		"no token, and a body letter by letter": func(c net.Conn) {
			_, _ = io.WriteString(c, "POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n")
			for range 1000 {
				if _, err := c.Write([]byte("x")); err != nil {
					return
				}
				<-time.After(time.Second)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				incoming := make(pipes)
				server := NewServer(Handler(NewTokens(), nil), slog.New(slog.DiscardHandler))
				go server.Serve(incoming)
				near, far := net.Pipe()
				incoming <- far
				begun := time.Now()
				var saying sync.WaitGroup
				saying.Go(func() { say(near) })
				_, err := io.Copy(io.Discard, near)
				if took := time.Since(begun); took > 2*HeaderTime {
					t.Errorf("it took %v until it was cut off: %v", took, err)
				}
				near.Close()
				saying.Wait() // time stands still when this function returns
				close(incoming)
				server.Close()
			})
		})
	}
}

// What a server is given to serve has had its handshake already: the stack that this takes would stay with each
// connection that waits. One that says nothing keeps nobody waiting.
func TestConnectionsAreAcceptedAfterTheirHandshake(t *testing.T) {
	a := authority(t)
	listener, addresses, err := Listen("127.0.0.1:0", 0, a)
	if err != nil {
		t.Fatal(err)
	}
	silent, err := net.Dial("tcp", addresses[0])
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	dialled := make(chan error, 1)
	go func() {
		c, err := (&tls.Dialer{Config: ClientTLS(a.Pin())}).Dial("tcp", addresses[0])
		if err == nil {
			_ = c.Close()
		}
		dialled <- err
	}()
	c, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if !c.(*tls.Conn).ConnectionState().HandshakeComplete {
		t.Error("a connection was given before its handshake was over")
	}
	if err := <-dialled; err != nil {
		t.Error(err)
	}
	if err := listener.Close(); err != nil {
		t.Error(err)
	}
	if _, err := listener.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("after its end: %v", err)
	}
}
