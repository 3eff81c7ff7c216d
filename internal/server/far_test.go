package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"fairway/internal/access"
	"fairway/internal/batch"
	"fairway/internal/flow/workflow"
	"fairway/internal/pilot"
	"fairway/internal/server/folder"
	"fairway/internal/server/launch"
	"fairway/internal/taskqueue"
	"fairway/lib/sched"
	"fairway/test/files"
)

const connectVariable = "SERVER_TEST_CONNECT"

// nodeVariable names a folder for sandboxes that is not in that of the workflow, as on a
// node of a cluster.
const nodeVariable = "SERVER_TEST_NODE"

// farPilots are processes that know of the server what stands in their connection
// files. What the files hold is seen.
func farPilots(seen func(access.Connection)) Site {
	return Site{
		Site: taskqueue.Site{Name: "cluster", MaxPilots: 2, Pilot: taskqueue.Resources{MilliCPUs: 1000, Memory: 1 << 30, Disk: 1 << 20}},
		System: func(folders folder.Layout, way func(string, any) (launch.Way, error)) (batch.System, error) {
			return batch.NewLocal(batch.LocalConfig{
				State: folders.ID, LogDir: folders.Pilots, Command: []string{os.Args[0]},
				Environment: func(name string) ([]string, error) {
					at, err := way(name, pilot.Config{
						MilliCPUs: 1000, Memory: 1 << 30, Disk: 1 << 20,
						SandboxDir: cmp.Or(os.Getenv(nodeVariable), folders.Sandbox), LogDir: folders.Logs,
						Storage: folder.StoragePrefix, Element: folders.Storage, Workflow: folders.Workflow,
					})
					if err != nil {
						return nil, err
					}
					before, err := access.ReadConnection(at.File)
					if err != nil {
						return nil, err
					}
					again, err := way(name, nil)
					if err != nil || again.File != at.File {
						return nil, fmt.Errorf("a launch that is submitted again has the file %s: %w", again.File, err)
					}
					c, err := access.ReadConnection(at.File)
					if c.Token != before.Token {
						return nil, errors.New("it has another token")
					}
					seen(c)
					return []string{connectVariable + "=" + at.File}, err
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
	r := newRun(t, files.Folder(t, threeTexts), strings.NewReplacer("tr a-z A-Z", "tr a-z A-Z < $in > $out", "cat $in",
		"cat $in > $out").Replace(twoSteps), nil)
	r.config.System = nil
	r.config.Listen = "127.0.0.1:0"
	r.config.Sites = []Site{farPilots(func(c access.Connection) {
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
	if len(connections) == 0 || connections[0].Site != "cluster" ||
		!strings.HasPrefix(connections[0].Addresses[0], "127.0.0.1:") {
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

// serverVariable names the folder in which a server runs that a test has started as a
// process of its own, with the workflow that stands there.
const serverVariable = "SERVER_TEST_FOLDER"

func beAServer(root string) {
	err := func() error {
		text, err := os.ReadFile(filepath.Join(root, "workflow.yaml"))
		if err != nil {
			return err
		}
		w, err := workflow.Parse("workflow.yaml", text)
		if err != nil {
			return err
		}
		s, err := Open(context.Background(), Config{
			RunConfig: RunConfig{Workflow: w, Folder: root},
			Sites:     []Site{farPilots(func(access.Connection) {})},
		})
		if err != nil {
			return err
		}
		outcome, err := s.Run(context.Background())
		if err == nil && !outcome.Succeeded {
			err = fmt.Errorf("%+v", outcome)
		}
		return err
	}()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func startServer(t *testing.T, root string) *exec.Cmd {
	t.Helper()
	s := exec.Command(os.Args[0])
	s.Env = append(os.Environ(), serverVariable+"="+root)
	log := new(strings.Builder)
	s.Stdout, s.Stderr = log, log
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if s.ProcessState == nil {
			_ = s.Process.Kill()
			_ = s.Wait()
		}
		t.Log(log)
	})
	return s
}

// found waits for a file that matches a pattern.
func found(t *testing.T, pattern string) (path string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	look := sched.Register(sched.Default(),
		sched.Kind[string, string]{Name: "glob", Poll: func(waiting []*sched.Request[string, string]) {
			for _, r := range waiting {
				if names, _ := filepath.Glob(r.Value); len(names) > 0 {
					r.Done(names[0], nil)
				}
			}
		}})
	path, err := look.Wait(ctx, pattern)
	if err != nil {
		t.Fatalf("%s did not appear: %v", pattern, err)
	}
	return path
}

// oneThatWaits makes the folder of a workflow with one job, which adds a line to runs and
// ends when there is a file go.
func oneThatWaits(t *testing.T) (root string) {
	t.Helper()
	root = t.TempDir()
	files.Write(t, filepath.Join(root, "workflow.yaml"), strings.ReplaceAll(`
workflow: one
steps:
  only:
    writes: out
    command: |
      echo once >> ROOT/runs
      while ! [ -e ROOT/go ]; do sleep 0.01; done
      echo result > "$out"
`, "ROOT", root))
	return root
}

// A folder is copied while its pilots work, and the copy is run: each has its own pilots.
func TestACopyOfAFolderLeavesItsPilotsAlone(t *testing.T) {
	t.Parallel()
	root := oneThatWaits(t)
	first := startServer(t, root)
	found(t, filepath.Join(root, "runs"))
	connection := found(t, filepath.Join(root, ".fairway/pilots/*/*.connect"))
	before := files.Read(t, connection)
	duplicate := filepath.Join(t.TempDir(), "copy")
	if out, err := exec.Command("cp", "-a", root, duplicate).CombinedOutput(); err != nil {
		t.Log(err, string(out)) // a socket, and files that come and go
	}
	second := startServer(t, duplicate)
	becomes(t, "the job of the copy", func() (int, bool) {
		text, _ := os.ReadFile(filepath.Join(root, "runs"))
		return 0, strings.Count(string(text), "once") == 2
	})
	if now := files.Read(t, connection); now != before {
		t.Error("the copy has changed the connection file of the original")
	}
	files.Write(t, filepath.Join(root, "go"), "")
	for at, server := range map[string]*exec.Cmd{root: first, duplicate: second} {
		if err := server.Wait(); err != nil {
			t.Error(at, err)
		}
		if got := files.Read(t, filepath.Join(at, "results/out")); got != "result\n" {
			t.Error(at, got)
		}
	}
	if got := files.Read(t, filepath.Join(root, "runs")); strings.Count(got, "once") != 2 {
		t.Error("jobs ran again:", got)
	}
}

// A folder is moved while its server is away and its pilot works. The pilot goes on, and
// what it makes arrives where the folder is now: nothing comes to be at the old place.
func TestAFolderIsMovedAwayFromItsPilots(t *testing.T) {
	outside, root := t.TempDir(), filepath.Join(t.TempDir(), "root")
	t.Setenv(nodeVariable, t.TempDir())
	files.Write(t, filepath.Join(root, "workflow.yaml"), strings.ReplaceAll(`
workflow: moved
steps:
  only:
    writes: out
    command: |
      echo once >> OUT/runs
      while ! [ -e OUT/go ]; do sleep 0.01; done
      echo result > "$out"
`, "OUT", outside))
	first := startServer(t, root)
	found(t, filepath.Join(outside, "runs"))
	_ = first.Process.Kill()
	_ = first.Wait()
	now := root + "-moved"
	if err := os.Rename(root, now); err != nil {
		t.Fatal(err)
	}
	second := startServer(t, now)
	files.Write(t, filepath.Join(outside, "go"), "")
	if err := second.Wait(); err != nil {
		t.Error(err)
	}
	if got := files.Read(t, filepath.Join(now, "results/out")); got != "result\n" {
		t.Error(got)
	}
	if _, err := os.Lstat(root); err == nil {
		out, _ := exec.Command("find", root).CombinedOutput()
		t.Errorf("at the old place there is:\n%s", out)
	}
}

// The server is killed and comes back at another address. Meanwhile a pilot has ended
// its job. The job does not run again.
func TestAPilotOutlivesItsServer(t *testing.T) {
	t.Parallel()
	root := oneThatWaits(t)
	first := startServer(t, root)
	found(t, filepath.Join(root, "runs"))
	file := found(t, filepath.Join(root, ".fairway/pilots/*/*.connect"))
	before, err := access.ReadConnection(file)
	if err != nil {
		t.Fatal(err)
	}
	_ = first.Process.Kill()
	_ = first.Wait()
	taken, err := net.Listen("tcp", fmt.Sprint(":", access.PortOf(before.Addresses)))
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	files.Write(t, filepath.Join(root, "go"), "")
	found(t, filepath.Join(root, ".fairway/sandbox/*/spool/*.result"))
	second := startServer(t, root)
	if found(t, filepath.Join(root, "results/out")); files.Read(t, filepath.Join(root, "runs")) != "once\n" {
		t.Error("the job ran again:", files.Read(t, filepath.Join(root, "runs")))
	}
	if err := second.Wait(); err != nil {
		t.Error(err)
	}
	if got := files.Read(t, filepath.Join(root, "results/out")); got != "result\n" {
		t.Error(got)
	}
	if left, _ := filepath.Glob(filepath.Join(root, ".fairway/pilots/*/*.connect")); len(left) != 0 {
		t.Error("left:", left)
	}
}
