package screen

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"fairway/internal/wire"
)

func sampleReport() *wire.ProgressReport {
	return &wire.ProgressReport{
		Workflow: "lambda",
		Steps: []*wire.StepProgress{
			{Step: "index", Total: 1, TotalFinal: true, Done: 1},
			{Step: "split", Total: 2, TotalFinal: true, Done: 1, Running: 1},
			{Step: "align", Total: 8, Done: 2, Running: 1, Queued: 3, Ready: 1, Failed: 1},
			{Step: "merge", Total: 1, TotalFinal: true, Waiting: 1},
		},
		Summary:    &wire.Summary{WallSeconds: 83},
		PilotsBusy: 2,
	}
}

func TestFrame(t *testing.T) {
	for _, c := range []struct {
		width, height int
		style         style
		want          string
	}{
		{90, 24, style{unicode: true}, `
lambda                                                                      1:23  2 pilots
index  ████████████████████████████████████████    1/1
split  ████████████████████░░░░░░░░░░░░░░░░░░░░    1/2  1 running
align  ██████████▒▒▒▒▒░░░░░░░░░░░░░░░░░░░░░░░░░   2/8+  1 failed, 1 running, 4 queued
merge  ░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░    0/1  1 waiting
total  █████████████▎▒▒▒░░░░░░░░░░░░░░░░░░░░░░░  4/12+  1 failed, 2 running, 4 queued, 1 …`},
		{30, 24, style{}, `
lambda          1:23  2 pilots
index    1/1
split    1/2  1 running
align   2/8+  1 failed, 1 run~
merge    0/1  1 waiting
total  4/12+  1 failed, 2 run~`},
		{60, 6, style{}, `
lambda                                        1:23  2 pilots
split  #####.....    1/2  1 running
align  ##x.......   2/8+  1 failed, 1 running, 4 queued
2 more steps: 1 done, 1 waiting
total  ###x......  4/12+  1 failed, 2 running, 4 queued, 1 ~`},
	} {
		got := "\n" + strings.Join(frame(sampleReport(), c.width, c.height, c.style), "\n")
		if got != c.want {
			t.Errorf("%d columns, %d lines:%s\nwant:%s", c.width, c.height, got, c.want)
		}
	}
}

// While many files are stored or published no job begins or ends. The run says how far they
// are, in each form of its progress.
func TestManyFilesAreSeenToMove(t *testing.T) {
	report := sampleReport()
	report.OutputsStored, report.OutputsToStore, report.ToPublish = 2480, 20000, 512
	const want = "2480 of 20000 outputs stored, 512 files to publish"
	lines := frame(report, 90, 24, style{})
	if last := lines[len(lines)-1]; last != want {
		t.Errorf("the last line on a terminal is %q", last)
	}
	if line := plainText(report); !strings.Contains(line, "; "+want+";") {
		t.Errorf("a line of a log is %q", line)
	}
	report.OutputsToStore, report.ToPublish = 0, 7
	if line := plainText(report); strings.Contains(line, "publish") {
		t.Errorf("of a few files it says %q", line)
	}
}

func TestFrameFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		width := rapid.IntRange(1, 200).Draw(t, "width")
		height := rapid.IntRange(1, 60).Draw(t, "height")
		report := drawReport(t)
		lines := frame(report, width, height, style{unicode: rapid.Bool().Draw(t, "unicode")})
		if len(lines) > max(4, height-1) {
			t.Fatalf("%d lines on a terminal of %d", len(lines), height)
		}
		for _, line := range lines {
			if columns := utf8.RuneCountInString(line); columns > width {
				t.Fatalf("%d columns on a terminal of %d: %q", columns, width, line)
			}
		}
	})
}

func drawReport(t *rapid.T) *wire.ProgressReport {
	count := rapid.Custom(func(t *rapid.T) int64 { return rapid.Int64Range(0, 3000).Draw(t, "count") })
	report := &wire.ProgressReport{
		OutputsToStore: count.Draw(t, "outputs"), ToPublish: count.Draw(t, "publish"),
		Workflow: rapid.StringMatching(`[a-zä]{1,60}`).Draw(t, "workflow"),
		Summary:  &wire.Summary{WallSeconds: rapid.Float64Range(0, 1e6).Draw(t, "wall")},
	}
	for i := range rapid.IntRange(0, 100).Draw(t, "steps") {
		step := &wire.StepProgress{
			Step: fmt.Sprintf("%s%d", rapid.StringMatching(`[a-zé]{1,40}`).Draw(t, "step"), i), TotalFinal: rapid.Bool().Draw(t, "final"),
			Waiting: count.Draw(t, "waiting"), Ready: count.Draw(t, "ready"), Running: count.Draw(t, "running"),
			Queued: count.Draw(t, "queued"), Done: count.Draw(t, "done"),
			Failed: count.Draw(t, "failed"), Blocked: count.Draw(t, "blocked"), Cancelled: count.Draw(t, "cancelled"),
		}
		step.Total = step.Waiting + step.Ready + step.Running + step.Queued + step.Done + step.Failed + step.Blocked +
			step.Cancelled
		report.Steps = append(report.Steps, step)
	}
	return report
}

// What is said while bars are drawn stands above them: below, the next frame
// would cover it.
func TestSayingBesideBars(t *testing.T) {
	var out strings.Builder
	b := &bars{out: &out, size: func() (int, int, bool) { return 80, 24, true }}
	b.Show(&wire.ProgressReport{Workflow: "flow", Summary: &wire.Summary{}})
	out.Reset()
	b.Say("it ends")
	text := out.String()
	up, said, frame := strings.Index(text, "\x1b[2A"), strings.Index(text, "it ends"), strings.Index(text, "flow")
	if up < 0 || said < up || frame < said {
		t.Errorf("got %q", text)
	}
	b.Show(b.last)
	if strings.Count(out.String(), "it ends") != 1 {
		t.Errorf("it is said twice: %q", out.String())
	}
}

// A terminal breaks the lines of the last frame when it becomes narrower; a part
// of that frame would stay above the next.
func TestNarrowerTerminalLeavesNoStaleLines(t *testing.T) {
	var out strings.Builder
	width := 80
	b := &bars{out: &out, size: func() (int, int, bool) { return width, 24, true }}
	report := &wire.ProgressReport{Workflow: strings.Repeat("w", 44), Summary: &wire.Summary{WallSeconds: 1}}
	b.Show(report) // two lines, the title as wide as the terminal
	width = 30
	out.Reset()
	b.Show(report)
	if !strings.Contains(out.String(), "\x1b[5A") {
		t.Errorf("the title of 80 columns takes up 3 rows of 30, the total with its bar 2: %q", out.String())
	}
}

// What went wrong is told whole, also where that takes more than one row.
func TestProblemsAreNotCutAtTheEdge(t *testing.T) {
	var out strings.Builder
	b := &bars{out: &out, size: func() (int, int, bool) { return 40, 24, true }}
	problem := "job align/p3 failed: exit code 1: " + strings.Repeat("long ", 30) + "end"
	b.Show(&wire.ProgressReport{Workflow: "flow", Summary: &wire.Summary{}, Problems: []string{problem}})
	if !strings.Contains(out.String(), problem) {
		t.Errorf("got %q", out.String())
	}
}
