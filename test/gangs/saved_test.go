package gangs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"fairway/examples/llk23/sweep"
	"fairway/lib/seed"
	"fairway/test/program"
)

// savedSize is the number of rows and columns of the matrix.
const savedSize = 250

const savedWorkflow = `workflow: kernel23
inputs: {program: {files: llk23}}
steps:
  sweep:
    tasks: 3
    reads: llk23
    writes: matrix
    checkpoint: state/
    retry: {attempts: 20, backoff: 10ms}
    command: ./llk23 -n %d -iterations %d -rows 6 -columns 2 -every 100ms -result "$out" -check=false
`

// killsOfARun is about how many kills a run of the workflow lasts for on a busy machine.
const killsOfARun = 40

// TestKillsOfTasksThatSave kills tasks of examples/llk23, and pilots with theirs, at any moment. All
// begin again from the last whole checkpoint, and the result has the bits of one core. A run lasts for
// some kills, fewer the faster the machine is. FAIRWAY_SOAK makes 200 in all.
func TestKillsOfTasksThatSave(t *testing.T) {
	kills := 4
	if os.Getenv("FAIRWAY_SOAK") != "" {
		kills = 200
	}
	rng := rand.New(rand.NewPCG(seed.Of(t), 0))
	fairway, err := program.Build(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	programs := t.TempDir()
	solver, result := filepath.Join(programs, "llk23"), filepath.Join(programs, "want")
	must := func(name string, args ...string) {
		t.Helper()
		if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	must("go", "build", "-o", programs, "fairway/examples/llk23", "fairway/test/gangs/onecore")
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	iterations := sweep.DefaultSweeps * 40 * min(kills+2, killsOfARun)
	must(filepath.Join(programs, "onecore"), fmt.Sprint(savedSize), fmt.Sprint(iterations), result)
	want, err := os.ReadFile(result)
	if err != nil {
		t.Fatal(err)
	}
	for killed := 0; killed < kills; {
		r := startSaved(ctx, t, fairway, solver, iterations)
		killed += r.kill(rng, kills-killed)
		r.check(want)
		t.Logf("%d kills; %s", killed, regexp.MustCompile(`attempts .*`).FindString(r.out.String()))
	}
}

// savedRun is a run of the workflow.
type savedRun struct {
	t      *testing.T
	folder string
	out    bytes.Buffer
	ended  chan struct{}
	err    error // how it ended
}

func startSaved(ctx context.Context, t *testing.T, fairway, solver string, iterations int) *savedRun {
	t.Helper()
	r := &savedRun{t: t, folder: t.TempDir(), ended: make(chan struct{})}
	file := filepath.Join(r.folder, "workflow.yaml")
	text := fmt.Sprintf(savedWorkflow, savedSize, iterations)
	err := errors.Join(os.WriteFile(file, []byte(text), 0o600), os.Link(solver, filepath.Join(r.folder, "llk23")))
	if err != nil {
		t.Fatal(err)
	}
	run := exec.CommandContext(ctx, fairway, "run", file, "--pilots", "4")
	run.Stdout, run.Stderr = &r.out, &r.out
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		r.err = run.Wait()
		close(r.ended)
	}()
	return r
}

// kill kills tasks and pilots, at most so many in all, until the run ends. It returns how many it
// has killed.
func (r *savedRun) kill(rng *rand.Rand, most int) (killed int) {
	for killed < most {
		select {
		case <-r.ended:
			return killed
		case <-time.After(time.Duration(rng.IntN(1500)) * time.Millisecond):
		}
		running := savers(r.folder)
		if len(running) == 0 {
			continue
		}
		victim := running[rng.IntN(len(running))]
		if pilots := program.Pilots(r.folder); len(pilots) > 0 && rng.IntN(4) == 0 {
			victim = pilots[rng.IntN(len(pilots))]
		}
		if syscall.Kill(victim, syscall.SIGKILL) == nil {
			killed++
		}
	}
	return killed
}

// check waits for the end of the run, and compares what it has made.
func (r *savedRun) check(want []byte) {
	r.t.Helper()
	<-r.ended
	if r.err != nil {
		r.t.Fatalf("%v\n%s", r.err, r.out.String())
	}
	made, err := os.ReadFile(filepath.Join(r.folder, "results/matrix"))
	if err != nil {
		r.t.Fatal(err)
	}
	if !bytes.Equal(made, want) {
		r.t.Fatalf("the result of %d bytes has other bits than that of one core, which has %d", len(made), len(want))
	}
}

// savers are the tasks that run now.
func savers(folder string) (pids []int) {
	entries, _ := filepath.Glob("/proc/[0-9]*/cwd")
	for _, entry := range entries {
		at, err := os.Readlink(entry)
		if err != nil || !strings.HasPrefix(at, folder+"/") {
			continue
		}
		var pid int
		if name, err := os.ReadFile(filepath.Join(filepath.Dir(entry), "comm")); err != nil || string(name) != "llk23\n" {
			continue
		}
		if _, err := fmt.Sscanf(entry, "/proc/%d/cwd", &pid); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}
