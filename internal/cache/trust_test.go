package cache

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"
)

// restartMachine has the caches that are opened from now on take the machine for
// one that was started again.
func restartMachine(t *testing.T) {
	t.Helper()
	before := boot
	boot = func() string { return before() + " again" }
	t.Cleanup(func() { boot = before })
}

// kill ends a cache as the end of its process does.
func kill(c *Cache) {
	c.stop()
	c.group.Wait()
	_ = c.own.Close()
}

// What was in memory only when the machine lost power is not taken for a file that
// has the right size.
func TestFilesFromBeforePowerLossAreNotTrusted(t *testing.T) {
	for name, next := range map[string]string{"own folder": "dead", "that of another pilot": "heir"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			dead, _ := open(t, dir, "dead")
			put(t, dead, "a", 60).Release()
			kill(dead)
			restartMachine(t)
			c, _ := open(t, dir, next)
			if len(c.Contents()) != 0 {
				t.Error("taken over:", c.Contents())
			}
			files, _ := filepath.Glob(dir + "/*/a@*")
			if len(files) != 0 {
				t.Error("left on disk:", files)
			}
			put(t, c, "a", 50).Release()
			kill(c)
			again, _ := open(t, dir, next)
			if !has(again, "a") {
				t.Error("what was added since the start is gone")
			}
		})
	}
}

func TestFilesThatWereBroughtToDiskAreTrusted(t *testing.T) {
	for name, c := range map[string]struct {
		next    string
		further int
	}{
		"own folder": {"gone", 0}, "that of another pilot": {"heir", 0}, "many files": {"heir", syncEach},
	} {
		t.Run(name, func(t *testing.T) {
			dir, next := t.TempDir(), c.next
			gone, _ := open(t, dir, "gone")
			gone.syncTime = time.Hour
			put(t, gone, "a", 40).Release()
			for i := range c.further {
				put(t, gone, fmt.Sprint("b", i), 1).Release()
			}
			gone.Close()
			restartMachine(t)
			c, _ := open(t, dir, next)
			if !has(c, "a") {
				t.Fatal("it was not taken over")
			}
			kill(c) // from now on the folder is written to again
			restartMachine(t)
			if again, _ := open(t, dir, next); has(again, "a") {
				t.Error("trusted although its pilot was killed")
			}
		})
	}
}
