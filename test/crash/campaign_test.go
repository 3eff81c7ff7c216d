package crash

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"fairway/lib/sched"
	"fairway/test/files"
	"fairway/test/program"
)

const (
	runs  = 4  // files that arrive, each of them rewrites the table
	lines = 40 // of each
	// patience is how long one start of the server may take before it counts as
	// hung.
	patience = 3 * time.Minute
	// longest is the latest random moment for a kill, about as long as the
	// workflow takes.
	longest = 1200 * time.Millisecond
)

// layout says on which file systems the parts of a run are.
type layout string

const (
	// together is all on one, so that files are linked, never copied.
	together layout = "together"
	// scattered has the inputs, and the storage element, on others than the
	// sandboxes, so that files are copied, and caches that are too small for
	// what passes through them.
	scattered layout = "scattered"
	// away is together, but for the results, which are published in a folder that
	// --results names.
	away layout = "away"
)

var layouts = []layout{together, scattered, away}

// awayFolder is where the results are then, beside the workflow.
const awayFolder = "published"

// smallCache is what a pilot's cache may take where that is little.
const smallCache = "1kB"

// newWorkflow makes a folder with the workflow and its inputs.
func newWorkflow(t *testing.T, on layout) string {
	t.Helper()
	folder := t.TempDir()
	if on == scattered {
		files.Elsewhere(t, filepath.Join(folder, "runs"))
		files.Elsewhere(t, filepath.Join(folder, ".fairway", "storage"))
	}
	if on == away {
		if err := errors.Join(
			os.Mkdir(filepath.Join(folder, awayFolder), 0o755), os.Symlink(awayFolder, filepath.Join(folder, "results")),
		); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile("testdata/workflow.yaml")
	if err != nil {
		t.Fatal(err)
	}
	files.Write(t, filepath.Join(folder, "workflow.yaml"), string(text))
	files.Write(t, filepath.Join(folder, "table.txt"), "1\n")
	for run := 1; run <= runs; run++ {
		var numbers strings.Builder
		for line := range lines {
			fmt.Fprintln(&numbers, run*1000+line)
		}
		files.Write(t, filepath.Join(folder, "runs", fmt.Sprintf("run%d.txt", run)), numbers.String())
	}
	return folder
}

// results reads all published files, and leaves out the fences against servers that were killed.
func results(t *testing.T, folder string) map[string]string {
	t.Helper()
	all := files.Below(t, filepath.Join(folder, "results"))
	maps.DeleteFunc(all, func(name, _ string) bool { return strings.Contains("/"+name, "/.fairway-publishing-") })
	return all
}

// attempt is one start of `fairway run`.
type attempt struct {
	patience time.Duration
	t        *testing.T
	folder   string
	cmd      *exec.Cmd
	output   bytes.Buffer
	ended    chan struct{}
}

func start(t *testing.T, folder string, on layout, environment ...string) *attempt {
	t.Helper()
	a := &attempt{patience: patience, t: t, folder: folder, ended: make(chan struct{})}
	a.cmd = exec.Command(fairway, "run", "--pilots", "2", filepath.Join(folder, "workflow.yaml"))
	if on == scattered {
		a.cmd.Args = append(a.cmd.Args, "--cache-space", smallCache)
	}
	if on == away {
		a.cmd.Args = append(a.cmd.Args, "--results", filepath.Join(folder, awayFolder))
	}
	a.cmd.Env = append(os.Environ(), environment...)
	a.cmd.Stdout, a.cmd.Stderr = &a.output, &a.output
	if err := a.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = a.cmd.Wait()
		close(a.ended)
	}()
	return a
}

// wait returns whether the run succeeded.
func (a *attempt) wait() bool {
	a.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), a.patience)
	defer cancel()
	if _, err := sched.Receive(ctx, sched.Default(), a.ended); !errors.Is(err, sched.ErrChannelClosed) {
		shown := a.ask("jobs") + a.ask("explain", "total")
		_ = a.cmd.Process.Signal(syscall.SIGQUIT)
		<-a.ended
		a.t.Fatalf("the run hung; pilots %v\n%s\n%s", program.Pilots(a.folder), shown, a.output.String())
	}
	return a.cmd.ProcessState.Success()
}

// killed reports whether a signal has ended the server.
func (a *attempt) killed() bool {
	status, ok := a.cmd.ProcessState.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}

// ask shows how the run stands.
func (a *attempt) ask(arguments ...string) string {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	out, _ := exec.CommandContext(ctx, fairway, append([]string{"-C", a.folder}, arguments...)...).CombinedOutput()
	return string(out)
}

// at waits for a moment; false if the run ends before.
func (a *attempt) at(moment time.Duration) bool {
	ctx, cancel := context.WithTimeout(context.Background(), moment)
	defer cancel()
	_, err := sched.Receive(ctx, sched.Default(), a.ended)
	return !errors.Is(err, sched.ErrChannelClosed)
}

func (a *attempt) killServer() { _ = a.cmd.Process.Kill() }

// killPilots kills all pilots of the folder, or one of them.
func (a *attempt) killPilots(random *rand.Rand, all bool) int {
	pilots := program.Pilots(a.folder)
	if len(pilots) > 0 && !all {
		chosen := random.IntN(len(pilots))
		pilots = pilots[chosen : chosen+1]
	}
	killed := 0
	for _, pid := range pilots {
		if syscall.Kill(pid, syscall.SIGKILL) == nil {
			killed++
		}
	}
	return killed
}
