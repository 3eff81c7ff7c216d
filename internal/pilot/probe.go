package pilot

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"fairway/internal/pilot/stage"
	"fairway/internal/storage"
	"fairway/internal/wire"
	"fairway/lib/sched"
)

// Found is what a node has for a pilot.
type Found struct {
	Host      string        `json:"host"`
	MilliCPUs int64         `json:"milli_cpus"`
	Memory    int64         `json:"memory"`  // bytes
	Disk      int64         `json:"disk"`    // bytes free for sandboxes
	Life      time.Duration `json:"life"`    // 0: no limit is known
	Scratch   string        `json:"scratch"` // the folder in which Config.Scratch would be
	Tools     []string      `json:"tools"`
	Server    string        `json:"server"`  // the address at which it was reached
	Folder    string        `json:"folder"`  // how the workflow's folder is reached: one of those below
	Problem   string        `json:"problem"` // why a pilot would take no jobs; empty: nothing
}

// How a pilot gets at the folder of the workflow.
const (
	FolderWritten = "written" // it reads and writes there, in place
	FolderRead    = "read"    // it reads there in place; what it writes goes through the server
	FolderFar     = "far"     // through the server
)

// Probe finds out what a pilot with this Config, whose Scratch is given, would have here,
// as one that is started with a connection file does. It runs nothing and leaves nothing.
func Probe(ctx context.Context, cfg Config) Found {
	cfg.takeAllotment(ctx, os.Getenv)
	err := cfg.onNode(os.Getenv)
	var own *scratch
	if err == nil && cfg.Scratch != "" {
		own, err = claimScratch(ctx, cfg.Scratch, cfg.Cache.Group, sched.Default(), slog.Default())
	}
	defer func() { own.release(true, slog.Default()) }()
	host, _ := os.Hostname()
	p := &pilot{
		cfg: cfg, hello: &wire.PilotInfo{}, stage: &stage.Area{
			Roots: storage.Roots{State: cfg.Element, Folder: cfg.Workflow},
		},
		sched: sched.Default(), log: slog.Default(),
	}
	if err == nil {
		err = p.checkEnvironment(ctx)
	}
	found := Found{
		Host: host, MilliCPUs: p.cfg.MilliCPUs, Memory: p.cfg.Memory, Disk: p.cfg.Disk, Life: p.cfg.Life,
		Scratch: filepath.Dir(p.cfg.Scratch), Tools: p.hello.GetTools(), Folder: FolderFar,
	}
	if p.stage.Reach != nil {
		found.Server = cfg.Line.Reached()
		switch proved := p.stage.Reach.Sees(storage.FolderScheme + ":"); {
		case proved.Reads && proved.Writes:
			found.Folder = FolderWritten
		case proved.Reads:
			found.Folder = FolderRead
		}
	}
	if err != nil {
		found.Problem = err.Error()
	}
	return found
}
