package simulate

import (
	"fmt"
	"io"
	"strings"
	"time"

	"fairway/internal/cli/screen"
)

// counted returns what shows how many of how many are done: a progress bar on a
// terminal, elsewhere a line now and then.
func (c *commands) counted(what string) func(done, total int) {
	switch _, _, terminal := screen.TerminalSize(c.Err); {
	case c.JSON:
		return nil
	case terminal:
		return (&countBar{out: screen.Raw(c.Err), what: what, width: func() int {
			width, _, _ := screen.TerminalSize(c.Err)
			return width
		}}).show
	}
	return (&countLines{out: c.Err, what: what, now: time.Now}).show
}

// countBar draws a bar. Its line is always ended, so that whatever else is
// written, an error for one, begins on a line of its own.
type countBar struct {
	out   io.Writer
	what  string
	width func() int
	drawn bool
}

// longestBar is how many characters a bar takes at most.
const longestBar = 60

func (b *countBar) show(done, total int) {
	label := fmt.Sprintf(" %*d of %d %s", len(fmt.Sprint(total)), done, total, b.what)
	bar := max(min(b.width()-len(label)-1, longestBar), 0)
	filled := bar * done / max(total, 1)
	up := ""
	if b.drawn {
		up = "\x1b[1A\r"
	}
	b.drawn = true
	fmt.Fprintf(b.out, "%s%s%s%s%s\n", up, strings.Repeat("#", filled), strings.Repeat(".", bar-filled),
		label, screen.ClearToEdge)
}

// countLines writes a line for a log, at most one each linePeriod.
type countLines struct {
	out  io.Writer
	what string
	now  func() time.Time
	last time.Time
}

// linePeriod is the least time between two lines: what takes less says nothing.
const linePeriod = 10 * time.Second

func (l *countLines) show(done, total int) {
	now := l.now()
	if l.last.IsZero() {
		l.last = now
	}
	if now.Sub(l.last) < linePeriod {
		return
	}
	l.last = now
	fmt.Fprintf(l.out, "%d of %d %s\n", done, total, l.what)
}
