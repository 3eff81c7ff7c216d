package measure

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// ProcessorTime is what a process took of processors so far, itself and in the kernel; 0 of one that
// has ended. It counts in ticks of 10 ms.
func ProcessorTime(pid int) time.Duration {
	_, spent := processStat(pid)
	return spent
}

// ProcessorTimeBelow is the same of all processes that a process has started and that are still there.
func ProcessorTimeBelow(pid int) (sum time.Duration) {
	entries, _ := filepath.Glob("/proc/[0-9]*") // the pattern is right
	for _, entry := range entries {
		child, err := strconv.Atoi(filepath.Base(entry))
		if err != nil {
			continue
		}
		if parent, spent := processStat(child); parent == pid {
			sum += spent
		}
	}
	return sum
}

// processStat is the parent of a process, and the processor time that it took.
func processStat(pid int) (parent int, spent time.Duration) {
	text, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0, 0
	}
	parent, _ = strconv.Atoi(fields[1])
	user, _ := strconv.ParseInt(fields[11], 10, 64)
	system, _ := strconv.ParseInt(fields[12], 10, 64)
	return parent, time.Duration(user+system) * tick
}

// ResidentMemory is the memory of a process, in bytes.
func ResidentMemory(pid int) (float64, error) {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "statm"))
	if err != nil {
		return 0, err
	}
	var size, resident float64
	if _, err := fmt.Sscan(string(text), &size, &resident); err != nil {
		return 0, err
	}
	return resident * float64(os.Getpagesize()), nil
}
