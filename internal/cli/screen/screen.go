package screen

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"regexp"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"

	"fairway/internal/legible"
)

// screen is a terminal to which text of others may be printed: names of files,
// what jobs print, messages of pilots. Control characters in it appear as text
// ("\x1b"), so nothing that a file is called or a job prints can move the
// cursor, clear the screen, retitle the window or answer for the person. Line
// breaks, tabs and colours pass; names and messages are printed through uncoloured
// or oneLine, so that only what a command printed brings colours of its own.
//
// All that commands print goes through one, where it goes to a terminal. Files
// and pipes get what was printed byte by byte.
type screen struct{ file *os.File }

// New returns w, or a screen for it if w is a terminal.
func New(w io.Writer) io.Writer {
	if file, ok := w.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		return screen{file}
	}
	return w
}

func (s screen) Write(text []byte) (int, error) {
	if _, err := io.WriteString(s.file, shown(string(text))); err != nil {
		return 0, err
	}
	return len(text), nil
}

// Raw is the terminal behind w for what is drawn rather than printed, or w
// itself.
func Raw(w io.Writer) io.Writer {
	if p, ok := w.(*Printed); ok {
		return Raw(p.Out)
	}
	if s, ok := w.(screen); ok {
		return s.file
	}
	return w
}

// Printed is what a command prints. It keeps the first error, for which commands do
// not look, so that none ends as if all had been said.
type Printed struct {
	Out io.Writer
	Err error
}

// Write prints text.
func (p *Printed) Write(text []byte) (int, error) {
	n, err := p.Out.Write(text)
	if err != nil && p.Err == nil {
		p.Err = err
		if of, ok := errors.AsType[*fs.PathError](err); ok {
			p.Err = of.Err
		}
	}
	return n, err
}

// colours are the escape sequences that pass: those that change only how text
// looks, but for the one that hides it (8).
var colours = regexp.MustCompile(`^\x1b\[(?:[0-79]|[1-9][0-9]{1,2})?(?:;(?:[0-79]|[1-9][0-9]{1,2}))*m`)

// shown replaces what a terminal would obey by text that tells what it is.
func shown(text string) string {
	at := strings.IndexFunc(text, legible.Obeyed)
	if at < 0 {
		return text
	}
	var out strings.Builder
	for rest := text; rest != ""; {
		if colour := colours.FindString(rest); colour != "" {
			out.WriteString(colour)
			rest = rest[len(colour):]
			continue
		}
		r, size := utf8.DecodeRuneInString(rest)
		switch {
		case strings.HasPrefix(rest, "\r\n"):
			// A line break of another system.
		case r == '\r': // what it would write over stays
			out.WriteByte('\n')
		case r == utf8.RuneError && size > 1: // the character itself
			out.WriteString(rest[:size])
		case legible.Obeyed(r):
			legible.Escape(&out, rest[:size])
		default:
			out.WriteString(rest[:size])
		}
		rest = rest[size:]
	}
	return out.String()
}

// OneLine is text of others for the cell of a table or a line that is drawn: it
// stays one line, without colours of its own.
func OneLine(text string) string {
	if legible.IsLine(text) {
		return text
	}
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' || r == '\t' }), " ")
	return shown(Uncoloured(text))
}

// Uncoloured is text of others without colours of its own.
func Uncoloured(text string) string { return strings.ReplaceAll(text, "\x1b[", `\x1b[`) }

// narrowestTerminal is how many columns a terminal must have for text to be cut at its edge: of a narrower
// one too little could be read.
const narrowestTerminal = 20

// TerminalSize returns the size of the terminal behind w; ok is false where w
// is none, or too narrow to be drawn on.
func TerminalSize(w io.Writer) (width, height int, ok bool) {
	file, isFile := Raw(w).(*os.File)
	if !isFile || !term.IsTerminal(int(file.Fd())) || os.Getenv("TERM") == "dumb" {
		return 0, 0, false
	}
	width, height, err := term.GetSize(int(file.Fd()))
	if err != nil || width <= 0 || height <= 0 {
		return 80, 24, true
	}
	return width, height, width >= narrowestTerminal
}
