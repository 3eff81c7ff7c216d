package process

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
)

func pids() (found []int) {
	folder, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer folder.Close()
	names, _ := folder.Readdirnames(-1)
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			found = append(found, pid)
		}
	}
	return found
}

// StatOf returns the fields of /proc/PID/stat that follow the name of the
// program: state, parent, and so on; nil if the process is gone.
func StatOf(pid int) []string {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil
	}
	end := bytes.LastIndexByte(data, ')')
	return strings.Fields(string(data[end+1:]))
}

// StartOf is when a process started, in clock ticks since the machine did; 0 if it
// is gone.
func StartOf(pid int) uint64 {
	const at = 19 // of starttime among those that follow the name
	fields := StatOf(pid)
	if len(fields) <= at {
		return 0
	}
	start, _ := strconv.ParseUint(fields[at], 10, 64)
	return start
}

func parents() map[int]int {
	found := map[int]int{}
	for _, pid := range pids() {
		if fields := StatOf(pid); len(fields) > 1 {
			found[pid], _ = strconv.Atoi(fields[1])
		}
	}
	return found
}

func descendants(roots []int) []int {
	children := map[int][]int{}
	for pid, parent := range parents() {
		children[parent] = append(children[parent], pid)
	}
	all := append([]int(nil), roots...)
	for i := 0; i < len(all); i++ {
		all = append(all, children[all[i]]...)
	}
	return all
}

// residentBytes is the memory that processes have in RAM, as far as they are
// still there.
func residentBytes(pids []int) (sum int64) {
	for _, pid := range pids {
		data, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
		if err != nil {
			continue
		}
		if fields := strings.Fields(string(data)); len(fields) > 1 {
			pages, _ := strconv.ParseInt(fields[1], 10, 64)
			sum += pages * int64(os.Getpagesize())
		}
	}
	return sum
}

func markOf(pid int, variable string) (string, bool) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		return "", false
	}
	for entry := range bytes.SplitSeq(data, []byte{0}) {
		if value, ok := strings.CutPrefix(string(entry), variable+"="); ok {
			return value, true
		}
	}
	return "", false
}
