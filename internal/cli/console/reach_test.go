package console

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"connectrpc.com/connect"

	"fairway/internal/server/folder"
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

// A process that has a folder and does not serve it yet, as it waits for an input, is named: a run is there.
func TestAFolderWhoseProcessIsOnlyBeginning(t *testing.T) {
	dir := t.TempDir()
	lock, _, err := folder.Claim(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{NoState(dir), NothingRuns(dir)} {
		known, ok := errors.AsType[*Failure](err)
		if !ok || known.Code != ExitNoState || !errors.Is(err, ErrNothingRuns) ||
			!strings.Contains(err.Error(), fmt.Sprintf("process %d has begun in", os.Getpid())) {
			t.Errorf("while a process begins: %v", err)
		}
	}
	if err := lock.Release(); err != nil {
		t.Fatal(err)
	}
	if err := NoState(dir); !strings.Contains(err.Error(), "no workflow was run") {
		t.Errorf("when it has gone: %v", err)
	}
}
