package server

import (
	"context"
	"errors"
	"fairway/internal/dispatch"
	"fairway/internal/server/convert"
	"fairway/internal/server/loop"
	"fairway/internal/wire"

	"connectrpc.com/connect"
)

// taskQueue is the service that pilots call.
type taskQueue struct{ inbox *loop.Inbox }

// Sync carries a pilot's report to the loop and holds the call until dispatch
// answers it.
func (q *taskQueue) Sync(ctx context.Context, message *wire.SyncRequest) (*wire.SyncAnswer, error) {
	answer, err := q.inbox.Sync(ctx, convert.SyncFromWire(message))
	return answer, rpcError(err)
}

// rpcError gives an error the code by which a client decides: Unavailable may
// be tried again, what was refused may not.
func rpcError(err error) error {
	var coded *connect.Error
	switch {
	case err == nil || errors.As(err, &coded):
		return err
	case errors.Is(err, loop.ErrReloaded), errors.Is(err, loop.ErrEnded):
		return connect.NewError(connect.CodeUnavailable, err)
	case errors.Is(err, dispatch.ErrRefused):
		return connect.NewError(connect.CodeInvalidArgument, err)
	case errors.Is(err, context.Canceled):
		return connect.NewError(connect.CodeCanceled, err)
	case errors.Is(err, context.DeadlineExceeded):
		return connect.NewError(connect.CodeDeadlineExceeded, err)
	}
	return connect.NewError(connect.CodeInternal, err)
}
