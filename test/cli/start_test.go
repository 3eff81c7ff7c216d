package cli_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// startBytes is the most that a package of ours may allocate before the program begins.
const startBytes = 512 << 10

// A run of one job ends before there is garbage that is worth to be collected.
func TestShortRunsCollectNoGarbage(t *testing.T) {
	folder := t.TempDir()
	text := "workflow: one\nsteps: {one: {writes: one.txt, command: 'echo 1 > \"$out\"'}}\n"
	if err := os.WriteFile(filepath.Join(folder, "workflow.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(context.Background(), fairway, "run", "workflow.yaml")
	c.Dir, c.Env = folder, append(os.Environ(), "GODEBUG=gctrace=1")
	said, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	logs, err := filepath.Glob(filepath.Join(folder, ".fairway", "pilots", "*", "*.log"))
	if err != nil || len(logs) != 1 {
		t.Fatalf("the logs of pilots are %v, %v", logs, err)
	}
	pilot, err := os.ReadFile(logs[0])
	if err != nil {
		t.Fatal(err)
	}
	for of, said := range map[string]string{"the server": string(said), "the pilot": string(pilot)} {
		for line := range strings.Lines(said) {
			if strings.HasPrefix(line, "gc ") && !strings.Contains(line, "(forced)") {
				t.Errorf("%s: %s", of, line)
			}
		}
	}
}

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
