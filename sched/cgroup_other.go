//go:build !linux

package sched

func cgroupLimit() int { return 0 }
