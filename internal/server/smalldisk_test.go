package server

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"fairway/internal/pilot"
	"fairway/internal/taskqueue"
	"fairway/internal/wire"
	"fairway/test/files"
)

// smallDisk mounts a disk of a size in bytes at a path.
func smallDisk(t *testing.T, path string, size int64) {
	t.Helper()
	if err := os.MkdirAll(path, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", path, "tmpfs", 0, fmt.Sprintf("size=%d", size)); err != nil {
		t.Skip("no tmpfs here:", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(path, unix.MNT_DETACH) })
}

// storesElsewhere is the folder of a server whose outputs are stored on a disk of its own, behind a link.
func storesElsewhere(t *testing.T, size int64) (root, disk string) {
	t.Helper()
	root, disk = t.TempDir(), t.TempDir()
	smallDisk(t, disk, size)
	if err := os.MkdirAll(filepath.Join(root, ".fairway"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(disk, filepath.Join(root, ".fairway", "storage")); err != nil {
		t.Fatal(err)
	}
	return root, disk
}

const largeOutput = `
workflow: large
steps:
  make: {writes: made, retry: {attempts: 5, backoff: 1s}, command: head -c BYTES /dev/zero > made}
`

// The disk is watched on which outputs are stored, also behind a link. A result that no run names goes
// when an output has no room beside it.
func TestResultsGoForOutputsThatNeedTheirRoom(t *testing.T) {
	root, disk := storesElsewhere(t, 20<<20)
	p := startServiceAs(t, root, nil, func(c *Config) {
		c.System = pilotsWithCache(t, pilot.CacheConfig{})
		c.Site = taskqueue.Site{MaxPilots: 1, Pilot: taskqueue.Resources{MilliCPUs: 1000}}
		c.Dispatch.Retention = time.Hour
	})
	defer p.stop()
	if _, all, err := spaceOf(p.server.storageFolder()); err != nil || all != 20<<20 {
		t.Errorf("a disk of %d bytes is watched, %v", all, err)
	}
	first := p.submit(strings.Replace(largeOutput, "BYTES", fmt.Sprint(12<<20), 1), t.TempDir(), nil)
	p.await(first)
	p.retired(taskqueue.RunID(first))
	if _, err := p.client.RemoveRuns(t.Context(), &wire.RemoveRunsRequest{Runs: []uint32{first}}); err != nil {
		t.Fatal(err)
	}
	if kept, _ := filepath.Glob(filepath.Join(disk, "*", "made*")); len(kept) != 1 {
		t.Fatalf("the result is not kept for a time: %q", kept)
	}
	second := p.submit(strings.Replace(largeOutput, "BYTES", fmt.Sprint(13<<20), 1), t.TempDir(), nil)
	if ended := p.await(second); !ended.GetSucceeded() {
		t.Error(ended)
	}
}

// A run is removed where the disk has no byte left, which gives room back, also after a restart.
func TestRunsAreRemovedOnAFullDisk(t *testing.T) {
	texts := files.Folder(t, threeTexts)
	for _, restart := range []bool{false, true} {
		t.Run(fmt.Sprint("restart ", restart), func(t *testing.T) {
			root := t.TempDir()
			smallDisk(t, root, 64<<20)
			p := startService(t, root, twoStepsScript)
			run := p.submit(twoSteps, texts, nil)
			p.await(run)
			p.retired(taskqueue.RunID(run))
			if err := p.server.lookAtSpace(t.Context(), time.Now()); err != nil {
				t.Fatal(err)
			}
			if restart {
				p.stop()
			}
			fill(t, filepath.Join(root, "filling"))
			if restart {
				p = startService(t, root, twoStepsScript)
			}
			defer p.stop()
			if _, err := p.client.RemoveRuns(t.Context(), &wire.RemoveRunsRequest{Runs: []uint32{run}}); err != nil {
				t.Error(err)
			}
			if runs := p.runs(); len(runs) > 0 {
				t.Errorf("runs are %q", runs)
			}
		})
	}
}

// fill leaves no byte free on a disk.
func fill(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for size := 1 << 20; size > 0; {
		if _, err := f.Write(make([]byte, size)); err != nil {
			size /= 2
		}
	}
}
