package process

import (
	"log/slog"
	"os"

	"golang.org/x/sys/unix"
)

// EndLeft kills the processes of a pilot that does not live any more.
func EndLeft(pilot string, since uint64, log *slog.Logger) {
	for range maxSweeps {
		ended := killGroupsOf(pilot)
		for _, pid := range pids() {
			if endIfLeft(pid, pilot, since) {
				ended++
			}
		}
		if ended == 0 {
			break
		}
		log.Info("ended processes that a pilot has left", "of", pilot, "count", ended)
	}
	for _, folder := range groupsOf(pilot) {
		removeGroups(folder)
	}
}

// endIfLeft kills a process that is proven to come from an attempt of the pilot, and reports
// whether it did. The proof is the mark in the environment that the process was started with, and
// that it started after the pilot. Where it works proves nothing: that may be a person's shell.
func endIfLeft(pid int, pilot string, since uint64) bool {
	if pid == os.Getpid() {
		return false
	}
	// Through the descriptor no other process is meant that gets the number.
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	mark, _ := markOf(pid, PilotVariable)
	if mark != pilot || StartOf(pid) < since {
		return false
	}
	if fields := StatOf(pid); len(fields) == 0 || fields[0] == "Z" || fields[0] == "X" {
		return false
	}
	return unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0) == nil
}
