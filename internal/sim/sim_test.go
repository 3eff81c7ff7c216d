package sim

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
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

func TestSameSeedSameBytes(t *testing.T) {
	text := small + "repetitions: 3\naxes: {cache: {own: {cache.share: pilot}, shared: {cache.share: host}}}\ncache: {size: 5MB}\n"
	before := runtime.GOMAXPROCS(1)
	alone := csvOf(t, mustParse(t, text))
	runtime.GOMAXPROCS(4)
	beside := csvOf(t, mustParse(t, text))
	runtime.GOMAXPROCS(before)
	if alone != beside {
		t.Errorf("on one processor:\n%s\non four:\n%s", alone, beside)
	}
	other := mustParse(t, text)
	other.Reseed(testSeed(t) | 2)
	if csvOf(t, other) == alone {
		t.Error("another seed gave the same run")
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

func TestResultsAreWritten(t *testing.T) {
	plan := mustParse(t, small+"timeline: true\naxes: {cache: {none: {cache.share: none}, own: {cache.size: 1GB}}}\n")
	res, err := Sweep(context.Background(), plan, nil)
	if err != nil {
		t.Fatal(err)
	}
	chapter := Chapter{Results: res}
	if chapter.Figures, err = res.Figures(); err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	if err := Write(folder, []Chapter{chapter}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"runs.csv", "results.json", "report.html", "turnaround_s.png", "running_jobs.png"} {
		if info, err := os.Stat(filepath.Join(folder, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}
