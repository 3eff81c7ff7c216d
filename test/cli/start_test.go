package cli_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// startBytes is the most that a package of ours may allocate before the program begins.
const startBytes = 512 << 10

// Each run starts the program for its server and for each pilot: what a package makes before it
// is asked for, all of them wait for.
func TestStartMakesLittle(t *testing.T) {
	c := exec.CommandContext(context.Background(), fairway, "version")
	c.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	text, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	seen := 0
	for line := range strings.Lines(string(text)) {
		var name string
		var at, took float64
		var bytes int
		if _, err := fmt.Sscanf(line, "init %s @%f ms, %f ms clock, %d bytes", &name, &at, &took, &bytes); err != nil {
			continue
		}
		seen++
		if strings.HasPrefix(name, "fairway/") && bytes > startBytes {
			t.Errorf("%s allocates %d bytes when the program starts, at most %d", name, bytes, startBytes)
		}
	}
	if seen == 0 {
		t.Errorf("no package tells what it does at the start:\n%s", text)
	}
}
