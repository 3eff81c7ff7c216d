package pilot

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fairway/internal/wire"
)

// twoGPUs is the environment of a pilot on a node of which nvidia-smi tells recorded answers, and
// of whose GPUs it may use the first two. Locks are in a folder of the test.
func twoGPUs(t *testing.T) []string {
	t.Helper()
	folder := t.TempDir()
	answers, err := filepath.Abs("gpu/testdata/four")
	if err != nil {
		t.Fatal(err)
	}
	script := fmt.Sprintf("#!/bin/sh\n[ \"$1\" = -L ] && exec cat %[1]s/list\nexec cat %[1]s/memory\n", answers)
	if err := os.WriteFile(filepath.Join(folder, "nvidia-smi"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return []string{"PATH=" + folder + ":" + os.Getenv("PATH"), "TMPDIR=" + folder, "CUDA_VISIBLE_DEVICES=0,1"}
}

// Halves share a device beside a whole one. A share for which no device has enough left waits for
// the end of another, although the devices have enough together.
func TestSharesOfGPUs(t *testing.T) {
	q := newTaskQueue(t)
	cfg := q.config("p1")
	cfg.MilliCPUs, cfg.Countable = 8000, map[string]int64{"gpu": 2}
	q.start(cfg, twoGPUs(t)...)
	folder := t.TempDir()
	file := func(name, what string) string { return filepath.Join(folder, name+"."+what) }
	// hold runs until the file name.go is there, and tells in name.has what it sees.
	hold := func(name string, need *wire.Resources) *wire.Assignment {
		return shell(fmt.Sprintf("echo $CUDA_VISIBLE_DEVICES ${FAIRWAY_GPU_SHARE-} > %[1]s.new; mv %[1]s.new %[1]s.has; "+
			"while ! [ -e %[1]s.go ]; do sleep 0.01; done", filepath.Join(folder, name)), needs(need))
	}
	end := func(name string, a *wire.Assignment) {
		t.Helper()
		if err := os.WriteFile(file(name, "go"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		expect(t, q.result(a.GetAttempt()), wire.Outcome_OUTCOME_SUCCEEDED, "")
	}
	sees := func(name string) string { t.Helper(); return strings.TrimSpace(appears(t, file(name, "has"))) }
	part := func(n int64) *wire.Resources { return &wire.Resources{GpuShare: n} }
	whole := &wire.Resources{Countable: map[string]int64{"gpu": 1}}

	half, other, one := hold("half", part(500)), hold("other", part(500)), hold("one", whole)
	q.assign("p1", half, other, one)
	device, share, _ := strings.Cut(sees("half"), " ")
	if share != "0.5" || !strings.HasPrefix(device, "GPU-") || sees("other") != sees("half") {
		t.Errorf("halves see %q and %q", sees("half"), sees("other"))
	}
	if alone := sees("one"); !strings.HasPrefix(alone, "GPU-") || alone == device {
		t.Errorf("a whole one is %q beside shares of %q", alone, device)
	}
	end("half", half)
	end("other", other)
	end("one", one)

	first, second, third := hold("first", part(600)), hold("second", part(600)), hold("third", part(500))
	q.assign("p1", first, second)
	if sees("first") == sees("second") {
		t.Errorf("two of 0.6 are both on %s", sees("first"))
	}
	none := shell("[ -z \"$CUDA_VISIBLE_DEVICES\" ] && [ -z \"${FAIRWAY_GPU_SHARE-}\" ]")
	q.assign("p1", none)
	expect(t, q.result(none.GetAttempt()), wire.Outcome_OUTCOME_SUCCEEDED, "")
	q.assign("p1", third)
	q.until("the third is accepted", func() bool {
		seen := q.pilot("p1")
		return !seen.news && seen.syncs[len(seen.syncs)-1].GetLastAnswer() == seen.number
	})
	if _, err := os.Stat(file("third", "has")); err == nil {
		t.Error("the third runs where there is no room for it")
	}
	end("second", second)
	if want, _, _ := strings.Cut(sees("second"), " "); !strings.HasPrefix(sees("third"), want) {
		t.Errorf("the third is on %s, and room became free on %s", sees("third"), want)
	}
	end("first", first)
	end("third", third)
}
