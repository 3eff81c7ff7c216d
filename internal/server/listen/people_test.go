package listen

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/connect"

	"fairway/internal/access"
	"fairway/internal/wire"
)

// service answers ListJobs with a large answer, ShowJob never, and streams logs without end.
type service struct {
	wire.UnimplementedWorkflowHandler
	pause time.Duration // between two pieces of logs
	most  int           // pieces, after which nothing comes; 0: no limit
}

func (s *service) ListJobs(context.Context, *wire.ListJobsRequest) (*wire.ListJobsResponse, error) {
	return &wire.ListJobsResponse{Jobs: []*wire.JobSummary{{Name: strings.Repeat("x", 1<<20)}}}, nil
}

func (s *service) ShowJob(ctx context.Context, _ *wire.ShowJobRequest) (*wire.JobDetail, error) {
	<-ctx.Done()
	return nil, connect.NewError(connect.CodeDeadlineExceeded, ctx.Err())
}

func (s *service) Logs(ctx context.Context, _ *wire.LogsRequest, stream *connect.ServerStream[wire.LogChunk]) error {
	for n := 0; ; n++ {
		if s.most > 0 && n == s.most {
			<-ctx.Done()
			return ctx.Err()
		}
		if err := stream.Send(&wire.LogChunk{Data: make([]byte, 64<<10)}); err != nil {
			return err
		}
		pass(s.pause)
	}
}

// counted is a listener that knows how many of its connections are open.
type counted struct {
	*Pipes
	open atomic.Int32
}

type countedConn struct {
	net.Conn
	of   *counted
	over atomic.Bool
}

func (c *counted) Accept() (net.Conn, error) {
	conn, err := c.Pipes.Accept()
	if err != nil {
		return nil, err
	}
	c.open.Add(1)
	return &countedConn{Conn: conn, of: c}, nil
}

func (c *countedConn) Close() error {
	if !c.over.Swap(true) {
		c.of.open.Add(-1)
	}
	return c.Conn.Close()
}

// serving runs a test in virtual time with the service at a listener.
func serving(t *testing.T, s *service, test func(t *testing.T, l *counted)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		l := &counted{Pipes: NewPipes()}
		mux := http.NewServeMux()
		mux.Handle(People(s))
		e := NewEndpoint(l, AsOwner(mux), slog.New(slog.DiscardHandler))
		go e.Serve()
		synctest.Wait()
		test(t, l)
		e.Close(0)
		pass(2 * time.Second) // what is still there then stays
	})
}

// pass lets virtual time pass.
func pass(d time.Duration) { <-time.NewTimer(d).C }

// request is the beginning of a call.
func request(procedure, kind string, size int) string {
	return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: fairway\r\nContent-Type: application/%s\r\nContent-Length: %d\r\n\r\n",
		procedure, kind, size)
}

