package screen

import (
	"fmt"
	"io"
	"math"
	"strings"
	"unicode/utf8"
)

// leftText tells of the time that is left, in no more digits than an estimate
// deserves; nothing where it is not known.
func leftText(seconds float64) string {
	switch {
	case seconds < 1:
		return ""
	case seconds < 60:
		return fmt.Sprintf(", about %d s left", max(5, int(seconds/5)*5))
	case seconds < 10*60:
		return fmt.Sprintf(", about %d min left", int(math.Round(seconds/60)))
	case seconds < 100*60:
		return fmt.Sprintf(", about %d min left", int(math.Round(seconds/300))*5)
	default:
		return fmt.Sprintf(", about %d h left", int(math.Round(seconds/3600)))
	}
}

// fit makes one line of text and cuts it to a number of columns, with an
// ellipsis in the last.
func fit(text string, columns int, s style) string {
	text = OneLine(text)
	if utf8.RuneCountInString(text) <= columns {
		return text
	}
	if columns <= 0 {
		return ""
	}
	ellipsis := "~"
	if s.unicode {
		ellipsis = "…"
	}
	return string([]rune(text)[:columns-1]) + ellipsis
}

func pad(text string, columns int) string {
	return text + strings.Repeat(" ", max(0, columns-utf8.RuneCountInString(text)))
}

// Cell is a part of a table: its text, and the colour of that.
type Cell [2]string

// Text is what a cell says.
func (c Cell) Text() string { return c[0] }

func (c Cell) colour() string { return c[1] }

// Head is the first row of a table.
func Head(names ...string) (row []Cell) {
	for _, name := range names {
		row = append(row, Cell{name, Dim})
	}
	return row
}

// PrintTable aligns columns. On a terminal a line is cut at its edge: a line
// that breaks is harder to read than one that ends early.
func PrintTable(w io.Writer, rows [][]Cell) {
	s := StyleOf(w)
	width, _, terminal := TerminalSize(w)
	if !terminal {
		width = math.MaxInt32
	}
	var columns []int
	for _, row := range rows {
		for i := range row {
			if i == len(columns) {
				columns = append(columns, 0)
			}
			if terminal {
				row[i][0] = OneLine(row[i][0])
			}
			columns[i] = max(columns[i], utf8.RuneCountInString(row[i].Text()))
		}
	}
	for _, row := range rows {
		printRow(w, row, columns, width, s)
	}
}

func printRow(w io.Writer, row []Cell, columns []int, width int, s style) {
	var line strings.Builder
	left := width
	for i, c := range row {
		text := c.Text()
		if i < len(row)-1 {
			text = pad(text, columns[i]+2)
		}
		text = fit(text, left, s)
		left -= utf8.RuneCountInString(text)
		line.WriteString(s.Paint(c.colour(), text))
	}
	fmt.Fprintln(w, strings.TrimRight(line.String(), " "))
}
