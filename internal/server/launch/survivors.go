package launch

import (
	"context"

	"fairway/internal/batch"
	"fairway/internal/server/folder"
)

// Survivors are the launches of local pilots that a server of this folder
// started and that are alive. Where no server runs it was cut short; they go on
// computing until their lease is over, for the next one.
func Survivors(workflow string) ([]string, error) {
	l, err := folder.Of(workflow)
	if err != nil {
		return nil, err
	}
	return batch.Alive(l.ID)
}

// EndSurvivors ends pilots that Survivors has found, with what they run, and
// waits until they are gone.
func EndSurvivors(workflow string) error {
	l, err := folder.Of(workflow)
	if err != nil {
		return err
	}
	local, err := batch.NewLocal(batch.LocalConfig{State: l.ID, LogDir: l.Pilots})
	if err != nil {
		return err
	}
	_, err = local.Status(context.Background())
	if ending := local.Close(); err == nil {
		err = ending
	}
	return err
}
