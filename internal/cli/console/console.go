package console

import (
	"fmt"
	"io"
	"strings"
	"sync"

	"fairway/internal/cli/screen"
	"fairway/internal/quantity"
)

// Console is what a command reads from and prints to, and the flags that all
// commands have.
type Console struct {
	In       io.Reader
	Out, Err io.Writer

	JSON bool
	Dir  string

	// A lasting server, and the run there that is meant.
	Service string // its folder, or a file that says how it is reached; empty: the folder of dir
	meant   string // to be told: that the folder is asked, and how to name the server
	Number  uint32 // 0: the only one
	Group   string // whose share a run that begins at the server takes

	// Own are the names of the jobs that a call adds to a run: its progress leaves out those of others that
	// have ended. Nil: it counts all.
	Own map[string]bool

	Started   bool // the arguments were right, and the command itself began
	Concluded bool // a run ended, and its exit code is known

	screen  sync.Mutex      // guards display and what is shown by it
	display screen.Progress // nil while nothing is watched
}

func (c *Console) onScreen(change func()) {
	c.screen.Lock()
	defer c.screen.Unlock()
	change()
}

// Announce tells something while progress may be displayed.
func (c *Console) Announce(text string) {
	c.onScreen(func() {
		if c.display != nil {
			c.display.Say(text)
		} else {
			fmt.Fprintln(c.Err, screen.Uncoloured(text))
		}
	})
}

// PrintTrouble tells what went wrong, as text or as the one JSON object.
// Problems of a file are told one a line, as compilers do.
func (c *Console) PrintTrouble(t trouble) {
	switch {
	case t.Error == "":
		return
	case c.JSON:
		c.PrintJSON(t)
		return
	case len(t.Problems) > 0:
		fmt.Fprintf(c.Err, "%s\nfairway: %s in %s\n", screen.Uncoloured(t.Problems.Error()),
			quantity.Count(int64(len(t.Problems)), "problem"), screen.OneLine(t.Problems[0].File))
	default:
		fmt.Fprintf(c.Err, "fairway: %s\n", screen.Uncoloured(strings.TrimSpace(t.Error)))
	}
	if t.Hint != "" {
		fmt.Fprintf(c.Err, "  %s\n", screen.Uncoloured(t.Hint))
	}
}
