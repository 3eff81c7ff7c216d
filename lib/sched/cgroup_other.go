//go:build !linux

package sched

import "runtime"

func cgroupLimit() int { return 0 }

func allowedProcessors() int { return runtime.NumCPU() }
