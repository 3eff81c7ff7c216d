package diskfull

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"fairway/internal/batch"
	"fairway/internal/flow/workflow"
	"fairway/internal/pilot"
	"fairway/internal/server"
	"fairway/internal/server/folder"
	"fairway/internal/taskqueue"
)

// fullDisk is the folder of the workspace that the full host has its files in.
const fullDisk = "full"

// A job that one of two hosts has no room for is done by the other one.
func TestRetriedElsewhere(t *testing.T) {
	w := newWorkspace(t)
	w.disk(fullDisk, tooSmall/2)
	w.write("workflow.yaml", strings.Replace(text, "head -c", meet(w.path("begun"))+"head -c", 1))
	w.runOn(func(c *pilot.Config) { c.SandboxDir = w.path(fullDisk) + "/sandbox" })
	w.checkResults()
	w.checkFolder(fullDisk)
	if w.mostAttempts() < 2 {
		t.Error("no job was tried on both hosts")
	}
}

// meet is a command that waits until each of two hosts runs a job, so that the
// full one fails some while the other is there to take them.
func meet(path string) string {
	return `touch ` + path + `.$NODE; while ! [ -e ` + path + `.full ] || ! [ -e ` + path + `.roomy ]; do sleep 0.01; done; `
}

// runOn runs the workflow, which has to succeed, on two hosts, one of them
// changed.
func (w *workspace) runOn(fullHost func(*pilot.Config)) {
	w.Helper()
	text, err := os.ReadFile(w.path("workflow.yaml"))
	if err != nil {
		w.Fatal(err)
	}
	parsed, err := workflow.Parse("workflow.yaml", text)
	if err != nil {
		w.Fatal(err)
	}
	s, err := server.Open(context.Background(), server.Config{
		RunConfig: server.RunConfig{Workflow: parsed, Folder: w.folder},
		Site:      taskqueue.Site{MaxPilots: 2}, Log: slog.New(slog.NewTextHandler(w.Output(), nil)),
		System: func(address string, folders folder.Layout) (batch.System, error) {
			return twoHosts(address, &folders, fullHost)
		},
	})
	if err != nil {
		w.Fatal(err)
	}
	outcome, err := s.Run(context.Background())
	if err != nil || !outcome.Succeeded {
		w.Fatalf("the run failed: %+v, %v", outcome, err)
	}
}

// twoHosts starts pilots in turn on the one and the other.
func twoHosts(address string, folders *folder.Layout, fullHost func(*pilot.Config)) (batch.System, error) {
	var launches atomic.Int64
	return batch.NewLocal(batch.LocalConfig{
		LogDir: folders.Pilots, Command: []string{fairway, "pilot"},
		Environment: func(launch string) ([]string, error) {
			config := pilot.Config{
				Server: address, Launch: launch, Site: server.LocalSite, Host: "roomy", MilliCPUs: 1000,
				SandboxDir: folders.Sandbox, LogDir: folders.Logs, Storage: folder.StoragePrefix, Element: folders.Storage,
				Workflow: folders.Workflow,
			}
			if launches.Add(1)%2 == 1 {
				config.Host = "full"
				fullHost(&config)
			}
			encoded, err := config.Encode()
			return []string{pilot.ConfigVariable + "=" + encoded, "NODE=" + config.Host}, err
		},
	})
}

// mostAttempts is how often the job was tried that was tried most often.
func (w *workspace) mostAttempts() (most int) {
	w.Helper()
	out, err := w.command("jobs", "--json").Output()
	var answer struct{ Jobs []struct{ Attempts int } }
	if err == nil {
		err = json.Unmarshal(out, &answer)
	}
	if err != nil {
		w.Fatal(err)
	}
	for _, job := range answer.Jobs {
		most = max(most, job.Attempts)
	}
	return most
}
