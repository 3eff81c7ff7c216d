package server

import (
	"path/filepath"
	"strings"

	"fairway/internal/batch"
)

// Survivors are the launches of local pilots that a server of this folder
// started and that are alive. Where no server runs it was cut short; they go on
// computing until their lease is over, for the next one.
func Survivors(folder string) ([]string, error) {
	logs, err := filepath.Glob(filepath.Join(PilotFolder(folder), "*.log"))
	if err != nil {
		return nil, err
	}
	return batch.Alive(each(logs, func(path string) string {
		return strings.TrimSuffix(filepath.Base(path), ".log")
	}))
}

// EndSurvivors ends pilots that Survivors has found, with what they run, and
// waits until they are gone.
func EndSurvivors(folder string, launches []string) error {
	local, err := batch.NewLocal(batch.LocalConfig{LogDir: PilotFolder(folder)})
	if err != nil {
		return err
	}
	_, err = local.Adopt(launches)
	if ending := local.Close(); err == nil {
		err = ending
	}
	return err
}
