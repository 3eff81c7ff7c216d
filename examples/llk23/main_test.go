package main

import (
	"path/filepath"
	"sync"
	"testing"
	"time"

	"fairway/examples/llk23/sweep"
	"fairway/lib/orwl"
)

func program() *sweep.Program {
	return &sweep.Program{Cut: sweep.NewCut(90, 4, 2, 8), Last: 4, Iterations: 30}
}

func TestOneProcess(t *testing.T) {
	if err := run(new(part), new(gang), program()); err != nil {
		t.Fatal(err)
	}
}

func TestParts(t *testing.T) {
	folder := t.TempDir()
	addresses := filepath.Join(folder, "0") + "," + filepath.Join(folder, "1") + "," + filepath.Join(folder, "2")
	var all sync.WaitGroup
	for k := range 3 {
		all.Go(func() {
			if err := run(
				&part{addresses: addresses, group: orwl.Group{Process: k, Patience: time.Minute}}, new(gang), program(),
			); err != nil {
				t.Errorf("process %d: %v", k, err)
			}
		})
	}
	all.Wait()
}
