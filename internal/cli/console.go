package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"fairway/internal/quantity"
)

// console is what a command reads from and prints to, and the flags that all
// commands have.
type console struct {
	in       io.Reader
	out, err io.Writer

	json bool
	dir  string

	// A lasting server, and the run there that is meant.
	service string // its folder, or a file that says how it is reached; empty: the folder of dir
	meant   string // to be told: that the folder is asked, and how to name the server
	number  uint32 // 0: the only one
	group   string // whose share a run that begins at the server takes

	started   bool // the arguments were right, and the command itself began
	concluded bool // a run ended, and its exit code is known

	screen  sync.Mutex // guards display and what is shown by it
	display progress   // nil while nothing is watched
}

// onScreen changes what is displayed.
func (c *console) onScreen(change func()) {
	c.screen.Lock()
	defer c.screen.Unlock()
	change()
}

// announce tells something while progress may be displayed.
func (c *console) announce(text string) {
	c.onScreen(func() {
		if c.display != nil {
			c.display.say(text)
		} else {
			fmt.Fprintln(c.err, uncoloured(text))
		}
	})
}

// printTrouble tells what went wrong, as text or as the one JSON object.
// Problems of a file are told one a line, as compilers do.
func (c *console) printTrouble(t trouble) {
	switch {
	case t.Error == "":
		return
	case c.json:
		c.printJSON(t)
		return
	case len(t.Problems) > 0:
		fmt.Fprintf(c.err, "%s\nfairway: %s in %s\n", uncoloured(t.Problems.Error()),
			quantity.Count(int64(len(t.Problems)), "problem"), oneLine(t.Problems[0].File))
	default:
		fmt.Fprintf(c.err, "fairway: %s\n", uncoloured(strings.TrimSpace(t.Error)))
	}
	if t.Hint != "" {
		fmt.Fprintf(c.err, "  %s\n", uncoloured(t.Hint))
	}
}

// style says what a terminal can show.
type style struct {
	colour  bool
	unicode bool
}

func styleOf(w io.Writer) style {
	_, _, terminal := terminalSize(w)
	return style{
		colour:  terminal && os.Getenv("NO_COLOR") == "",
		unicode: speaksUTF8(),
	}
}

func speaksUTF8() bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if value := os.Getenv(name); value != "" {
			value = strings.ToUpper(value)
			return strings.Contains(value, "UTF-8") || strings.Contains(value, "UTF8")
		}
	}
	return false
}

const (
	red    = "31"
	green  = "32"
	yellow = "33"
	blue   = "34"
	dim    = "2"
	bold   = "1"
)

func (s style) paint(colour, text string) string {
	if !s.colour || colour == "" || text == "" {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}
