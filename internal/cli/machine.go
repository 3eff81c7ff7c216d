package cli

import (
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"

	"fairway/internal/flow"
)

// thisMachine is the node that ran the jobs.
func thisMachine() (flow.RunMachine, error) {
	name, err := os.Hostname()
	if err != nil {
		return flow.RunMachine{}, err
	}
	memory, err := memoryOfMachine()
	return flow.RunMachine{Name: name, Cores: runtime.NumCPU(), Memory: memory}, err
}

func memoryOfMachine() (int64, error) {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return 0, fmt.Errorf("memory of this machine: %w", err)
	}
	return int64(info.Totalram) * int64(info.Unit), nil
}
