//go:build linux

package console

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fairway/internal/server/folder"
)

// A server that reads its records for long has its folder and no socket yet. Who asks hears which process
// begins, whether a run or a lasting server is asked, and no word of sockets.
func TestAServerThatIsOpening(t *testing.T) {
	lasting, run := t.TempDir(), t.TempDir()
	mark := filepath.Join(lasting, folder.StateFolder, folder.LastingName)
	for _, dir := range []string{lasting, run} {
		lock, _, err := folder.Claim(dir)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = lock.Release() })
	}
	if err := os.WriteFile(mark, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, ask := range map[string]func(*testing.T) error{
		"service": func(t *testing.T) error { _, err := DialServiceFolder(t.Context(), lasting); return err },
		"run":     func(t *testing.T) error { return AskIn(t.Context(), run, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // each waits for listen.ConnectTime
			err := ask(t)
			known, ok := errors.AsType[*Failure](err)
			if !ok || known.Code != ExitNoState || strings.Contains(err.Error(), "socket") ||
				!strings.Contains(err.Error(), fmt.Sprintf("process %d has begun", os.Getpid())) {
				t.Errorf("while a server opens: %v", err)
			}
		})
	}
}
