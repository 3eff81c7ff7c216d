package pilot

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"fairway/internal/pilot/gpu"
)

// gpuResource is what jobs call GPUs under needs, and sites under has.
const gpuResource = "gpu"

// gpus are the devices that this pilot gives to attempts. Without any, GPUs are only counted.
type gpus struct {
	kind    gpu.Kind
	devices []gpu.Device
}

// findGPUs looks for the GPUs of the node, if the pilot is to have some. It fails where there are
// some, and fewer than that.
func (p *pilot) findGPUs(ctx context.Context) (err error) {
	has := p.cfg.Countable[gpuResource]
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

// takeGPUs gives an attempt as many devices as it needs, and returns the variable by which its
// command sees no others.
func (p *pilot) takeGPUs(a *attempt) (given *gpu.Given, variable string, err error) {
	if len(p.gpus.devices) == 0 {
		return nil, "", nil
	}
	given = &gpu.Given{}
	if n := a.GetNeeds().GetCountable()[gpuResource]; n > 0 {
		locks := filepath.Join(os.TempDir(), fmt.Sprintf("fairway-gpus-%d", os.Getuid()))
		if given, err = gpu.Take(p.gpus.devices, int(n), locks); err != nil {
			return nil, "", err
		}
	}
	return given, p.gpus.kind.Variable + "=" + strings.Join(given.UUIDs, ","), nil
}
