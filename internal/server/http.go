package server

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	"connectrpc.com/connect"

	"fairway/internal/wire"
)

// closingTime is how long the server waits at its end for the last answers to
// be taken.
const closingTime = 2 * time.Second

// uncompressed: both ends of a socket are on one machine, and gzip would cost
// more than the whole rest of a call.
var uncompressed = connect.WithCompression("gzip", nil, nil)

// newHTTP serves pilots and people. HTTP/1.1 costs a third less per call here
// than HTTP/2 without encryption (docs/operations.md has the figures).
func (s *Server) newHTTP() *http.Server {
	mux := http.NewServeMux()
	mux.Handle(wire.NewTaskQueueHandler(&taskQueue{inbox: s.inbox, waiters: s.out.waiters}, uncompressed))
	mux.Handle(wire.NewWorkflowHandler(&api{
		state: s, changer: s, control: s, logs: logFolder(s.folders.Logs), places: s.folders.Places(), sched: s.sched,
	}, uncompressed))
	return &http.Server{Handler: mux, ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug)}
}

func (s *Server) serve() {
	if err := s.http.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
		s.log.Error("the server's socket failed", "error", err)
	}
}

// closeHTTP lets calls that are under way end, those that follow the run by
// its last report, and cuts off what is still there after closingTime.
func (s *Server) closeHTTP() {
	ctx, cancel := context.WithTimeout(context.Background(), closingTime)
	defer cancel()
	if s.http.Shutdown(ctx) != nil {
		_ = s.http.Close()
	}
}

// clientOver makes a client of the Workflow service whose connections dial
// makes.
func clientOver(dial func(ctx context.Context) (net.Conn, error)) (wire.WorkflowClient, *http.Transport) {
	transport := &http.Transport{
		DialContext:        func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) },
		DisableCompression: true,
	}
	client := &http.Client{Transport: transport}
	return wire.NewWorkflowClient(client, "http://fairway", connect.WithAcceptCompression("gzip", nil, nil)), transport
}
