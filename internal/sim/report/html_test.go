package report

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"fairway/internal/sim"
	"fairway/internal/sim/experiment"
)

// small is an experiment with something to draw.
const small = `experiment: small
workflow: {pattern: W1, file_size: 1MB, run: 10s}
sites:
  - {name: here, nodes: 2, slots: 2, started: 4}
storage:
  - {name: se}
`

// All files of a folder are the same, too.
func TestSameSeedSameFolder(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	text := small + "repetitions: 2\ntimeline: true\ncache: {size: 5MB, share: {sweep: [pilot, host]}}\n"
	folders := []string{t.TempDir(), t.TempDir()}
	for i, folder := range folders {
		runtime.GOMAXPROCS(1 + 3*i)
		writeResults(t, parsed(t, text), folder)
	}
	names, err := filepath.Glob(filepath.Join(folders[0], "*"))
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	for _, name := range names {
		one, err := os.ReadFile(name)
		other, err2 := os.ReadFile(filepath.Join(folders[1], filepath.Base(name)))
		if err != nil || err2 != nil || !bytes.Equal(one, other) {
			t.Errorf("%s differs: %v, %v", filepath.Base(name), err, err2)
		}
	}
}

func writeResults(t *testing.T, plan *experiment.Plan, folder string) {
	t.Helper()
	res, err := sim.Sweep(context.Background(), plan, nil)
	if err != nil {
		t.Fatal(err)
	}
	chapter := Chapter{Results: res}
	if chapter.Figures, err = Figures(res); err != nil {
		t.Fatal(err)
	}
	if err := Write(folder, []Chapter{chapter}); err != nil {
		t.Fatal(err)
	}
}

func TestResultsAreWritten(t *testing.T) {
	folder := t.TempDir()
	writeResults(t,
		parsed(t, small+"timeline: true\naxes: {cache: {none: {cache.share: none}, own: {cache.size: 1GB}}}\n"), folder)
	for _, name := range []string{"runs.csv", "results.json", "report.html", "turnaround_s.png", "running_jobs.png"} {
		if info, err := os.Stat(filepath.Join(folder, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// An experiment that varies nothing still has something to look at.
func TestExperimentWithoutAxesHasAFigure(t *testing.T) {
	folder := t.TempDir()
	writeResults(t, parsed(t, small), folder)
	found, err := filepath.Glob(filepath.Join(folder, "*.png"))
	if err != nil || len(found) != 1 {
		t.Errorf("figures %v, %v", found, err)
	}
}

func parsed(t *testing.T, text string) *experiment.Plan {
	t.Helper()
	p, err := experiment.Parse("test.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}
