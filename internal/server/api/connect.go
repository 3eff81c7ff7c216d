package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"time"

	"fairway/internal/server/folder"
	"fairway/internal/server/launch"
	"fairway/internal/server/listen"
	"fairway/internal/store"
	"fairway/internal/wire"
	"fairway/sched"
)

// ConnectTime is how long Connect waits for a server that is just starting or
// ending.
const ConnectTime = 3 * time.Second

const connectPause = 50 * time.Millisecond

// Connection is a client of the Workflow service for one folder.
type Connection struct {
	wire.WorkflowClient
	// Live says that a server runs the workflow; otherwise the records of the
	// last run answer, and what would change them is refused.
	Live  bool
	close func()
}

// Close ends the connection and the streams that came from it.
func (c *Connection) Close() { c.close() }

// Connect reaches the server that runs the workflow of a folder or, where none
// does, its records. An error wraps fs.ErrNotExist where nothing was run.
func Connect(ctx context.Context, workflow string) (*Connection, error) {
	workflow, err := filepath.Abs(workflow)
	if err != nil {
		return nil, err
	}
	s := sched.Default()
	for deadline := time.Now().Add(ConnectTime); ; {
		c, err := connectOnce(ctx, workflow, s)
		if err == nil || !passing(err) || time.Now().After(deadline) {
			return c, err
		}
		if err := s.Sleep(ctx, connectPause); err != nil {
			return nil, err
		}
	}
}

// passing says that an error comes from a server that is starting or ending.
func passing(err error) bool {
	var network *net.OpError
	return errors.As(err, &network) || errors.Is(err, store.ErrLocked) || errors.Is(err, store.ErrUnready)
}

func connectOnce(ctx context.Context, workflow string, s *sched.Scheduler) (*Connection, error) {
	state := filepath.Join(workflow, folder.StateFolder)
	live, err := folder.IsRunning(state)
	if err != nil {
		return nil, err
	}
	if live {
		return connectLive(ctx, state)
	}
	v, err := OpenResting(ctx, workflow)
	if err != nil {
		return nil, err
	}
	return connectResting(v, s), nil
}

func connectLive(ctx context.Context, state string) (*Connection, error) {
	probe, err := listen.Dial(ctx, state)
	if err != nil {
		return nil, fmt.Errorf("reaching the server that runs the workflow: %w", err)
	}
	_ = probe.Close()
	client, transport := listen.Client(func(ctx context.Context) (net.Conn, error) { return listen.Dial(ctx, state) })
	return &Connection{WorkflowClient: client, Live: true, close: transport.CloseIdleConnections}, nil
}

// connectResting serves the view inside this process.
func connectResting(v *Resting, s *sched.Scheduler) *Connection {
	mux := http.NewServeMux()
	service := NewService(v, nil, v.folders, s)
	service.survivors = func() int {
		alive, _ := launch.Survivors(v.folders.Workflow) // not to know is as if there were none
		return len(alive)
	}
	mux.Handle(wire.NewWorkflowHandler(service, listen.Uncompressed))
	listener := listen.NewPipes()
	endpoint := listen.NewEndpoint(listener, mux, slog.New(slog.DiscardHandler))
	var group sync.WaitGroup
	group.Go(endpoint.Serve)
	client, transport := listen.Client(listener.Dial)
	return &Connection{WorkflowClient: client, close: func() {
		transport.CloseIdleConnections()
		endpoint.Close(0)
		group.Wait()
	}}
}
