package pilot

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"fairway/internal/pilot/gpu"
	"fairway/internal/quantity"
)

// gpus are the devices that this pilot gives to attempts. Without any, GPUs are only counted.
type gpus struct {
	kind    gpu.Kind
	devices []gpu.Device
	// given is how many attempts have some. The pilot's mutex guards it.
	given int
}

// findGPUs looks for the GPUs of the node, if the pilot is to have some. It fails where there are
// some, and fewer than that.
func (p *pilot) findGPUs(ctx context.Context) (err error) {
	has := p.cfg.Countable[quantity.GPU]
	if has == 0 {
		return nil
	}
	if p.gpus.kind, p.gpus.devices, err = gpu.Find(ctx); err != nil {
		return err
	}
	if n := int64(len(p.gpus.devices)); n > 0 && n < has {
		return fmt.Errorf("the node has %d GPUs that may be used, %d are asked for", n, has)
	}
	return nil
}

// takeGPUs gives an attempt the devices that it needs. It returns false while other attempts of
// this pilot have them: what is free of several devices together is of no use to one that needs a
// whole one. Those that another pilot has fail the attempt. The caller holds the mutex.
func (p *pilot) takeGPUs(a *attempt) bool {
	need := gpu.Need{Whole: int(a.GetNeeds().GetCountable()[quantity.GPU]), Share: int(a.GetNeeds().GetGpuShare())}
	if len(p.gpus.devices) == 0 || need == (gpu.Need{}) {
		return true
	}
	locks := filepath.Join(os.TempDir(), fmt.Sprintf("fairway-gpus-%d", os.Getuid()))
	a.gpus, a.noGPUs = gpu.Take(p.gpus.devices, need, locks)
	if errors.Is(a.noGPUs, gpu.ErrTaken) && p.gpus.given > 0 {
		return false
	}
	if a.gpus != nil {
		p.gpus.given++
	}
	return true
}

// giveBackGPUs lets others have the devices of an attempt. The caller holds the mutex.
func (p *pilot) giveBackGPUs(a *attempt) {
	if a.gpus != nil {
		a.gpus.GiveBack()
		a.gpus = nil
		p.gpus.given--
	}
}

// seesGPUs puts into the variables of a command which devices it has, and no others.
func (p *pilot) seesGPUs(a *attempt, variables []string) []string {
	if len(p.gpus.devices) > 0 {
		var uuids []string
		if a.gpus != nil {
			uuids = a.gpus.UUIDs
		}
		variables = withVariable(variables, p.gpus.kind.Variable+"="+strings.Join(uuids, ","))
	}
	if share := a.GetNeeds().GetGpuShare(); share > 0 {
		variables = append(variables, GPUShareVariable+"="+strconv.FormatFloat(float64(share)/quantity.WholeGPU, 'f', -1, 64))
	}
	return variables
}
