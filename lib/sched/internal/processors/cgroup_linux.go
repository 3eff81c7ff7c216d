package processors

import (
	"os"
	"path"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Allowed is the number of processors that the first thread of the
// process may run on now.
func Allowed() int {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(os.Getpid(), &set); err != nil {
		return runtime.NumCPU()
	}
	return set.Count()
}

const cgroupRoot = "/sys/fs/cgroup"

// CgroupLimit is the number of processors that the cgroup of the process and
// those above allow, rounded up, or zero without a limit.
func CgroupLimit() int {
	b, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return 0
	}
	return limitOf(cgroupRoot, string(b))
}

// limitOf is the limit of the cgroups that a process is in, by what stands in its /proc/PID/cgroup.
func limitOf(root, cgroups string) int {
	for line := range strings.Lines(cgroups) {
		if own, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			return cgroup2Limit(root, own)
		}
		if fields := strings.SplitN(strings.TrimSpace(line), ":", 3); len(fields) == 3 &&
			slices.Contains(strings.Split(fields[1], ","), "cpu") {
			return cgroup1Limit(path.Join(root, "cpu"), fields[2])
		}
	}
	return 0
}

// cgroup2Limit reads "quota period" or "max period" from cpu.max of each level.
func cgroup2Limit(root, own string) int {
	limit := 0
	for ; ; own = path.Dir(own) {
		fields := strings.Fields(readString(path.Join(root, own, "cpu.max")))
		if len(fields) == 2 {
			limit = tighter(limit, fields[0], fields[1])
		}
		if own == "/" || own == "." {
			return limit
		}
	}
}

func cgroup1Limit(root, own string) int {
	limit := 0
	for ; ; own = path.Dir(own) {
		limit = tighter(limit, readString(path.Join(root, own, "cpu.cfs_quota_us")),
			readString(path.Join(root, own, "cpu.cfs_period_us")))
		if own == "/" || own == "." {
			return limit
		}
	}
}

// tighter is the lower of a limit and the one given by quota and period.
func tighter(limit int, quota, period string) int {
	q, err := strconv.ParseFloat(strings.TrimSpace(quota), 64)
	if err != nil || q <= 0 {
		return limit
	}
	p, err := strconv.ParseFloat(strings.TrimSpace(period), 64)
	if err != nil || p <= 0 {
		return limit
	}
	n := max(1, int((q+p-1)/p))
	if limit == 0 || n < limit {
		return n
	}
	return limit
}

func readString(name string) string {
	b, _ := os.ReadFile(name)
	return string(b)
}
