package access

import (
	"errors"
	"fmt"

	"connectrpc.com/connect"
)

// refuse is an error for a caller that is not who it says.
func refuse(format string, args ...any) error {
	return connect.NewError(connect.CodeUnauthenticated, fmt.Errorf(format, args...))
}

// forbid is an error for a caller that asks for, or says, what is not its own.
func forbid(format string, args ...any) error {
	return connect.NewError(connect.CodePermissionDenied, fmt.Errorf(format, args...))
}

// malformed is an error for what no pilot says.
func malformed(format string, args ...any) error {
	return connect.NewError(connect.CodeInvalidArgument, fmt.Errorf(format, args...))
}

// Refused returns what a server said when it refused a caller for good, and
// false for every other error: then the call may be tried again.
func Refused(err error) (sentence string, ok bool) {
	switch connect.CodeOf(err) {
	case connect.CodeUnauthenticated, connect.CodePermissionDenied, connect.CodeInvalidArgument,
		connect.CodeResourceExhausted:
		var coded *connect.Error
		if errors.As(err, &coded) && connect.IsWireError(coded) {
			return coded.Message(), true
		}
	}
	return "", false
}

// shown is a text of a caller in a message: quoted, and not too long.
func shown(text string) string { return fmt.Sprintf("%.100q", text) }
