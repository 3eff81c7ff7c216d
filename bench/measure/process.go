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

// ProcessorTimeOfTree is what a process, and all that it and others below it have started, took of
// processors so far. Of those that have ended, it counts those that somebody has waited for.
func ProcessorTimeOfTree(pid int) time.Duration {
	entries, _ := filepath.Glob("/proc/[0-9]*") // the pattern is right
	children := map[int][]int{}
	for _, entry := range entries {
		if child, err := strconv.Atoi(filepath.Base(entry)); err == nil {
			parent, _, _ := processTimes(child)
			children[parent] = append(children[parent], child)
		}
	}
	var sum time.Duration
	for left := []int{pid}; len(left) > 0; left = left[1:] {
		_, spent, ended := processTimes(left[0])
		sum += spent + ended
		left = append(left, children[left[0]]...)
	}
	return sum
}

// processStat is the parent of a process, and the processor time that it took.
func processStat(pid int) (parent int, spent time.Duration) {
	parent, spent, _ = processTimes(pid)
	return parent, spent
}

// processTimes tells besides what those took that a process has waited for.
func processTimes(pid int) (parent int, spent, ended time.Duration) {
	text, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 15 {
		return 0, 0, 0
	}
	parent, _ = strconv.Atoi(fields[1])
	var ticks [4]int64
	for i := range ticks {
		ticks[i], _ = strconv.ParseInt(fields[11+i], 10, 64)
	}
	return parent, time.Duration(ticks[0]+ticks[1]) * tick, time.Duration(ticks[2]+ticks[3]) * tick
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
