package pilot

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"

	"fairway/internal/wire"
)

// KeptFolder is where sandboxes of failed attempts are kept, in Config.SandboxDir.
// They belong to no pilot: none removes them.
const KeptFolder = "kept"

// MaxKeptSandboxes bounds the sandboxes that are kept, as far as one pilot can tell:
// each takes disk.
const MaxKeptSandboxes = 20

// keepSandbox has the sandbox of an attempt stay whose command has failed, and
// tells where. Where the disk was full there is no room for it.
func (p *pilot) keepSandbox(a *attempt) {
	if !p.cfg.KeepSandbox || !a.failed() || !a.begun || a.Slot == nil {
		return
	}
	switch a.Result.GetOutcome() {
	case wire.Outcome_OUTCOME_ENDED, wire.Outcome_OUTCOME_LOST, wire.Outcome_OUTCOME_OUT_OF_DISK:
		return
	}
	path, err := p.moveToKept(a)
	if err != nil {
		a.Note(fmt.Sprintf("its sandbox is not kept: %v", err))
		return
	}
	a.Note("its sandbox is kept: " + path)
}

func (p *pilot) moveToKept(a *attempt) (string, error) {
	all := p.workspace.all
	if err := all.Mkdir(KeptFolder, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	kept, err := all.Sub(KeptFolder)
	if err != nil {
		return "", err
	}
	defer kept.Close()
	others, err := kept.List(".")
	if err != nil {
		return "", err
	}
	if len(others) >= MaxKeptSandboxes {
		return "", fmt.Errorf("%d others are in %s; remove what you need no more", len(others),
			filepath.Join(p.cfg.SandboxDir, KeptFolder))
	}
	name := strconv.FormatUint(a.GetAttempt(), 10)
	return filepath.Join(p.cfg.SandboxDir, KeptFolder, name), a.Slot.MoveTo(kept, name)
}
