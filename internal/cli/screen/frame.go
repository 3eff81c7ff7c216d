package screen

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"fairway/internal/quantity"
	"fairway/internal/wire"
)

// frame draws the state of a run as lines for a terminal: a title, a bar for
// each step, and a total. Where there are more steps than lines, the steps at
// which something happens are shown, in the order of the workflow, and one
// line counts the others. No line is wider than width, and there are fewer
// lines than height.
func frame(report *wire.ProgressReport, width, height int, s style) []string {
	layout := layoutFor(report.Steps, width)
	title := fit(report.Workflow, max(narrowest, width-30), s)
	lines := []string{titleLine(title, report, width, s)}
	files := filesText(report)
	room := max(1, height-4) // the title, the total, the line of the others, the cursor
	if height <= 5 {
		files = ""
	}
	if files != "" {
		room = max(1, room-1)
	}
	shown, others := choose(report.Steps, room)
	for _, step := range shown {
		lines = append(lines, layout.line(step, s))
	}
	if others != nil {
		lines = append(lines, fit(others.Step+": "+StatesText(others, true), width, s))
	}
	if len(report.Steps) != 1 {
		lines = append(lines, layout.line(TotalOf(report.Steps), s))
	}
	if files != "" {
		lines = append(lines, fit(files, width, s))
	}
	return lines
}

// manyToPublish is how many files are published in no time.
const manyToPublish = 100

// filesText says how far files are while many are stored or published: no job begins or
// ends then, and the run would look hung.
func filesText(report *wire.ProgressReport) string {
	var parts []string
	if report.OutputsToStore > 0 {
		parts = append(parts, fmt.Sprintf("%d of %d outputs stored", report.OutputsStored, report.OutputsToStore))
	}
	if report.ToPublish > manyToPublish {
		parts = append(parts, fmt.Sprintf("%d files to publish", report.ToPublish))
	}
	return strings.Join(parts, ", ")
}

func titleLine(title string, report *wire.ProgressReport, width int, s style) string {
	pilots := quantity.Count(report.PilotsBusy+report.PilotsIdle, "pilot")
	if report.PilotsSilent > 0 {
		pilots += fmt.Sprintf(", %d silent", report.PilotsSilent)
	}
	if report.PilotsInactive > 0 {
		pilots += fmt.Sprintf(", %d starting", report.PilotsInactive)
	}
	right := quantity.Clock(report.Summary.GetWallSeconds()) + leftText(report.SecondsLeft) + "  " + pilots
	gap := width - utf8.RuneCountInString(title) - utf8.RuneCountInString(right)
	if gap < 2 {
		return s.Paint(Bold, fit(title+"  "+right, width, s))
	}
	return s.Paint(Bold, title) + strings.Repeat(" ", gap) + right
}

func choose(steps []*wire.StepProgress, room int) (shown []*wire.StepProgress, others *wire.StepProgress) {
	if len(steps) <= room {
		return steps, nil
	}
	order := make([]int, len(steps))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return interest(steps[a]) - interest(steps[b]) })
	order, rest := order[:room], order[room:]
	slices.Sort(order)
	for _, i := range order {
		shown = append(shown, steps[i])
	}
	hidden := make([]*wire.StepProgress, 0, len(rest))
	for _, i := range rest {
		hidden = append(hidden, steps[i])
	}
	others = TotalOf(hidden)
	others.Step = fmt.Sprintf("%d more steps", len(hidden))
	return shown, others
}

func interest(step *wire.StepProgress) int {
	switch {
	case step.Running+step.Queued > 0:
		return 0
	case step.Failed > 0:
		return 1
	case step.Ready > 0:
		return 2
	case step.Done > 0 && step.Done < step.Total:
		return 3
	case step.Done < step.Total || !step.TotalFinal:
		return 4
	default:
		return 5
	}
}

