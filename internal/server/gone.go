package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

// lookPeriod is how often a server looks whether the folder of its state is there. Two looks in a row must
// say that it is not.
const lookPeriod = time.Second

// errFolderGone ends a server whose folder is gone: the store goes on writing to files that have no name, and
// what it acknowledges nobody will find again.
var errFolderGone = errors.New("it was removed or moved away while the server was running")

// watchFolder ends the server when its folder is gone, or another one stands in its place.
func (s *Server) watchFolder(ctx context.Context) {
	was, err := os.Stat(s.folders.State)
	if err != nil {
		return // other errors tell
	}
	for missed := 0; ; {
		if s.sched.Sleep(ctx, lookPeriod) != nil {
			return
		}
		now, err := os.Stat(s.folders.State)
		switch {
		case errors.Is(err, fs.ErrNotExist), err == nil && !os.SameFile(was, now):
			missed++
		case err == nil:
			missed = 0
		}
		if missed == 2 {
			err := fmt.Errorf("the folder %s is gone: %w", s.folders.State, errFolderGone)
			s.log.Error("the server ends", "error", err)
			s.loop.Break(err)
			return
		}
	}
}
