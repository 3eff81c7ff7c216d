//go:build !linux

package processors

import "runtime"

// CgroupLimit is zero, as there is no limit.
func CgroupLimit() int { return 0 }

// Allowed is the number of processors of the machine.
func Allowed() int { return runtime.NumCPU() }
