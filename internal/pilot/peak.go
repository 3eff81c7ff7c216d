package pilot

import (
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
)

// counterSlack, in KiB, is by how much the kernel's counts of one process's
// memory may differ: it adds up what each processor counts now and then only.
const counterSlack = 8 << 10

// ownPeak is the most memory, in KiB, that this process was seen to have had.
var ownPeak atomic.Int64

// aboveOwn reports whether the most memory of a command, in KiB, is its own. The
// kernel counts that of the pilot for a process that the pilot starts as well,
// from before the program took its place, so that of a command nothing below is
// known. It counts so for the pilot too: what getrusage(2) tells of it may be
// the memory of the server that started it, which no command has taken over.
func aboveOwn(peak int64) bool {
	var own syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &own)
	switch {
	case peak > own.Maxrss:
		return true
	case peak <= ownPeak.Load()+counterSlack:
		return false
	}
	seen := highWater()
	ownPeak.Store(seen)
	return seen > 0 && peak > seen+counterSlack
}

// highWater is the most memory, in KiB, that this process had since its program
// began, 0 where the kernel does not tell.
func highWater() (kib int64) {
	data, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(data)) {
		if n, _ := fmt.Sscanf(line, "VmHWM: %d kB", &kib); n == 1 {
			return kib
		}
	}
	return 0
}
