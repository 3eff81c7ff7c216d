//go:build linux

package look

import (
	"errors"
	"io"
	"io/fs"
	"strings"

	"fairway/internal/cli/console"
	"fairway/internal/server/folder"
	"fairway/internal/server/launch"
)

// lastPilot stands for the pilot that spoke last.
const lastPilot = "last"

// PilotLogObject is what --json prints of the log of a pilot.
type PilotLogObject struct {
	Pilot string `json:"pilot"`
	Log   string `json:"log"`
}

func (c *Commands) printPilotLog(name string, tail int64) error {
	dir, err := c.FolderWithState()
	if err != nil {
		return err
	}
	l, err := folder.Of(dir)
	if err != nil {
		return err
	}
	known := launch.Logs(l.Pilots)
	if name == lastPilot && len(known) > 0 {
		name = known[0]
	}
	file, err := launch.OpenLog(l.Pilots, name)
	if errors.Is(err, fs.ErrNotExist) {
		advice := "no pilot of this folder has said anything yet"
		if len(known) > 0 {
			advice = "known here: " + strings.Join(known[:min(len(known), 10)], ", ")
		}
		return console.Fail(console.ExitNotFound, advice, "nothing is known of what the pilot %.100q said", name)
	}
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	if tail > 0 {
		if info, err := file.Stat(); err == nil && info.Size() > tail {
			_, _ = file.Seek(-tail, io.SeekEnd)
		}
	}
	text, err := io.ReadAll(file)
	if err != nil {
		return err
	}
	return c.Answer(PilotLogObject{name, string(text)}, func() { _, _ = c.Out.Write(text) })
}
