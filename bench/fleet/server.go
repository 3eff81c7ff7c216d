package main

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"os"
	"runtime/pprof"

	"fairway/bench/measure/lightpilot"
	"fairway/internal/batch"
	"fairway/internal/flow/workflow"
	"fairway/internal/server"
	"fairway/internal/server/folder"
	"fairway/internal/server/launch"
	"fairway/internal/taskqueue"
)

// serverConfig says what a server serves.
type serverConfig struct {
	folder       string
	pilots, jobs int
}

const (
	siteName = "fleet"
	tool     = "work" // what only busy pilots have, and all jobs need
)

const text = `
workflow: fleet
steps:
  work:
    times: %d
    writes: "out-{number}.{found}"
    may_be_empty: true
    tools: [` + tool + `]
    command: "true"
`

// pilotHas is what each pilot has.
var pilotHas = taskqueue.Resources{MilliCPUs: 1000, Memory: 1 << 30, Disk: 1 << 30}

// serve is the server's process. It prints a line when all launches are submitted,
// and ends with its standard input. A line of it is a file for a CPU profile, from
// then on; the next line ends that, and is answered by a line when the file is complete.
func serve(ctx context.Context, c serverConfig) error {
	parsed, err := workflow.Parse("workflow.yaml", fmt.Appendf(nil, text, c.jobs))
	if err != nil {
		return err
	}
	s, err := server.Open(ctx, server.Config{
		RunConfig: server.RunConfig{Workflow: parsed, Folder: c.folder},
		Listen:    "127.0.0.1:0", Log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
		Sites: []server.Site{{
			Site: taskqueue.Site{Name: siteName, MinPilots: c.pilots, MaxPilots: c.pilots, Pilot: pilotHas,
				Tools: []string{tool}},
			System: func(folders folder.Layout, way func(string, any) (launch.Way, error)) (batch.System, error) {
				return &lightpilot.Roll{
					Folder: folders.Pilots, Way: way, Missing: c.pilots, All: func() { fmt.Println("submitted") },
				}, nil
			},
		}},
	})
	if err != nil {
		return err
	}
	go obey()
	outcome, err := s.Run(ctx)
	if err == nil && !outcome.Succeeded {
		err = fmt.Errorf("the run failed: %v", outcome.Problems)
	}
	return err
}

// obey ends the process when nobody tells it anything any more.
func obey() {
	profiling := false
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); profiling = !profiling {
		if profiling {
			pprof.StopCPUProfile()
			fmt.Println("profiled")
			continue
		}
		file, err := os.Create(lines.Text())
		if err == nil {
			err = pprof.StartCPUProfile(file)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	os.Exit(0)
}
