package batch

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// LaunchVariable is set in the environment of each local pilot to its launch,
// by which a later Local knows it again.
const LaunchVariable = "FAIRWAY_LAUNCH"

// Adopt takes over pilots that an earlier process on this machine has started
// and that are still alive, out of the given launches, and returns theirs. They
// are then like those that Submit started.
func (l *Local) Adopt(launches []string) ([]string, error) {
	if len(launches) == 0 {
		return nil, nil
	}
	processes, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, err
	}
	var adopted []string
	for _, folder := range processes {
		launch := launchOf(folder)
		if !slices.Contains(launches, launch) || slices.Contains(adopted, launch) {
			continue
		}
		taken, err := l.adopt(launch, folder)
		if err != nil {
			return adopted, fmt.Errorf("take over pilot %s: %w", launch, err)
		}
		if taken {
			adopted = append(adopted, launch)
		}
	}
	return adopted, nil
}

// launchOf reads the environment that a process was started with; empty where
// it is none of ours or is gone. The commands that a pilot runs don't inherit
// the variable.
func launchOf(folder string) string {
	environment, err := os.ReadFile(filepath.Join(folder, "environ"))
	if err != nil {
		return ""
	}
	for entry := range bytes.SplitSeq(environment, []byte{0}) {
		if launch, found := bytes.CutPrefix(entry, []byte(LaunchVariable+"=")); found {
			return string(launch)
		}
	}
	return ""
}

// adopt reports false if the process is gone or is another one by now: the
// descriptor names one process, whatever becomes of its number.
func (l *Local) adopt(launch, folder string) (bool, error) {
	pid, err := strconv.Atoi(filepath.Base(folder))
	if err != nil {
		return false, err
	}
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return false, nil
	}
	process, err := os.FindProcess(pid)
	if err != nil || launchOf(folder) != launch {
		return false, unix.Close(fd)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.running[launch] != nil {
		return true, unix.Close(fd) // it is our own
	}
	l.running[launch] = process
	l.group.Go(func() { l.attendAdopted(launch, fd) })
	return true, nil
}

func (l *Local) attendAdopted(launch string, fd int) {
	err := l.cfg.Sched.WaitReadable(context.Background(), fd)
	_ = unix.Close(fd)
	reason := "ended"
	if err != nil {
		reason = fmt.Sprintf("lost sight of it: %v", err)
	}
	l.mu.Lock()
	delete(l.running, launch)
	l.mu.Unlock()
	l.ended <- Ending{launch, reason}
}
