package console

import (
	"context"
	"errors"
	"testing"

	"connectrpc.com/connect"
)

// A server may end while `fairway stop` asks it to: that is no error of the question.
func TestAServerThatEndsWhileItIsAsked(t *testing.T) {
	for _, code := range []connect.Code{connect.CodeCanceled, connect.CodeUnavailable} {
		asked := 0
		err := askAgain(t.Context(), func() (bool, error) {
			if asked++; asked == 1 {
				return true, connect.NewError(code, context.Canceled)
			}
			return false, NothingRuns(t.TempDir())
		})
		if !errors.Is(err, ErrNothingRuns) || asked != 2 {
			t.Errorf("%v: asked %d times, %v", code, asked, err)
		}
	}
}
