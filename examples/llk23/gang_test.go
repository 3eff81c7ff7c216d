//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"fairway/examples/llk23/sweep"
	"fairway/lib/orwl"
	"fairway/lib/orwl/orwltest"
	"fairway/lib/seed"
	"fairway/lib/subprocess"
)

// childVariable makes this test binary the program itself.
const childVariable = "LLK23_TEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) != "" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// gangRun is a gang of processes that are killed.
type gangRun struct {
	t          *testing.T
	rng        *rand.Rand
	tasks      int
	n          int
	iterations int
	folder     string
	folders    []string
}

func newGangRun(t *testing.T, rng *rand.Rand) *gangRun {
	r := &gangRun{t: t, rng: rng, tasks: 2 + rng.IntN(3), n: 60 + rng.IntN(60), folder: t.TempDir()}
	r.iterations = 32*(10+rng.IntN(30)) + rng.IntN(32)
	for k := range r.tasks {
		r.folders = append(r.folders, filepath.Join(r.folder, fmt.Sprint("state", k)))
	}
	return r
}

func (r *gangRun) result() string { return filepath.Join(r.folder, "matrix") }

// start starts all tasks of an attempt, as pilots do.
func (r *gangRun) start() (all []*exec.Cmd) {
	paths, err := orwltest.Gang{Tasks: r.tasks, Folders: r.folders}.Write(r.t.TempDir())
	if err != nil {
		r.t.Fatal(err)
	}
	for _, path := range paths {
		cmd := subprocess.Self("-n", fmt.Sprint(r.n), "-rows", "5", "-columns", "2", "-iterations", fmt.Sprint(r.iterations),
			"-every", "20ms", "-result", r.result(), "-check=false")
		cmd.Env = append(os.Environ(), childVariable+"=1", orwl.GangVariable+"="+path)
		if err := cmd.Start(); err != nil {
			r.t.Fatal(err)
		}
		all = append(all, cmd)
	}
	return all
}

// patience is how long the others may take to notice that a task is lost. One that was killed before
// it reached them they cannot miss: as the TaskQueue does, the test ends them then.
const patience = time.Second

// attempt runs a gang and kills one of its tasks after a while. It reports whether all came to their
// end before.
func (r *gangRun) attempt(kill bool) bool {
	all := r.start()
	if kill {
		victim := all[r.rng.IntN(len(all))]
		delay := time.Duration(r.rng.IntN(400)) * time.Millisecond
		defer time.AfterFunc(delay, func() { _ = victim.Process.Kill() }).Stop()
		defer time.AfterFunc(delay+patience, func() {
			for _, cmd := range all {
				_ = cmd.Process.Kill()
			}
		}).Stop()
	}
	done := true
	for _, cmd := range all {
		done = cmd.Wait() == nil && done
	}
	return done
}

// whole is the iteration of the last whole checkpoint, or 0.
func (r *gangRun) whole() int {
	var w struct{ Iteration int }
	text, err := os.ReadFile(filepath.Join(r.folders[0], "whole.json"))
	if err != nil {
		return 0
	}
	if err := json.Unmarshal(text, &w); err != nil {
		r.t.Fatal(err)
	}
	return w.Iteration
}

// kills runs the gang to its end, with as many kills on the way as it takes and a number at most,
// and compares the result. It returns how many there were.
func (r *gangRun) kills(most int) (kills int) {
	for before := 0; !r.attempt(kills < most); kills++ {
		whole := r.whole()
		if whole < before {
			r.t.Fatalf("the last checkpoint was after iteration %d, and is after %d", before, whole)
		}
		before = whole
	}
	l, err := orwl.NewFromFile("result", r.result())
	if err != nil {
		r.t.Fatal(err)
	}
	var h orwl.Handle
	if err := h.ReadRequest(l); err != nil {
		r.t.Fatal(err)
	}
	err = orwl.DoReading(r.t.Context(), &h, func(got []float64) error {
		for i, want := range sweep.Sequential(r.n, r.iterations) {
			if math.Float64bits(got[i]) != math.Float64bits(want) {
				return fmt.Errorf("element %d has other bits after %d kills", i, kills)
			}
		}
		return nil
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return kills
}

// Tasks of gangs are killed at random moments, and all begin again from the last whole checkpoint:
// the result has the bits of one core.
func TestKilledGangs(t *testing.T) {
	rng := seed.Source(t)
	wanted := 4
	if os.Getenv("FAIRWAY_SOAK") != "" {
		wanted = 200
	}
	for kills := 0; kills < wanted; {
		kills += newGangRun(t, rng).kills(min(12, wanted-kills))
		t.Logf("%d kills", kills)
	}
}
