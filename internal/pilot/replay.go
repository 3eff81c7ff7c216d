package pilot

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"fairway/internal/pilot/stage"
	"fairway/internal/wire"
)

// replay stands in for a task of a trace: it waits for as long as the task
// computed, without computing, and writes files of the sizes that it wrote.
func (p *pilot) replay(a *attempt) {
	r := a.Payload.GetReplay()
	if err := p.sched.Sleep(a.Ctx, r.GetCompute().AsDuration()); err != nil {
		reason := a.stopReason()
		if reason == nil {
			reason = &stopped{wire.Outcome_OUTCOME_LOST, err.Error()}
		}
		a.fail(reason.outcome, "%s", reason.why)
		return
	}
	for lfn, size := range r.GetWritesBytes() {
		if err := writeReplayed(a, lfn, size); err != nil {
			a.failBy(wire.Outcome_OUTCOME_STAGE_OUT_FAILED, fmt.Errorf("write %s: %w", lfn, err))
			return
		}
	}
}

// writeReplayed makes a file with a hole as large as it is.
func writeReplayed(a *attempt, lfn string, size int64) error {
	path, err := a.PathOf(lfn)
	if err != nil {
		return err
	}
	if err := stage.MakeParents(a.Slot.Folder, path); err != nil {
		return err
	}
	f, err := os.Create(filepath.Join(a.Slot.Folder, path))
	if err != nil {
		return err
	}
	return errors.Join(f.Truncate(size), f.Close())
}
