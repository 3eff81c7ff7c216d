//go:build linux

package provision

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// MemoryOfMachine is how many bytes of memory this machine has.
func MemoryOfMachine() (int64, error) {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return 0, fmt.Errorf("memory of this machine: %w", err)
	}
	return int64(info.Totalram) * int64(info.Unit), nil
}
