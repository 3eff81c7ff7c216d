package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// diskInterval is how often is looked how much the file system has free.
const diskInterval = 20 * time.Millisecond

// run runs a command in a folder. With synced, its time ends when all it wrote is on disk.
func run(ctx context.Context, folder string, command []string, synced bool) (u used, err error) {
	if err := syncAll(folder); err != nil { // so that what was written before does not count
		return u, err
	}
	before, err := countersOf(folder)
	if err != nil {
		return u, err
	}
	watching, stop := context.WithCancel(ctx)
	var group sync.WaitGroup
	group.Go(func() { u.diskMost = diskMost(watching, folder) })
	c := exec.CommandContext(ctx, command[0], command[1:]...)
	c.Dir = folder
	began := time.Now()
	said, err := c.CombinedOutput()
	if err == nil && synced {
		err = syncAll(folder)
	}
	u.seconds = time.Since(began).Seconds()
	stop()
	group.Wait()
	if err != nil {
		return u, fmt.Errorf("%s: %w\n%s", strings.Join(command, " "), err, said)
	}
	if err := syncAll(folder); err != nil {
		return u, err
	}
	after, err := countersOf(folder)
	u.cpu = after.cpu - before.cpu
	u.read, u.written, u.toDisk = after.read-before.read, after.written-before.written, after.toDisk-before.toDisk
	return u, err
}

// syncAll brings the file system of a folder to disk.
func syncAll(folder string) error {
	f, err := os.Open(folder)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	return unix.Syncfs(int(f.Fd()))
}

// counters are what the processes that this one has waited for needed, and what the device of a
// folder has written.
type counters struct{ cpu, read, written, toDisk float64 }

func countersOf(folder string) (c counters, err error) {
	var usage unix.Rusage
	for _, whose := range []int{unix.RUSAGE_CHILDREN, unix.RUSAGE_SELF} { // the sync of what make has left is its own
		if err := unix.Getrusage(whose, &usage); err != nil {
			return c, err
		}
		c.cpu += time.Duration(usage.Utime.Nano() + usage.Stime.Nano()).Seconds()
	}
	file, err := os.Open("/proc/self/io") // with that of those it has waited for
	if err != nil {
		return c, err
	}
	defer func() { _ = file.Close() }()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var name string
		var value float64
		if _, err := fmt.Sscan(lines.Text(), &name, &value); err != nil {
			return c, err
		}
		switch name {
		case "rchar:":
			c.read = value
		case "wchar:":
			c.written = value
		}
	}
	c.toDisk, err = deviceWritten(folder)
	return c, err
}

// deviceWritten is how many bytes the device of a folder has written; 0 where there is none, as
// below an overlay.
func deviceWritten(folder string) (float64, error) {
	const sector, writtenAt = 512, 6 // Documentation/block/stat.rst of Linux
	var st unix.Stat_t
	if err := unix.Stat(folder, &st); err != nil {
		return 0, err
	}
	text, err := os.ReadFile(filepath.Join("/sys/dev/block", fmt.Sprintf("%d:%d", unix.Major(st.Dev), unix.Minor(st.Dev)),
		"stat"))
	if os.IsNotExist(err) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(text))
	if len(fields) <= writtenAt {
		return 0, fmt.Errorf("the device of %s tells %q", folder, text)
	}
	var sectors float64
	_, err = fmt.Sscan(fields[writtenAt], &sectors)
	return sectors * sector, err
}

// diskMost is by how much the free space of a file system fell at most until ctx ended.
func diskMost(ctx context.Context, folder string) (most float64) {
	free := func() float64 {
		var fs unix.Statfs_t
		if unix.Statfs(folder, &fs) != nil {
			return 0
		}
		return float64(fs.Bfree) * float64(fs.Bsize)
	}
	before := free()
	ticks := time.NewTicker(diskInterval)
	defer ticks.Stop()
	for {
		most = max(most, before-free())
		select {
		case <-ctx.Done():
			return most
		case <-ticks.C:
		}
	}
}
