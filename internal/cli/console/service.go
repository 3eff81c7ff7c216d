package console

import (
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"time"

	"connectrpc.com/connect"

	"fairway/internal/server/listen"
	"fairway/internal/wire"
	"fairway/lib/sched"
)

// ServerVariable names the server that takes workflows, where --server does not.
const ServerVariable = "FAIRWAY_SERVICE"

// AskService talks to the server that --server names.
func (c *Console) AskService(ctx context.Context, do func(context.Context, wire.WorkflowClient) error) error {
	var lost time.Time // when the active server was lost; zero: it answers
	for {
		began := time.Now()
		next, err := c.askActive(ctx, do)
		if !next || ctx.Err() != nil {
			return Explained(err)
		}
		if lost.IsZero() || time.Since(began) > takeoverTime { // it has answered meanwhile
			lost = time.Now()
			c.Announce("fairway: no active server answers; waiting for one that stands by")
		}
		if time.Since(lost) > takeoverTime {
			return Explained(err)
		}
		if err := sched.Default().Sleep(ctx, takeoverPause); err != nil {
			return err
		}
	}
}

// takeoverTime is how long a question is asked again, where servers stand by for the one that is
// lost.
const (
	takeoverTime  = 2 * time.Minute
	takeoverPause = 250 * time.Millisecond
)

func (c *Console) askActive(
	ctx context.Context, do func(context.Context, wire.WorkflowClient) error,
) (next bool, err error) {
	connection, err := dialService(ctx, c.Service)
	if err != nil {
		return errors.Is(err, listen.ErrNoActive), err
	}
	defer connection.Close()
	err = do(ctx, connection)
	gone := ServerGone(err) || errors.Is(err, errWentAway) || connect.CodeOf(err) == connect.CodeDeadlineExceeded
	return gone && connection.Standby, err
}

// WithKey has a repeated submission be known, where it may be repeated: by a key, if it has none.
func WithKey(client wire.WorkflowClient, request *wire.SubmitWorkflowRequest) {
	if c, ok := client.(*listen.Connection); ok && c.Standby && request.GetKey() == "" {
		request.Key = "once-" + rand.Text()
	}
}

func dialService(ctx context.Context, address string) (*listen.Connection, error) {
	info, err := os.Stat(address)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, Fail(ExitUsage, "name the folder of a server (fairway serve --state), or a copy of its file "+
			".fairway/service",
			"--server %s: there is no such folder or file", address)
	}
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		connection, err := listen.DialService(ctx, address)
		if err != nil {
			return nil, NotDialled(address, err)
		}
		return connection, nil
	}
	return DialServiceFolder(ctx, address)
}

// NotDialled is the error of a file by which no server is reached.
func NotDialled(address string, err error) error {
	hint := "" // what is wrong with the file says what to do
	if errors.Is(err, listen.ErrUnreached) || errors.Is(err, listen.ErrNoActive) {
		hint = "see whether it runs, and whether the file is the one that it has now"
	}
	return Fail(ExitNoState, hint, "--server %s: %w", address, err)
}

// IsFolder reports whether there is a folder of that name.
func IsFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
