package cli

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

// progress shows reports of a run as they come. Each is the whole state, so
// any may be left out.
type progress interface {
	show(report *wire.ProgressReport)
	say(text string) // a line that stays
	end()            // what stands on the screen stays, and the cursor is behind it
}

// newProgress chooses bars for a terminal, lines for a log, nothing for JSON.
func newProgress(out io.Writer, json bool) progress {
	switch _, _, terminal := terminalSize(out); {
	case json:
		return silent{out: out}
	case terminal:
		return &bars{out: raw(out), style: styleOf(out), size: func() (int, int, bool) { return terminalSize(out) }}
	default:
		return &lines{out: out, now: time.Now}
	}
}

type silent struct{ out io.Writer }

func (silent) show(*wire.ProgressReport) {}
func (s silent) say(text string)         { fmt.Fprintln(s.out, text) }
func (silent) end()                      {}

// bars redraws a block of lines in place.
type bars struct {
	out   io.Writer
	style style
	size  func() (width, height int, ok bool)
	drawn []int // columns of the lines on the screen that the next frame replaces
	told  told
	last  *wire.ProgressReport
	said  []cell // to be printed above the next frame
}

const (
	hideCursor  = "\x1b[?25l"
	showCursor  = "\x1b[?25h"
	clearToEnd  = "\x1b[J"
	clearToEdge = "\x1b[K"
)

func (b *bars) show(report *wire.ProgressReport) {
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
	for _, r := range append(b.said, b.told.news(report)...) {
		text.WriteString(b.style.paint(r.colour, oneLine(r.text)) + clearToEdge + "\n") // whole, on as many rows as it takes
	}
	frame := frame(report, width, height, b.style)
	for _, line := range frame {
		text.WriteString(line + clearToEdge + "\n")
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

// say prints a line above the frame; below it, the next frame would cover it.
func (b *bars) say(text string) {
	b.said = append(b.said, cell{text, yellow})
	if b.last != nil {
		b.show(b.last)
	}
}

func (b *bars) end() { _, _ = io.WriteString(b.out, showCursor) }

// told are the problems and notes of a run that were printed last.
type told struct{ problems, notes []string }

// news returns those that are new, as the cells of a table.
func (t *told) news(report *wire.ProgressReport) (news []cell) {
	for _, problem := range rest(report.Problems, &t.problems) {
		news = append(news, cell{problem, red})
	}
	for _, note := range rest(report.Notes, &t.notes) {
		news = append(news, cell{"note: " + note, yellow})
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
	told told
}

func (l *lines) show(report *wire.ProgressReport) {
	for _, r := range l.told.news(report) {
		fmt.Fprintln(l.out, uncoloured(r.text))
	}
	if total := totalOf(report.Steps); l.last.IsZero() && total.Done > 0 && total.Done == total.Total {
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

func (l *lines) say(text string) { fmt.Fprintln(l.out, text) }

func (l *lines) end() {}

// stepsInLine is how many steps a line of a log names.
const stepsInLine = 4

func plainText(report *wire.ProgressReport) string {
	total := totalOf(report.Steps)
	text := countOf(total) + " jobs"
	if states := statesText(total, false); states != "" {
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