// Whoever stalls, the server lets its connection, goroutines and memory go in time.
func TestPeersThatStallAreLetGo(t *testing.T) {
	emptyMessage := string(binary.BigEndian.AppendUint32([]byte{0}, 0))
	slowly := func(text string) func(net.Conn) {
		return func(c net.Conn) {
			for i := range len(text) {
				if _, err := io.WriteString(c, text[i:i+1]); err != nil {
					return
				}
				pass(time.Second)
			}
		}
	}
	once := func(text string) func(net.Conn) {
		return func(c net.Conn) { _, _ = io.WriteString(c, text) }
	}
	header := request(wire.WorkflowListJobsProcedure, "proto", 100_000)
	for name, c := range map[string]struct {
		do    func(net.Conn)
		reads bool // the answer
		limit time.Duration
	}{
		"says nothing":                    {func(net.Conn) {}, false, access.HeaderTime},
		"says a byte a second":            {slowly(header), true, access.HeaderTime},
		"sends a byte a second":           {func(c net.Conn) { once(header)(c); slowly(strings.Repeat("\n", 100_000))(c) }, true, access.BodyTime},
		"reads no answer":                 {once(request(wire.WorkflowListJobsProcedure, "proto", 0)), false, access.BodyTime},
		"reads no stream":                 {once(request(wire.WorkflowLogsProcedure, "connect+proto", 5) + emptyMessage), false, access.ReaderTime},
		"keeps back what nobody reads":    {once("GET / HTTP/1.1\r\nHost: fairway\r\nContent-Length: 5\r\n\r\n"), true, access.BodyTime},
		"asks nothing after an answer":    {once(request(wire.WorkflowListJobsProcedure, "proto", 0)), true, access.IdleTime},
		"waits for who does not answer":   {once(request(wire.WorkflowShowJobProcedure, "proto", 0)), true, access.CallTime + access.IdleTime},
		"asks for what takes long anyway": {once(request(wire.WorkflowRetryProcedure, "proto", 0)), true, access.IdleTime},
	} {
		t.Run(name, func(t *testing.T) {
			serving(t, &service{}, func(t *testing.T, l *counted) {
				before := runtime.NumGoroutine()
				var peers []net.Conn
				for range 10 {
					peer, err := l.Dial(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					peers = append(peers, peer)
					go c.do(peer)
					if c.reads {
						go func() { _, _ = io.Copy(io.Discard, peer) }()
					}
				}
				pass(c.limit - time.Second)
				synctest.Wait()
				if n := l.open.Load(); n != 10 {
					t.Errorf("%d of 10 connections are open a second before the limit", n)
				}
				pass(3 * time.Second)
				synctest.Wait()
				if n, more := l.open.Load(), runtime.NumGoroutine()-before; n != 0 || more >= len(peers) {
					t.Errorf("%d connections and %d goroutines are left", n, more)
				}
				for _, peer := range peers {
					_ = peer.Close()
				}
			})
		})
	}
}

// calls are all that people's commands ask.
func calls(ctx context.Context, c wire.WorkflowClient) map[string]func() error {
	return map[string]func() error{
		"ListJobs":       func() error { _, err := c.ListJobs(ctx, &wire.ListJobsRequest{}); return err },
		"ShowJob":        func() error { _, err := c.ShowJob(ctx, &wire.ShowJobRequest{}); return err },
		"Explain":        func() error { _, err := c.Explain(ctx, &wire.ExplainRequest{}); return err },
		"ListFiles":      func() error { _, err := c.ListFiles(ctx, &wire.ListFilesRequest{}); return err },
		"ListCaches":     func() error { _, err := c.ListCaches(ctx, &wire.ListCachesRequest{}); return err },
		"Cancel":         func() error { _, err := c.Cancel(ctx, &wire.CancelRequest{}); return err },
		"Retry":          func() error { _, err := c.Retry(ctx, &wire.RetryRequest{}); return err },
		"Prioritize":     func() error { _, err := c.Prioritize(ctx, &wire.PrioritizeRequest{}); return err },
		"Submit":         func() error { _, err := c.Submit(ctx, &wire.SubmitRequest{}); return err },
		"Upload":         func() error { _, err := c.Upload(ctx, &wire.UploadRequest{}); return err },
		"CloseInput":     func() error { _, err := c.CloseInput(ctx, &wire.CloseInputRequest{}); return err },
		"Stop":           func() error { _, err := c.Stop(ctx, &wire.StopRequest{}); return err },
		"ListPilots":     func() error { _, err := c.ListPilots(ctx, &wire.ListPilotsRequest{}); return err },
		"SubmitWorkflow": func() error { _, err := c.SubmitWorkflow(ctx, &wire.SubmitWorkflowRequest{}); return err },
		"ListRuns":       func() error { _, err := c.ListRuns(ctx, &wire.ListRunsRequest{}); return err },
		"ListShares":     func() error { _, err := c.ListShares(ctx, &wire.ListSharesRequest{}); return err },
		"RemoveRuns":     func() error { _, err := c.RemoveRuns(ctx, &wire.RemoveRunsRequest{}); return err },
		"Logs": func() error {
			stream, err := c.Logs(ctx, &wire.LogsRequest{})
			return drained(stream, err)
		},
		"Fetch": func() error {
			stream, err := c.Fetch(ctx, &wire.FetchRequest{})
			return drained(stream, err)
		},
		"Endings": func() error {
			stream, err := c.Endings(ctx, &wire.EndingsRequest{})
			return drained(stream, err)
		},
		"Progress": func() error {
			stream, err := c.Progress(ctx, &wire.ProgressRequest{})
			return drained(stream, err)
		},
	}
}

func drained[T any](stream *connect.ServerStreamForClient[T], err error) error {
	if err != nil {
		return err
	}
	defer stream.Close()
	for stream.Receive() {
	}
	return stream.Err()
}

// A server that hangs, or gives its answer a byte a second, is told of in time by every call.
func TestServersThatHangAreTold(t *testing.T) {
	methods := wire.File_api_proto.Services().ByName("Workflow").Methods()
	for i := range methods.Len() {
		name := string(methods.Get(i).Name())
		kind, limit, says := "proto", access.CallTime, "has not answered within 1m0s ("+name+")"
		switch name {
		case "Logs", "Progress", "Fetch", "Endings":
			kind, limit, says = "connect+proto", access.SilentTime, "has said nothing for 2m0s"
		case "ListFiles", "Retry", "SubmitWorkflow":
			limit, says = access.StorageTime, "has not answered within 5m0s ("+name+")"
		}
		for how, answer := range map[string]string{
			"silent": "", "slow header": "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 10_000),
			"slow body": "HTTP/1.1 200 OK\r\nContent-Type: application/" + kind + "\r\nContent-Length: 100000\r\n\r\n" + strings.Repeat("\x00", 10_000),
		} {
			t.Run(name+"/"+how, func(t *testing.T) {
				if how == "slow body" && kind != "proto" {
					// one message that takes for ever
					answer = strings.TrimRight(answer, "\x00") + "\x00\x00\x00\x01\x00" + strings.Repeat("x", 10_000)
				}
				synctest.Test(t, func(t *testing.T) {
					pipes := NewPipes()
					go func() {
						conn, err := pipes.Accept()
						if err != nil {
							return
						}
						go func() { _, _ = io.Copy(io.Discard, conn) }()
						pass(time.Second) // when the request has come
						head, rest, _ := strings.Cut(answer, "\r\n\r\n")
						if rest != "" {
							_, _ = io.WriteString(conn, head+"\r\n\r\n")
						} else {
							rest = head
						}
						for i := range len(rest) {
							if _, err := io.WriteString(conn, rest[i:i+1]); err != nil {
								return
							}
							pass(time.Second)
						}
					}()
					client, transport := Client(pipes.Dial)
					call := calls(t.Context(), client)[name]
					if call == nil {
						t.Fatal("this test does not call it")
					}
					began := time.Now()
					err := call()
					if connect.CodeOf(err) != connect.CodeDeadlineExceeded || !strings.Contains(err.Error(), says) {
						t.Error(err)
					}
					if took := time.Since(began); took < limit || took > limit+time.Second {
						t.Errorf("it took %v instead of %v", took, limit)
					}
					transport.CloseIdleConnections()
					_ = pipes.Close()
					pass(2 * time.Second) // what is still there then stays
				})
			})
		}
	}
}

// A stream goes on for as long as something comes, and its reader may take its time.
func TestStreamsGoOn(t *testing.T) {
	serving(t, &service{pause: access.KeepAlive, most: 500}, func(t *testing.T, l *counted) {
		client, transport := Client(l.Dial)
		defer transport.CloseIdleConnections()
		stream, err := client.Logs(t.Context(), &wire.LogsRequest{})
		if err != nil {
			t.Fatal(err)
		}
		defer stream.Close()
		began, n := time.Now(), 0
		for stream.Receive() {
			if n++; n == 100 {
				pass(access.ReaderTime - time.Minute) // a person looks at a page
			}
			if !bytes.Equal(stream.Msg().GetData(), make([]byte, 64<<10)) {
				t.Fatal("other data")
			}
		}
		if n != 500 || connect.CodeOf(stream.Err()) != connect.CodeDeadlineExceeded {
			t.Errorf("%d messages, %v", n, stream.Err())
		}
		if took := time.Since(began); took < 4*time.Hour {
			t.Errorf("the stream took %v", took)
		}
	})
}
