package measure

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"time"
)

// tick is the unit of /proc/stat.
const tick = 10 * time.Millisecond

// BusyTime returns how long the first cores have computed for whomever since the
// machine started, or false where the system does not tell.
func BusyTime(cores int) (time.Duration, bool) {
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
