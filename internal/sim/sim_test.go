package sim

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"fairway/test/seed"
)

func mustParse(t testing.TB, text string) *Plan {
	t.Helper()
	p, err := Parse("test.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func csvOf(t *testing.T, p *Plan) string {
	t.Helper()
	res, err := Sweep(context.Background(), p, nil)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := res.WriteCSV(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// sweeps are experiments of every kind of source of jobs, with everything that
// draws random numbers.
func sweeps(t *testing.T) map[string]func() *Plan {
	faulty := "faults: {lost: 0.02, repeated: 0.02, pilot_dies: {mean: 10m, sd: 5m}, pilot_deaths: 20, server_dies: {mean: 5m, sd: 1m}, server_away: 1m, crashes: 3, write_fails: 0.01}\n"
	return map[string]func() *Plan{
		"pattern": func() *Plan {
			text := strings.Replace(small, "run: 10s", "run: {mean: 10s, sd: 1s}", 1)
			return mustParse(t, text+"repetitions: 3\ncache: {size: 5MB, share: {sweep: [pilot, host]}}\n")
		},
		"faults": func() *Plan {
			return mustParse(t, small+"repetitions: 3\nsubmission: monitor\n"+faulty+"cache: {size: 5MB, share: {sweep: [pilot, global]}}\n")
		},
		"workflow file": func() *Plan {
			p, err := fileExperiment(t, everyRuleExperiment+"repetitions: 2\n"+faulty+"submission: {sweep: [running, monitor]}\n")
			if err != nil {
				t.Fatal(err)
			}
			return p
		},
	}
}

var seedColumn = regexp.MustCompile(`(?m)^([^,]*,\d+,)\d+,`)

func withoutSeeds(table string) string { return seedColumn.ReplaceAllString(table, "$1") }

// The bytes that come out depend on experiment and seed alone, not on the
// number of processors, and so not on which runs are side by side.
func TestSameSeedSameBytes(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for name, plan := range sweeps(t) {
		runtime.GOMAXPROCS(1)
		alone := csvOf(t, plan())
		for _, processors := range []int{2, 4} {
			runtime.GOMAXPROCS(processors)
			if beside := csvOf(t, plan()); beside != alone {
				t.Errorf("%s: on one processor:\n%s\non %d:\n%s", name, alone, processors, beside)
			}
		}
		other := plan()
		if err := other.Reseed(seed.Of(t) | 2); err != nil {
			t.Fatal(err)
		}
		if withoutSeeds(csvOf(t, other)) == withoutSeeds(alone) {
			t.Errorf("%s: another seed gave the same run", name)
		}
	}
}

// All files of a folder are the same, too.
func TestSameSeedSameFolder(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	text := small + "repetitions: 2\ntimeline: true\ncache: {size: 5MB, share: {sweep: [pilot, host]}}\n"
	folders := []string{t.TempDir(), t.TempDir()}
	for i, folder := range folders {
		runtime.GOMAXPROCS(1 + 3*i)
		writeResults(t, mustParse(t, text), folder)
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

// Every figure of the paper leads to its claims, in their order, and a claim
// that does not hold says why.
func TestPaperChecksItsClaims(t *testing.T) {
	chapters, err := Paper(context.Background(), 1, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, c := range chapters {
		for _, claim := range c.Claims {
			ids = append(ids, claim.ID)
			if !claim.Held && claim.Reason == "" || claim.Value == "" || claim.Expected == "" {
				t.Errorf("%+v", claim)
			}
		}
	}
	want := "F6 F7a F7b F8a F8b F8c F9a F9b F10 F11 F12a F12b F12c F12d F12e"
	if got := strings.Join(ids, " "); got != want {
		t.Errorf("claims %s, not %s", got, want)
	}
}

func writeResults(t *testing.T, plan *Plan, folder string) {
	t.Helper()
	res, err := Sweep(context.Background(), plan, nil)
	if err != nil {
		t.Fatal(err)
	}
	chapter := Chapter{Results: res}
	if chapter.Figures, err = res.Figures(); err != nil {
		t.Fatal(err)
	}
	if err := Write(folder, []Chapter{chapter}); err != nil {
		t.Fatal(err)
	}
}

// A run that goes wrong says what command repeats it; the plans of sim paper
// are in no file of the user.
func TestFailedRunOfThePaperCanBeRepeated(t *testing.T) {
	plans, err := PaperPlans()
	if err != nil {
		t.Fatal(err)
	}
	plan := plans[0]
	plan.Points = plan.Points[:1]
	plan.Repeat(1)
	plan.Points[0].Experiment.Limit = 1
	plan.Points[0].Experiment.Seed = 4
	if _, err = Sweep(context.Background(), plan, nil); err == nil || !strings.Contains(err.Error(), "(fairway sim --seed 4 paper)") {
		t.Errorf("got %v", err)
	}
}

func TestResultsAreWritten(t *testing.T) {
	folder := t.TempDir()
	writeResults(t, mustParse(t, small+"timeline: true\naxes: {cache: {none: {cache.share: none}, own: {cache.size: 1GB}}}\n"), folder)
	for _, name := range []string{"runs.csv", "results.json", "report.html", "turnaround_s.png", "running_jobs.png"} {
		if info, err := os.Stat(filepath.Join(folder, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// An experiment that varies nothing still has something to look at.
func TestExperimentWithoutAxesHasAFigure(t *testing.T) {
	folder := t.TempDir()
	writeResults(t, mustParse(t, small), folder)
	found, err := filepath.Glob(filepath.Join(folder, "*.png"))
	if err != nil || len(found) != 1 {
		t.Errorf("figures %v, %v", found, err)
	}
}
