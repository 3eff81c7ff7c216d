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

	"fairway/internal/access"
	"fairway/internal/server/folder"
	"fairway/internal/server/launch"
	"fairway/internal/server/listen"
	"fairway/internal/server/term"
	"fairway/internal/store"
	"fairway/lib/sched"
)

const connectPause = 50 * time.Millisecond

// Connect reaches the server that runs the workflow of a folder or, where none
// does, its records. An error wraps fs.ErrNotExist where nothing was run.
func Connect(ctx context.Context, workflow string) (*listen.Connection, error) {
	workflow, err := filepath.Abs(workflow)
	if err != nil {
		return nil, err
	}
	s := sched.Default()
	for deadline := time.Now().Add(listen.ConnectTime); ; {
		c, err := connectOnce(ctx, workflow, s)
		if err == nil || !passing(err) || time.Now().After(deadline) {
			return c, err
		}
		if err := s.Sleep(ctx, connectPause); err != nil {
			return nil, err
		}
	}
}

// UnreachableError says that a server on another machine does not answer, and has not
// said that it has ended. It may be dead.
type UnreachableError struct {
	Holder term.Holder
	Err    error
}

func (e *UnreachableError) Error() string {
	return fmt.Sprintf("the server of the run was last on %s, and is not reached there: %v", e.Holder.Host, e.Err)
}

func (e *UnreachableError) Unwrap() error { return e.Err }

// EndedError says that a lasting server does not run. Its runs are kept in its state.
type EndedError struct{ Folder string }

func (e *EndedError) Error() string {
	return fmt.Sprintf("the server of %s does not run", e.Folder)
}

// passing reports whether an error comes from a server that is starting or
// ending.
func passing(err error) bool {
	var network *net.OpError
	var unreachable *UnreachableError
	return errors.As(err, &unreachable) || errors.As(err, &network) || errors.Is(err, store.ErrLocked) ||
		errors.Is(err, store.ErrUnready)
}

func connectOnce(ctx context.Context, workflow string, s *sched.Scheduler) (*listen.Connection, error) {
	state := filepath.Join(workflow, folder.StateFolder)
	if term.Used(state) {
		if c, err := connectFar(ctx, workflow); c != nil || err != nil {
			return c, err
		}
	}
	if c, err := connectActive(ctx, state); c != nil || err != nil {
		return c, err
	}
	live, err := folder.IsRunning(state)
	if err != nil {
		return nil, err
	}
	if live {
		return connectLive(ctx, state)
	}
	if folder.IsLasting(workflow) {
		return nil, &EndedError{Folder: workflow}
	}
	v, err := OpenResting(ctx, workflow)
	if err != nil {
		return nil, err
	}
	return connectResting(v, s), nil
}

// connectActive reaches the active one of servers that stand by for each other, on whatever machine. It
// returns nothing where none do.
func connectActive(ctx context.Context, state string) (*listen.Connection, error) {
	connection, err := access.ReadConnection(filepath.Join(state, folder.ServiceName))
	if err != nil || !connection.Standby {
		return nil, nil
	}
	for deadline := time.Now().Add(listen.ConnectTime); ; {
		c, err := listen.DialActive(ctx, connection)
		if err == nil || errors.Is(err, access.ErrStandsBy) {
			return c, err
		}
		if live, _ := folder.IsRunning(state); live {
			return nil, err
		}
		// On other machines one may be changing its part.
		if time.Now().After(deadline) {
			return nil, &EndedError{Folder: filepath.Dir(state)}
		}
		if err := sched.Default().Sleep(ctx, connectPause); err != nil {
			return nil, err
		}
	}
}

// connectFar reaches the server by what the file of its term says. It returns nothing where
// the lock of this machine tells whether a server runs.
func connectFar(ctx context.Context, workflow string) (*listen.Connection, error) {
	l, err := folder.Of(workflow)
	if err != nil {
		return nil, err
	}
	holder, err := term.Last(l.State, l.ID)
	if err != nil || !holder.Lives() {
		return nil, err
	}
	here := !holder.Elsewhere()
	if holder.Connection == nil {
		if here {
			return nil, nil
		}
		return nil, &UnreachableError{holder, errors.New("it was no batch job, and is asked on that machine only")}
	}
	if here {
		// A server that was killed on this machine says nothing of it.
		if running, err := folder.IsRunning(l.State); err != nil || !running {
			return nil, err
		}
	}
	c, err := listen.DialLine(ctx, *holder.Connection)
	if err != nil {
		return nil, &UnreachableError{holder, err}
	}
	return c, nil
}

func connectLive(ctx context.Context, state string) (*listen.Connection, error) {
	probe, err := listen.Dial(ctx, state)
	if err != nil {
		return nil, fmt.Errorf("reaching the server that runs the workflow: %w", err)
	}
	_ = probe.Close()
	client, transport := listen.Client(func(ctx context.Context) (net.Conn, error) { return listen.Dial(ctx, state) })
	return &listen.Connection{
		WorkflowClient: client, Rights: listen.ClientOfRights(transport), Live: true,
		Closing: transport.CloseIdleConnections,
	}, nil
}

func connectResting(v *Resting, s *sched.Scheduler) *listen.Connection {
	mux := http.NewServeMux()
	service := NewService(Only{Run: v}, v.folders, s)
	service.survivors = func() int {
		alive, _ := launch.Survivors(v.folders.Workflow) // not to know is as if there were none
		return len(alive)
	}
	mux.Handle(listen.People(service))
	listener := listen.NewPipes()
	endpoint := listen.NewEndpoint(listener, listen.AsOwner(mux), slog.New(slog.DiscardHandler))
	var group sync.WaitGroup
	group.Go(endpoint.Serve)
	client, transport := listen.Client(listener.Dial)
	return &listen.Connection{WorkflowClient: client, Closing: func() {
		transport.CloseIdleConnections()
		endpoint.Close(0)
		group.Wait()
	}}
}
