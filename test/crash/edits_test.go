package crash

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fairway/lib/seed"
	"fairway/test/files"
)

// TestEdits kills the server and then edits a command or an input, each to the
// same size, several times. The results must be those of an undisturbed run of
// the last state: nothing of what pilots, caches or the store kept of earlier
// ones.
func TestEdits(t *testing.T) {
	folders, edits := 2, 4
	if os.Getenv("FAIRWAY_SOAK") != "" {
		folders, edits = 20, 8
	}
	random := seed.Source(t)
	for range folders {
		c := newCampaign(t, layouts[random.IntN(len(layouts))])
		c.random = random
		calm := newCampaign(t, c.layout)
		for n := range edits {
			c.killAndEdit(n, calm.folder)
		}
		got, want := c.finish(), calm.finish()
		if !maps.Equal(got, want) {
			t.Fatalf("results differ from those of an undisturbed run after %q:\n got %v\nwant %v", c.story, got, want)
		}
		if c.layout != away {
			c.watcher.Stop()
			calm.watcher.Stop()
		}
	}
}

// killAndEdit starts a run, kills its server, and edits a file there and in the
// folder of the undisturbed run.
func (c *campaign) killAndEdit(n int, calm string) {
	c.t.Helper()
	a := c.start()
	if a.at(c.moment()) {
		a.killServer()
		a.wait()
	}
	name, from := "workflow.yaml", "% 9"
	if c.random.IntN(2) == 0 {
		name, from = filepath.Join("runs", fmt.Sprintf("run%d.txt", 1+c.random.IntN(runs))), "0"
	}
	c.say(fmt.Sprintf("kill the server and edit %s", name))
	for _, folder := range []string{c.folder, calm} {
		c.edit(filepath.Join(folder, name), from, n)
	}
}

// edit replaces the digit behind the first place of a text by another one, in a
// file that takes the place of the one before.
func (c *campaign) edit(path, from string, n int) {
	c.t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		c.t.Fatal(err)
	}
	before, after, found := strings.Cut(string(text), from)
	if !found {
		c.t.Fatalf("%s has no %q", path, from)
	}
	digit := fmt.Sprint((int(after[0]-'0') + 1 + n) % 10)
	files.Write(c.t, path+".new", before+from+digit+after[1:])
	if err := os.Rename(path+".new", path); err != nil {
		c.t.Fatal(err)
	}
}
