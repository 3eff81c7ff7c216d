//go:build linux

package listen

import (
	"context"
	"errors"
	"fmt"

	"connectrpc.com/connect"

	"fairway/internal/rights"
)

// Permit refuses an action that the role of who asks does not have.
func Permit(ctx context.Context, action rights.Action) error {
	p := rights.Of(ctx)
	switch {
	case action == rights.Anybody || p.Role.May(action):
		return nil
	case p.Role == "":
		return connect.NewError(connect.CodeUnauthenticated, errors.New("nobody has proved who makes this call"))
	}
	return connect.NewError(connect.CodePermissionDenied, fmt.Errorf("the role %s may not do that: it takes the right "+
		"to %v; "+
		"an administrator of the server can give you a token with another role", p.Role, action))
}

// permits refuses calls that their callers may not make, as rights.Calls says.
type permits struct{}

// WrapUnary is part of connect.Interceptor.
func (permits) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, r connect.AnyRequest) (connect.AnyResponse, error) {
		if err := Permit(ctx, rights.Calls[r.Spec().Procedure]); err != nil {
			return nil, err
		}
		return next(ctx, r)
	}
}

// WrapStreamingClient is part of connect.Interceptor.
func (permits) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}

// WrapStreamingHandler is part of connect.Interceptor.
func (permits) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, s connect.StreamingHandlerConn) error {
		if err := Permit(ctx, rights.Calls[s.Spec().Procedure]); err != nil {
			return err
		}
		return next(ctx, s)
	}
}
