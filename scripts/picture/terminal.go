package main

import (
	"bytes"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// cell is one character of a screen and how it looks: the parameter of the last
// sequence that set it ("1" bold, "2" dim, "32" green), empty for plain text.
type cell struct {
	character rune
	style     string
}

// terminal is a screen that obeys what Fairway's progress display sends: line
// breaks, colours, cursor up, and what clears the rest of a line or of the
// screen. It knows no other sequences and passes over them.
type terminal struct {
	width       int
	rows        [][]cell
	row, column int
	style       string
	pending     []byte // the start of a sequence or character whose rest is still to come

	// frames has the screen as it was whenever the command hid the cursor to
	// draw the next one: each is complete.
	frames [][][]cell
}

func newTerminal(width int) *terminal {
	return &terminal{width: width, rows: [][]cell{nil}}
}

var sequence = regexp.MustCompile(`^\x1b\[([0-9;?]*)([A-Za-z])`)

// Write obeys text. A sequence may be cut at the end of one call and go on in
// the next.
func (t *terminal) Write(text []byte) (int, error) {
	rest := append(t.pending, text...)
	for len(rest) > 0 {
		if rest[0] == 0x1b {
			match := sequence.FindSubmatch(rest)
			if match == nil {
				if !bytes.ContainsFunc(rest[1:], isLetter) {
					break
				}
				rest = rest[1:]
				continue
			}
			t.obey(string(match[1]), match[2][0])
			rest = rest[len(match[0]):]
			continue
		}
		if !utf8.FullRune(rest) {
			break
		}
		character, size := utf8.DecodeRune(rest)
		t.print(character)
		rest = rest[size:]
	}
	t.pending = bytes.Clone(rest)
	return len(text), nil
}

func isLetter(r rune) bool { return r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' }

func (t *terminal) print(character rune) {
	switch {
	case character == '\r':
		t.column = 0
	case character == '\n':
		t.down()
	case character < ' ':
		// Bells and the like do not show.
	default:
		if t.column == t.width {
			t.down()
			t.column = 0
		}
		for len(t.rows[t.row]) <= t.column {
			t.rows[t.row] = append(t.rows[t.row], cell{character: ' '})
		}
		t.rows[t.row][t.column] = cell{character, t.style}
		t.column++
	}
}

func (t *terminal) down() {
	if t.row++; t.row == len(t.rows) {
		t.rows = append(t.rows, nil)
	}
}

func (t *terminal) obey(parameter string, letter byte) {
	switch letter {
	case 'm':
		t.style = strings.TrimPrefix(parameter, "0")
	case 'A':
		count, err := strconv.Atoi(parameter)
		if err != nil {
			count = 1
		}
		t.row = max(0, t.row-count)
	case 'K':
		t.rows[t.row] = t.rows[t.row][:min(t.column, len(t.rows[t.row]))]
	case 'J':
		t.rows = t.rows[:t.row+1]
		t.rows[t.row] = t.rows[t.row][:min(t.column, len(t.rows[t.row]))]
	case 'l':
		if parameter == "?25" {
			t.frames = append(t.frames, t.lines())
		}
	}
}

// lines is what the screen shows, without empty lines at its end.
func (t *terminal) lines() [][]cell {
	var lines [][]cell
	for _, row := range t.rows {
		lines = append(lines, append([]cell(nil), row...))
	}
	for len(lines) > 0 && len(lines[len(lines)-1]) == 0 {
		lines = lines[:len(lines)-1]
	}
	return lines
}
