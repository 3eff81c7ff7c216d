package server

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fairway/internal/server/api"
	"fairway/internal/wire"
)

// A server whose folder was removed, or moved away, ends, and whoever waits for it is told why: what it
// acknowledges nobody would find again.
func TestAServerEndsWhenItsFolderIsGone(t *testing.T) {
	for name, remove := range map[string]func(state string) error{
		"removed": os.RemoveAll,
		"moved":   func(state string) error { return os.Rename(state, state+".moved") },
		"another in its place": func(state string) error {
			return errors.Join(os.Rename(state, state+".moved"), os.Mkdir(state, 0o755))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRun(t, t.TempDir(), openWorkflow, twoStepsScript)
			s, err := Open(t.Context(), r.config)
			if err != nil {
				t.Fatal(err)
			}
			followed := make(chan *wire.ProgressReport, 1)
			go func() {
				var last *wire.ProgressReport
				defer func() { followed <- last }()
				c, err := api.Connect(t.Context(), r.folder)
				if err != nil {
					t.Error(err)
					s.Stop(false)
					return
				}
				defer c.Close()
				stream, err := c.Progress(t.Context(), &wire.ProgressRequest{Follow: true})
				if err != nil {
					t.Error(err)
					s.Stop(false)
					return
				}
				defer stream.Close()
				for stream.Receive() {
					if last == nil {
						if err := remove(filepath.Join(r.folder, ".fairway")); err != nil {
							t.Error(err)
						}
					}
					last = stream.Msg()
				}
			}()
			outcome, err := s.Run(t.Context())
			if !errors.Is(err, errFolderGone) || outcome.Succeeded {
				t.Errorf("it ended with %v, %+v", err, outcome)
			}
			last := <-followed
			if !last.GetEnded() || !strings.Contains(strings.Join(last.GetProblems(), " "), "is gone") {
				t.Errorf("who followed the run was told: %v", last)
			}
		})
	}
}
