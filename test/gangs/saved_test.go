package gangs

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"
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

// TestKillsOfTasksThatSave kills tasks of examples/llk23, and pilots with theirs, at any moment. All
// begin again from the last whole checkpoint, and the result has the bits of one core. FAIRWAY_SOAK
// makes 200 kills.
func TestKillsOfTasksThatSave(t *testing.T) {
	kills := 4
	if os.Getenv("FAIRWAY_SOAK") != "" {
		kills = 200
	}
	rng := rand.New(rand.NewPCG(seed.Of(t), 0))
	folder := t.TempDir()
	fairway, err := program.Build(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	build := exec.Command("go", "build", "-o", filepath.Join(folder, "llk23"), "fairway/examples/llk23")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	const n = 250
	iterations := 32 * 40 * (kills + 6)
	text := fmt.Sprintf(savedWorkflow, n, iterations)
	if err := os.WriteFile(filepath.Join(folder, "workflow.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	var out bytes.Buffer
	run := exec.CommandContext(ctx, fairway, "run", filepath.Join(folder, "workflow.yaml"), "--pilots", "4")
	run.Stdout, run.Stderr = &out, &out
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- run.Wait() }()
	killed := 0
	for killed < kills {
		select {
		case err := <-ended:
			ended <- err
			kills = killed
		case <-time.After(time.Duration(rng.IntN(2500)) * time.Millisecond):
			running := savers(folder)
			if len(running) == 0 {
				continue
			}
			victim := running[rng.IntN(len(running))]
			if pilots := program.Pilots(folder); len(pilots) > 0 && rng.IntN(4) == 0 {
				victim = pilots[rng.IntN(len(pilots))]
			}
			if syscall.Kill(victim, syscall.SIGKILL) == nil {
				killed++
			}
		}
	}
	if err := <-ended; err != nil {
		t.Fatalf("after %d kills: %v\n%s", killed, err, out.String())
	}
	t.Logf("%d kills; %s", killed, regexp.MustCompile(`attempts .*`).FindString(out.String()))
	made, err := os.ReadFile(filepath.Join(folder, "results/matrix"))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range sweep.Sequential(n, iterations) {
		if got := binary.NativeEndian.Uint64(made[8*i:]); got != math.Float64bits(want) {
			t.Fatalf("element %d has other bits after %d kills", i, killed)
		}
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
