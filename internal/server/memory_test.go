package server

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"google.golang.org/protobuf/proto"

	"fairway/internal/access"
	"fairway/internal/batch"
	"fairway/internal/flow/workflow"
	"fairway/internal/server/folder"
	"fairway/internal/server/launch"
	"fairway/internal/server/loop"
	"fairway/internal/server/state"
	"fairway/internal/taskqueue"
	"fairway/internal/wire"
)

// besiegedVariable names the folder in which a server runs that gives tokens of besiegers away,
// as a line of JSON.
const besiegedVariable = "SERVER_TEST_BESIEGED"

// besiegers are the launches whose tokens are in the wrong hands. More are on their way than
// there is room for already with few; `make soak` sends as many as a site may have.
func besiegers() int {
	if os.Getenv("FAIRWAY_SOAK") != "" {
		return 32
	}
	return 10
}

// honest are the launches that call when the others have: each of them once, since a server
// ends a launch whose pilot is silent.
const honest = 4

func beBesieged(root string) {
	w, err := workflow.Parse("workflow.yaml",
		[]byte("workflow: w\nsteps:\n  a:\n    writes: out\n    command: echo > $out\n"))
	if err != nil {
		panic(err)
	}
	s, err := Open(context.Background(), Config{
		RunConfig: RunConfig{Workflow: w, Folder: root},
		Listen:    "127.0.0.1:0", Sites: []Site{{
			Site: taskqueue.Site{Name: "cluster", MaxPilots: 1},
			System: func(folder.Layout, func(string, any) (launch.Way, error)) (batch.System, error) {
				return idleSystem{}, nil
			},
		}},
	})
	if err != nil {
		panic(err)
	}
	go func() {
		// The loop has forgotten launches of earlier servers when it takes what may change something; a
		// question it answers before.
		revived := &loop.Request{Prepare: func(*state.Cores, *loop.Request) error { return nil }}
		if err := s.inbox.Do(context.Background(), revived); err != nil {
			panic(err)
		}
		var all []access.Connection
		for i := range honest + besiegers() {
			way, err := s.far.connections.To(fmt.Sprint("cluster-t.", i), "cluster", struct{}{})
			if err != nil {
				panic(err)
			}
			all = append(all, way.Connection)
		}
		if err := json.NewEncoder(os.Stdout).Encode(all); err != nil {
			panic(err)
		}
	}()
	_, err = s.Run(context.Background())
	panic(err)
}

// peakOf is the most memory that a process has had, in bytes.
func peakOf(t *testing.T, pid int) int {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	kb, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		t.Fatal(err)
	}
	return kb << 10
}

// Whatever all who have tokens send together, a server lives with 2 GiB, and answers others.
func TestMemoryUnderSiege(t *testing.T) {
	besieged := filepath.Join(t.TempDir(), "besieged")
	if out, err := exec.Command("go", "test", "-c", "-vet=off", "-o", besieged, ".").CombinedOutput(); err != nil {
		t.Fatalf("building a server without race detector, which takes several times the memory: %v\n%s", err, out)
	}
	c := exec.Command(besieged)
	c.Env = append(os.Environ(), besiegedVariable+"="+t.TempDir())
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Process.Kill(); _ = c.Wait() }()
	var all []access.Connection
	if err := json.NewDecoder(out).Decode(&all); err != nil {
		t.Fatal(err)
	}
	before := peakOf(t, c.Process.Pid)
	encoded := func(m *wire.SyncRequest) string {
		body, err := proto.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		return string(body)
	}
	hello := func(by access.Connection, pilot int) *wire.SyncRequest {
		return &wire.SyncRequest{
			Protocol: wire.Protocol, Pilot: fmt.Sprintf("%s-%d", by.Launch, pilot), Seq: 1, Full: true,
			Hello: &wire.PilotInfo{Launch: by.Launch, Site: by.Site, Host: "h"},
		}
	}
	name := strings.Repeat("x", access.MaxName-20)
	tools, cached := &wire.SyncRequest{
		Hello: &wire.PilotInfo{Tools: slices.Repeat([]string{name}, access.MaxTools)},
	}, &wire.SyncRequest{}
	for i := range 4000 {
		cached.CacheAdded = append(cached.CacheAdded,
			&wire.CachedFile{File: &wire.FileRef{Lfn: fmt.Sprint(i, name)}, Size: 1})
	}
	one := encoded(&wire.SyncRequest{Queued: []*wire.AttemptRef{{}}}) // its list is these, one after another
	// What follows a message in its encoding is merged with it.
	lies := map[string]string{
		"a long error": encoded(&wire.SyncRequest{
			Hello: &wire.PilotInfo{Error: strings.Repeat("error ", access.MaxMessage/6-100)},
		}),
		"empty attempts": strings.Repeat(one, access.MaxMessage/len(one)-100),
		"tools":          encoded(tools),
		"cached files":   encoded(cached),
	}
	waiting, sending := all[:honest], all[honest:]
	for what, lie := range lies {
		t.Run(what, func(t *testing.T) {
			var sent sync.WaitGroup
			for _, by := range sending {
				sent.Go(func() {
					client := access.NewLine(by).Client(1)
					defer client.CloseIdleConnections()
					for pilot := range 2 {
						begin := encoded(hello(by, pilot))
						r, err := http.NewRequestWithContext(t.Context(), http.MethodPost,
							access.BaseURL+wire.TaskQueueSyncProcedure,
							io.MultiReader(strings.NewReader(begin), strings.NewReader(lie)))
						if err != nil {
							t.Error(err)
							return
						}
						r.ContentLength = int64(len(begin) + len(lie))
						r.Header.Set("Content-Type", "application/proto")
						if answer, err := client.Do(r); err == nil { // what it says does not matter
							_ = answer.Body.Close()
						}
					}
				})
			}
			sent.Wait()
			other := waiting[0]
			waiting = waiting[1:]
			client := access.NewLine(other).Client(1)
			defer client.CloseIdleConnections()
			answer, err := wire.NewTaskQueueClient(client, access.BaseURL).Sync(t.Context(), hello(other, 0))
			if err != nil {
				t.Error("an honest pilot:", answer, err)
			}
			peak := peakOf(t, c.Process.Pid)
			t.Logf("peak: %d MiB, before %d", peak>>20, before>>20)
			if peak > 2<<30 {
				t.Error("too much")
			}
		})
	}
}
