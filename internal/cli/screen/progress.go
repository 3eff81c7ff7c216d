package screen

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"fairway/internal/quantity"
	"fairway/internal/wire"
)

// Progress shows reports of a run as they come. Each is the whole state, so
// any may be left out.
type Progress interface {
	Show(report *wire.ProgressReport)
	Say(text string) // a line that stays
	End()            // what stands on the screen stays, and the cursor is behind it
}

// NewProgress chooses bars for a terminal, lines for a log, nothing for JSON.
func NewProgress(out io.Writer, json bool) Progress {
	switch _, _, terminal := TerminalSize(out); {
	case json:
		return silent{out: out}
	case terminal:
		return &bars{out: Raw(out), style: StyleOf(out), size: func() (int, int, bool) { return TerminalSize(out) }}
	default:
		return &lines{out: out, now: time.Now}
	}
}

type silent struct{ out io.Writer }

func (silent) Show(*wire.ProgressReport) {}
func (s silent) Say(text string)         { fmt.Fprintln(s.out, text) }
func (silent) End()                      {}

// bars redraws a block of lines in place.
type bars struct {
	out   io.Writer
	style style
	size  func() (width, height int, ok bool)
	drawn []int // columns of the lines on the screen that the next frame replaces
	told  Told
	last  *wire.ProgressReport
	said  []Cell // to be printed above the next frame
}

// What terminals obey.
const (
	hideCursor  = "\x1b[?25l"
	showCursor  = "\x1b[?25h"
	clearToEnd  = "\x1b[J"
	ClearToEdge = "\x1b[K"
)

func (b *bars) Show(report *wire.ProgressReport) {
	width, height, ok := b.size()
	b.last = report
	if !ok {
		return
	}
	var text strings.Builder
	text.WriteString(hideCursor)
	if up := b.rows(width); up > 0 {
		fmt.Fprintf(&text, "\x1b[%dA", up)
	}
	text.WriteString("\r")
	for _, r := range append(b.said, b.told.News(report)...) {
		text.WriteString(b.style.Paint(r.colour(), OneLine(r.Text())) + ClearToEdge + "\n") // on as many rows as it takes
	}
	frame := frame(report, width, height, b.style)
	for _, line := range frame {
		text.WriteString(line + ClearToEdge + "\n")
	}
	text.WriteString(clearToEnd)
	b.drawn, b.said = columnsOf(frame), nil
	// One write, so that the terminal never shows half a frame.
	_, _ = io.WriteString(b.out, text.String())
}

// rows is how many rows the last frame takes up on a terminal that may have
// become narrower since, and has broken the lines that no longer fit.
func (b *bars) rows(width int) (rows int) {
	for _, columns := range b.drawn {
		rows += 1 + max(0, columns-1)/max(1, width)
	}
	return rows
}

var painting = regexp.MustCompile("\x1b\\[[0-9;]*m")

func columnsOf(lines []string) []int {
	columns := make([]int, len(lines))
	for i, line := range lines {
		columns[i] = utf8.RuneCountInString(painting.ReplaceAllString(line, ""))
	}
	return columns
}

// Say prints a line above the frame; below it, the next frame would cover it.
func (b *bars) Say(text string) {
	b.said = append(b.said, Cell{text, Yellow})
	if b.last != nil {
		b.Show(b.last)
	}
}

func (b *bars) End() { _, _ = io.WriteString(b.out, showCursor) }

// Told are the problems and notes of a run that were printed last.
type Told struct{ problems, notes []string }

// ToldOf is what a report has told.
func ToldOf(report *wire.ProgressReport) *Told {
	return &Told{report.GetProblems(), report.GetNotes()}
}

// News returns those that are new, as the cells of a table.
func (t *Told) News(report *wire.ProgressReport) (news []Cell) {
	for _, problem := range rest(report.Problems, &t.problems) {
		news = append(news, Cell{problem, Red})
	}
	for _, note := range rest(report.Notes, &t.notes) {
		news = append(news, Cell{"note: " + note, Yellow})
	}
	return news
}

// rest are the lines that were not told. One that was taken back meanwhile may be told again.
func rest(lines []string, told *[]string) (fresh []string) {
	for _, line := range lines {
		if !slices.Contains(*told, line) {
			fresh = append(fresh, line)
		}
	}
	*told = lines
	return fresh
}

// plainInterval is the least time between two lines of progress in a log, and plainPause the
// longest.
const (
	plainInterval = 5 * time.Second
	plainPause    = time.Minute
)

// lines prints a line at a time, for logs: the first at once if there is something to do,
// then no more often than plainInterval, and only when something changed or plainPause is over.
// Problems and notes are printed when they come.
type lines struct {
	out  io.Writer
	now  func() time.Time
	last time.Time
	text string
	told Told
}

func (l *lines) Show(report *wire.ProgressReport) {
	for _, r := range l.told.News(report) {
		fmt.Fprintln(l.out, Uncoloured(r.Text()))
	}
	if total := TotalOf(report.Steps); l.last.IsZero() && total.Done > 0 && total.Done == total.Total {
		l.last = l.now() // it may find at once that there is nothing to do
	}
	text := plainText(report)
	since := l.now().Sub(l.last)
	if report.Ended || since < plainInterval || text == l.text && since < plainPause {
		return
	}
	l.text, l.last = text, l.now()
	fmt.Fprintf(l.out, "%s%s  %s\n", quantity.Clock(report.Summary.GetWallSeconds()), leftText(report.SecondsLeft), text)
}

func (l *lines) Say(text string) { fmt.Fprintln(l.out, text) }

func (l *lines) End() {}

// stepsInLine is how many steps a line of a log names.
const stepsInLine = 4

func plainText(report *wire.ProgressReport) string {
	total := TotalOf(report.Steps)
	text := countOf(total) + " jobs"
	if states := StatesText(total, false); states != "" {
		text += ", " + states
	}
	if unheard := report.RunningUnheard; unheard > 0 {
		text += fmt.Sprintf(" (%d of those that run are not heard of: their pilots are silent)", unheard)
	}
	if files := filesText(report); files != "" {
		text += "; " + files
	}
	busy := slices.DeleteFunc(slices.Clone(report.Steps),
		func(s *wire.StepProgress) bool { return s.Running+s.Queued == 0 })
	if len(busy) == 0 || len(report.Steps) == 1 {
		return text
	}
	var names []string
	for _, step := range busy[:min(len(busy), stepsInLine)] {
		names = append(names, step.Step+" "+countOf(step))
	}
	if more := len(busy) - stepsInLine; more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return text + "; " + strings.Join(names, ", ")
}
