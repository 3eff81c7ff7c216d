package lightpilot

import (
	"context"
	"errors"
	"path/filepath"
	"strings"

	"fairway/internal/batch"
	"fairway/internal/server/launch"
)

// Roll is a batch system whose pilots run as soon as they are submitted: a benchmark finds them
// by their connection files.
type Roll struct {
	Folder string // of connection files
	Way    func(launch string, settings any) (launch.Way, error)
	// Missing counts launches until all are submitted; then All is called. The roster's goroutine
	// counts.
	Missing int
	All     func()
}

// Submit is part of batch.System.
func (r *Roll) Submit(_ context.Context, name string) error {
	if _, err := r.Way(name, struct{}{}); err != nil {
		return err
	}
	if r.Missing--; r.Missing == 0 {
		r.All()
	}
	return nil
}

// Status is part of batch.System.
func (r *Roll) Status(context.Context) (map[string]batch.Status, error) {
	running := map[string]batch.Status{}
	for _, file := range Connections(r.Folder) {
		running[strings.TrimSuffix(filepath.Base(file), connectionEnding)] = batch.Status{State: batch.Running, Jobs: 1}
	}
	return running, nil
}

// Withdraw is part of batch.System. No pilot is withdrawn while it is measured.
func (r *Roll) Withdraw(context.Context, ...string) error {
	return errors.New("pilots of this benchmark stay")
}

const connectionEnding = ".connect"

// Connections are the connection files of the launches in a folder, in order.
func Connections(folder string) []string {
	files, _ := filepath.Glob(filepath.Join(folder, "*"+connectionEnding)) // the pattern is right
	return files
}
