package server

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"fairway/internal/access"
	"fairway/internal/batch"
	"fairway/internal/dispatch"
	"fairway/internal/pilot"
	"fairway/internal/server/folder"
)

const connectVariable = "SERVER_TEST_CONNECT"

// farPilots are processes that know of the server what stands in their connection
// files. What the files hold is seen.
func farPilots(t *testing.T, seen func(access.Connection)) Site {
	t.Helper()
	return Site{
		Site: dispatch.Site{Name: "cluster", MaxPilots: 2, Pilot: dispatch.Resources{MilliCPUs: 1000, Memory: 1 << 30, Disk: 1 << 20}},
		System: func(folders folder.Layout, connection func(string, any) (string, error)) (batch.System, error) {
			return batch.NewLocal(batch.LocalConfig{
				LogDir: folders.Pilots, Command: []string{os.Args[0]},
				Environment: func(launch string) ([]string, error) {
					file, err := connection(launch, pilot.Config{
						MilliCPUs: 1000, Memory: 1 << 30, Disk: 1 << 20,
						SandboxDir: folders.Sandbox, LogDir: folders.Logs,
						Storage: folder.StoragePrefix, Element: folders.Storage, Workflow: folders.Workflow,
					})
					if err != nil {
						return nil, err
					}
					if again, err := connection(launch, nil); err != nil || again != file {
						t.Error("a launch that is submitted again has another file:", again, err)
					}
					c, err := access.ReadConnection(file)
					seen(c)
					return []string{connectVariable + "=" + file}, err
				},
			})
		},
	}
}

// A run all of whose pilots come over TLS makes the same results. Its secrets are in
// the connection files only, and go with their launches.
func TestPilotsOverANetwork(t *testing.T) {
	var mu sync.Mutex
	var connections []access.Connection
	r := newRun(t, newFolder(t, threeTexts), strings.NewReplacer("tr a-z A-Z", "tr a-z A-Z < $in > $out", "cat $in", "cat $in > $out").Replace(twoSteps), nil)
	r.config.System = nil
	r.config.Listen = "127.0.0.1:0"
	r.config.Sites = []Site{farPilots(t, func(c access.Connection) {
		mu.Lock()
		defer mu.Unlock()
		connections = append(connections, c)
	})}
	if outcome := r.run(); !outcome.Succeeded {
		t.Fatalf("%+v", outcome)
	}
	if got := r.result("joined.txt"); got != "ONE TWO THREE " {
		t.Errorf("got %q", got)
	}
	if len(connections) == 0 || connections[0].Site != "cluster" || !strings.HasPrefix(connections[0].Addresses[0], "127.0.0.1:") {
		t.Fatal(connections)
	}
	err := filepath.Walk(r.folder, func(path string, info os.FileInfo, err error) error {
		if err != nil || !info.Mode().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		for _, c := range connections {
			if strings.Contains(string(text), string(c.Token)) {
				t.Error("the token stands in", path)
			}
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
