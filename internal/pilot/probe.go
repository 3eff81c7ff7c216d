package pilot

import (
	"context"
	"os"
	"time"

	"fairway/internal/storage"
	"fairway/internal/wire"
)

// Found is what a node has for a pilot.
type Found struct {
	Host      string        `json:"host"`
	MilliCPUs int64         `json:"milli_cpus"`
	Memory    int64         `json:"memory"` // bytes
	Disk      int64         `json:"disk"`   // bytes free for sandboxes
	Life      time.Duration `json:"life"`   // 0: no limit is known
	Scratch   string        `json:"scratch"`
	Tools     []string      `json:"tools"`
	Problem   string        `json:"problem"` // why a pilot would take no jobs; empty: nothing
}

// Probe finds out what a pilot with this Config would have here, as one that is started
// with a connection file does, and runs nothing.
func Probe(ctx context.Context, cfg Config) Found {
	cfg.takeAllotment(ctx, os.Getenv)
	err := cfg.onNode(os.Getenv)
	host, _ := os.Hostname()
	p := &pilot{cfg: cfg, hello: &wire.PilotInfo{}, places: storage.Places{State: cfg.Element, Folder: cfg.Workflow}}
	if err == nil {
		err = p.checkEnvironment(ctx)
	}
	found := Found{
		Host: host, MilliCPUs: p.cfg.MilliCPUs, Memory: p.cfg.Memory, Disk: p.cfg.Disk, Life: p.cfg.Life,
		Scratch: p.cfg.SandboxDir, Tools: p.hello.GetTools(),
	}
	if err != nil {
		found.Problem = err.Error()
	}
	return found
}
