package people

import (
	"connectrpc.com/connect"
)

func invalid(err error) error      { return connect.NewError(connect.CodeInvalidArgument, err) }
func notFound(err error) error     { return connect.NewError(connect.CodeNotFound, err) }
func exhausted(err error) error    { return connect.NewError(connect.CodeResourceExhausted, err) }
func precondition(err error) error { return connect.NewError(connect.CodeFailedPrecondition, err) }
func unproved(err error) error     { return connect.NewError(connect.CodeUnauthenticated, err) }
func denied(err error) error       { return connect.NewError(connect.CodePermissionDenied, err) }
func unavailable(err error) error  { return connect.NewError(connect.CodeUnavailable, err) }
