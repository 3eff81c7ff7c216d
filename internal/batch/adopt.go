package batch

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// Set in the environment of each local pilot: its launch, and the identity of the state that
// it works for. By both a later Local knows it again.
const (
	LaunchVariable = "FAIRWAY_LAUNCH"
	StateVariable  = "FAIRWAY_STATE"
)

// Status is part of System. Pilots that an earlier process started for the same
// state are taken over: they are then like those that Submit started.
func (l *Local) Status(context.Context) (map[string]Status, error) {
	state := l.cfg.State
	if l.cfg.New {
		state = ""
	}
	processes, err := processesOf(state)
	for launch, folder := range processes {
		if err := l.adopt(launch, folder); err != nil {
			return nil, fmt.Errorf("take over pilot %s: %w", launch, err)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	running := map[string]Status{}
	for launch := range l.running {
		running[launch] = Status{State: Running, Jobs: 1}
	}
	return running, err
}

// Alive returns the launches of a state whose pilots run on this machine, as far
// as this user may see that. A state without an identity has none.
func Alive(state string) ([]string, error) {
	processes, err := processesOf(state)
	return slices.Sorted(maps.Keys(processes)), err
}

func processesOf(state string) (map[string]string, error) {
	if state == "" {
		return nil, nil
	}
	folders, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, err
	}
	processes := map[string]string{}
	for _, folder := range folders {
		if launch := launchOf(folder, state); launch != "" {
			processes[launch] = folder
		}
	}
	return processes, nil
}

// launchOf reads the environment that a process was started with; empty where
// it is no pilot of the state or is gone. The commands that a pilot runs don't
// inherit the variables.
func launchOf(folder, state string) (launch string) {
	environment, err := os.ReadFile(filepath.Join(folder, "environ"))
	if err != nil {
		return ""
	}
	ours := false
	for entry := range bytes.SplitSeq(environment, []byte{0}) {
		switch name, value, _ := bytes.Cut(entry, []byte{'='}); string(name) {
		case LaunchVariable:
			launch = string(value)
		case StateVariable:
			ours = string(value) == state
		}
	}
	if !ours {
		return ""
	}
	return launch
}

// adopt does nothing if the process is gone or is another one by now: the
// descriptor names one process, whatever becomes of its number.
func (l *Local) adopt(launch, folder string) error {
	pid, err := strconv.Atoi(filepath.Base(folder))
	if err != nil {
		return err
	}
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return nil
	}
	process, err := os.FindProcess(pid)
	if err != nil || launchOf(folder, l.cfg.State) != launch {
		return unix.Close(fd)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || l.running[launch] != nil {
		return unix.Close(fd)
	}
	l.running[launch] = process
	l.group.Go(func() { l.attendAdopted(launch, fd) })
	return nil
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
	l.ended <- End{launch, reason}
}
