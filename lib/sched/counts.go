package sched

import (
	"fmt"
	"slices"
	"strings"
)

// kindTotal is what the sources of one name have counted together.
type kindTotal struct {
	name string
	Counts
	waiting                      int
	detection, queueing, running histogram
}

// kinds returns the totals by name, in the order of registration.
func (s *Scheduler) kinds() (list []*kindTotal) {
	s.mu.Lock()
	sources := slices.Clone(s.sources)
	s.mu.Unlock()
	seen := make(map[string]*kindTotal)
	for _, src := range sources {
		k := seen[src.name]
		if k == nil {
			k = &kindTotal{name: src.name}
			seen[src.name] = k
			list = append(list, k)
		}
		k.add(src)
	}
	return list
}

func (k *kindTotal) add(src *source) {
	c := src.counts()
	k.Polls += c.Polls
	k.Found += c.Found
	k.Blocks += c.Blocks
	k.Events += c.Events
	k.Aborted += c.Aborted
	k.Syscalls += c.Syscalls
	k.waiting += int(src.members.Load())
	k.detection.add(&src.stats.detection)
	k.queueing.add(&src.stats.queueing)
	k.running.add(&src.stats.running)
}

// String is a table for a person to read. For each name of kinds it has the counts, and the
// means and 99th percentiles of the times of detection, of queueing and of running. The time of
// detection is an upper bound: from the poll before, or from the request if that is later.
func (s *Scheduler) String() string {
	var b strings.Builder
	total, running, queued := s.slotSizes()
	fmt.Fprintf(&b, "%d slots, %d tasks running, %d queued\n", total, running, queued)
	for _, k := range s.kinds() {
		fmt.Fprintf(&b, "%s: %d waiting, %d events, %d aborted, %d polls (%d found), %d blocks, %d system calls\n", k.name,
			k.waiting, k.Events, k.Aborted, k.Polls, k.Found, k.Blocks, k.Syscalls)
		fmt.Fprintf(&b, "  detection %v; queueing %v; running %v\n", &k.detection, &k.queueing, &k.running)
	}
	return b.String()
}
