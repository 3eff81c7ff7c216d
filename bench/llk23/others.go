package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
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

// tick is the unit of /proc/stat.
const tick = 10 * time.Millisecond

// busyTime returns how long the first cores have computed for whomever since the
// machine started, or false where the system does not tell.
func busyTime(cores int) (time.Duration, bool) {
	f, err := os.Open("/proc/stat")
	if err != nil {
		return 0, false
	}
	defer f.Close()
	ticks, seen := 0, 0
	for lines := bufio.NewScanner(f); lines.Scan(); {
		core, n := coreTicks(lines.Text())
		if core >= 0 && core < cores {
			ticks, seen = ticks+n, seen+1
		}
	}
	return time.Duration(ticks) * tick, seen == cores
}

// coreTicks reads the line of a core: the ticks in which it was not idle. Other lines
// belong to core -1.
func coreTicks(line string) (core, ticks int) {
	var name string
	var user, nice, system, idle, blocked, interrupt, soft, stolen int
	_, err := fmt.Sscan(line, &name, &user, &nice, &system, &idle, &blocked, &interrupt, &soft, &stolen)
	if _, errName := fmt.Sscanf(strings.TrimPrefix(name, "cpu"), "%d", &core); err != nil || errName != nil {
		return -1, 0
	}
	return core, user + nice + system + interrupt + soft + stolen
}

// watch measures which share of the first cores others take. It returns a function that
// tells, once a command has ended, what was not taken by the command: zero where
// the system does not tell.
func watch(cores int) func(*exec.Cmd) float64 {
	start := time.Now()
	before, told := busyTime(cores)
	return func(cmd *exec.Cmd) float64 {
		after, _ := busyTime(cores)
		if !told || cmd.ProcessState == nil {
			return 0
		}
		own := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
		return max(0, float64(after-before-own)/float64(time.Since(start))/float64(cores))
	}
}