// TotalOf adds up the jobs of all steps.
func TotalOf(steps []*wire.StepProgress) *wire.StepProgress {
	total := &wire.StepProgress{Step: "total", TotalFinal: true}
	for _, step := range steps {
		total.Total += step.Total
		total.TotalFinal = total.TotalFinal && step.TotalFinal
		total.Waiting += step.Waiting
		total.Ready += step.Ready
		total.Running += step.Running
		total.Queued += step.Queued
		total.Done += step.Done
		total.Reused += step.Reused
		total.Failed += step.Failed
		total.Blocked += step.Blocked
		total.Cancelled += step.Cancelled
	}
	return total
}

// layout says how many columns each part of a step's line gets.
type layout struct{ name, bar, count, width int }

const (
	widestName  = 24
	widestBar   = 40
	narrowest   = 8  // a shorter bar shows nothing
	statesWidth = 34 // "1 failed, 12 running, 120 waiting"
)

func layoutFor(steps []*wire.StepProgress, width int) layout {
	l := layout{name: len("total"), width: width}
	for _, step := range steps {
		l.name = max(l.name, utf8.RuneCountInString(step.Step))
	}
	l.name = min(l.name, widestName, max(4, width/3))
	l.count = utf8.RuneCountInString(countOf(TotalOf(steps)))
	if bar := width - l.name - l.count - statesWidth - 6; bar >= narrowest {
		l.bar = min(bar, widestBar)
	}
	return l
}

func (l layout) line(step *wire.StepProgress, s style) string {
	name := pad(fit(step.Step, l.name, s), l.name) + "  "
	count := countOf(step)
	count = strings.Repeat(" ", max(0, l.count-len(count))) + count + "  "
	states := StatesText(step, false)
	if l.bar == 0 {
		return s.Paint(colourOf(step), fit(strings.TrimRight(name+count+states, " "), l.width, s))
	}
	room := l.width - len(count) - utf8.RuneCountInString(name) - l.bar - 2
	return strings.TrimRight(name+barOf(step, l.bar, s)+"  "+count+s.Paint(colourOf(step), fit(states, room, s)), " ")
}

func countOf(step *wire.StepProgress) string {
	open := ""
	if !step.TotalFinal {
		open = "+"
	}
	return fmt.Sprintf("%d/%d%s", step.Done, step.Total, open)
}

// StatesText says how many jobs of a step are in which state.
func StatesText(step *wire.StepProgress, withDone bool) string {
	var parts []string
	add := func(n int64, what string) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, what))
		}
	}
	if withDone {
		add(step.Done, "done")
	}
	add(step.Failed, "failed")
	add(step.Running, "running")
	add(step.Queued+step.Ready, "queued") // could run, and wait for their turn
	add(step.Blocked, "blocked")
	add(step.Cancelled, "cancelled")
	add(step.Waiting, "waiting")
	if len(parts) == 0 && step.TotalFinal && step.Reused > 0 {
		return fmt.Sprintf("%d from before", step.Reused)
	}
	return strings.Join(parts, ", ")
}

func colourOf(step *wire.StepProgress) string {
	switch {
	case step.Failed > 0:
		return Red
	case step.Blocked+step.Cancelled > 0:
		return Yellow
	case step.Running+step.Queued > 0:
		return ""
	default:
		return Dim
	}
}

var eighths = []string{"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"}

func barOf(step *wire.StepProgress, columns int, s style) string {
	if step.Total == 0 {
		return emptyBar(columns, s)
	}
	share := func(n int64) float64 { return float64(n) / float64(step.Total) * float64(columns) }
	done := share(step.Done)
	failed := int(share(step.Failed + step.Blocked + step.Cancelled))
	if failed == 0 && step.Failed > 0 {
		failed = 1
	}
	full, block, lost := int(done), "#", "x"
	part := ""
	if s.unicode {
		block, lost = "█", "▒"
		part = eighths[int((done-float64(full))*8)]
	}
	full = min(full, columns-failed)
	rest := columns - full - failed - utf8.RuneCountInString(part)
	if rest < 0 {
		part, rest = "", 0
	}
	return s.Paint(Green, strings.Repeat(block, full)+part) + s.Paint(Red, strings.Repeat(lost, failed)) +
		emptyBar(rest, s)
}

func emptyBar(columns int, s style) string {
	if s.unicode {
		return s.Paint(Dim, strings.Repeat("░", columns))
	}
	return strings.Repeat(".", columns)
}
