package main

import (
	"os/exec"
	"time"

	"fairway/bench/measure"
)

// Other programs of the machine take processors away, and a program on all of
// its cores cannot evade them as one on a single core can. So each run is watched in the
// same way, whatever it measures: one beside which others took more than mostOthers
// of its cores is done again, up to attempts times in all, and the least disturbed
// counts.
const (
	mostOthers = 0.04
	attempts   = 3
)

// watch measures which share of the first cores others take. It returns a function that
// tells, once a command has ended, what was not taken by the command: zero where
// the system does not tell.
func watch(cores int) func(*exec.Cmd) float64 {
	start := time.Now()
	before, told := measure.BusyTime(cores)
	return func(cmd *exec.Cmd) float64 {
		after, _ := measure.BusyTime(cores)
		if !told || cmd.ProcessState == nil {
			return 0
		}
		own := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
		return max(0, float64(after-before-own)/float64(time.Since(start))/float64(cores))
	}
}
