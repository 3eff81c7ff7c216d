package pilot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/types/known/durationpb"

	"fairway/internal/access"
	"fairway/internal/disk"
	"fairway/internal/pilot/gpu"
	"fairway/internal/pilot/process"
	"fairway/internal/pilot/stage"
	"fairway/internal/quantity"
	"fairway/internal/storage"
	"fairway/internal/wire"
)

func (p *pilot) describe() *wire.PilotInfo {
	c := &p.cfg
	return &wire.PilotInfo{
		Host: c.Host, Machine: disk.Machine(), Site: c.Site, Launch: c.Launch,
		Has: c.resourcesToWire(), Lease: durationpb.New(c.Lease),
	}
}

// checkEnvironment finds out what the node has, and returns an error for what
// is missing (paper 3, section IV: such a pilot announces the error and ends).
func (p *pilot) checkEnvironment(ctx context.Context) error {
	c := &p.cfg
	var missing []error
	if err := p.findGPUs(ctx); err != nil {
		missing = append(missing, err)
	}
	for _, tool := range c.Tools {
		if _, err := exec.LookPath(tool); err != nil {
			missing = append(missing, fmt.Errorf("%s is not in PATH", tool))
			continue
		}
		p.hello.Tools = append(p.hello.Tools, tool)
	}
	p.hello.Tools = append(p.hello.Tools, p.toolsThere(c.Probe)...)
	err := errors.Join(append(missing, c.runCheck(), p.checkSandbox(), p.checkProcessors(), p.checkMemory(), p.checkDisk(),
		p.openStorage(ctx))...)
	p.hello.Has = c.resourcesToWire()
	return err
}

func (p *pilot) toolsThere(tools []string) (there []string) {
	for _, tool := range tools {
		if memory, ok := quantity.ParseGPUMemory(tool); ok {
			if gpu.AllHave(p.gpus.devices, memory) {
				there = append(there, tool)
			}
			continue
		}
		if _, err := exec.LookPath(tool); err == nil {
			there = append(there, tool)
		}
	}
	return there
}

func (p *pilot) checkProcessors() error {
	p.cfg.MilliCPUs = cmp.Or(p.cfg.MilliCPUs, int64(runtime.NumCPU())*1000)
	if p.cfg.MilliCPUs < 0 {
		return fmt.Errorf("%d thousandths of a processor are none", p.cfg.MilliCPUs)
	}
	return nil
}

func (p *pilot) checkMemory() error {
	total, err := memoryOfNode()
	if err != nil {
		return err
	}
	if p.cfg.Memory > total {
		return fmt.Errorf("the node has %s of memory, %s are asked for", quantity.Bytes(total), quantity.Bytes(p.cfg.Memory))
	}
	p.cfg.Memory = cmp.Or(p.cfg.Memory, total/10*9)
	return nil
}

// memoryOfNode is the memory of the machine, or what the cgroup leaves of it.
func memoryOfNode() (int64, error) {
	data, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0, err
	}
	total := int64(-1)
	for line := range strings.Lines(string(data)) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == "MemTotal:" {
			kib, err := strconv.ParseInt(fields[1], 10, 64)
			if err != nil {
				return 0, fmt.Errorf("/proc/meminfo: %w", err)
			}
			total = kib << 10
		}
	}
	if limit, limited := process.CgroupMemory(); limited {
		total = min(total, limit)
	}
	return total, nil
}

func (p *pilot) checkDisk() error {
	if err := os.MkdirAll(p.cfg.SandboxDir, 0o755); err != nil {
		return fmt.Errorf("folder for sandboxes: %w", err)
	}
	var s unix.Statfs_t
	if err := unix.Statfs(p.cfg.SandboxDir, &s); err != nil {
		return fmt.Errorf("folder for sandboxes: %w", err)
	}
	free := int64(s.Bavail) * s.Bsize
	if p.cfg.Disk > free {
		return fmt.Errorf("%s has %d bytes free, %d are asked for", p.cfg.SandboxDir, free, p.cfg.Disk)
	}
	p.cfg.Disk = cmp.Or(p.cfg.Disk, free)
	p.cfg.Disk = min(p.cfg.Disk, access.MaxAmount)
	return nil
}

func (p *pilot) openStorage(ctx context.Context) error {
	if p.cfg.Line == nil {
		return checkStorage(p.stage.Roots, p.cfg.Storage)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, p.cfg.Lease, ErrLease)
	defer cancel()
	r, err := stage.NewReach(ctx, p.cfg.Line, p.stage.Roots, p.stage.Storage, p.sched.Sleep)
	if err != nil {
		return err
	}
	// What is not shared has no path here, whatever there may be.
	if !r.Sees(storage.StateScheme + ":").Reads {
		p.stage.Roots.State = ""
	}
	if !r.Sees(storage.FolderScheme + ":").Reads {
		p.stage.Roots.Folder = ""
	}
	if !r.Sees("file:" + p.cfg.LogDir + "/").Writes {
		p.cfg.LogDir = filepath.Join(p.cfg.SandboxDir, p.cfg.Pilot, "logs")
		p.sendsLogs = true
	}
	p.stage.Reach, p.stage.Storage = r, r
	p.log.Info("storage", "shared", r.Marked())
	return nil
}

func checkStorage(roots storage.Roots, prefix string) error {
	if prefix == "" || !storage.IsLocal(prefix) {
		return nil
	}
	path, err := roots.Path(storage.Join(prefix, "."))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(path, 0o755); err != nil {
		return fmt.Errorf("storage element: %w", err)
	}
	probe := filepath.Join(path, ".probe-"+randomName())
	f, err := os.Create(probe)
	if err != nil {
		return fmt.Errorf("storage element: %w", err)
	}
	return errors.Join(f.Close(), os.Remove(probe))
}
