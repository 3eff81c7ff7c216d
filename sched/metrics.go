package sched

import (
	"fmt"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("fairway_sched_"+name, help, labels, nil)
}

var (
	descPolls    = desc("polls_total", "Polls, by whether they found an event.", "kind", "found")
	descBlocks   = desc("blocks_total", "Times that a thread blocked for a group.", "kind")
	descEvents   = desc("events_total", "Events detected.", "kind")
	descAborted  = desc("aborted_total", "Waits ended without an event.", "kind")
	descSyscalls = desc("syscalls_total", "System calls made to detect events, for kinds that tell.", "kind")
	descWaiting  = desc("waiting", "Requests that wait.", "kind")

	descDetection = desc("detection_seconds", "Time from an event, or the earliest it may have come, to its detection.", "kind")
	descQueueing  = desc("queueing_seconds", "Time from the detection of an event until its waiter runs.", "kind")
	descRunning   = desc("running_seconds", "Time that tasks computed because of an event.", "kind")

	descSlots   = desc("slots", "Slots for computing tasks.")
	descRunners = desc("tasks_running", "Tasks that compute, including those over the number of slots.")
	descQueue   = desc("tasks_queued", "Tasks that wait for a slot.")
)

// Describe makes a Scheduler a [prometheus.Collector].
func (s *Scheduler) Describe(ch chan<- *prometheus.Desc) {
	prometheus.DescribeByCollect(s, ch)
}

// Collect makes a Scheduler a [prometheus.Collector]. For each name of kinds it gives
// polls, blocks, events and aborted waits, and the distributions of the times of
// detection, of queueing and of running. The time of detection is an upper
// bound: from the poll before, or from the request if that is later.
func (s *Scheduler) Collect(ch chan<- prometheus.Metric) {
	for _, k := range s.kinds() {
		k.collect(ch)
	}
	total, running, queued := s.slotSizes()
	for d, v := range map[*prometheus.Desc]int{descSlots: total, descRunners: running, descQueue: queued} {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(v))
	}
}

// kindTotal is what the sources of one name have counted together.
type kindTotal struct {
	name  string
	tells bool // of its system calls
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
	k.tells = k.tells || src.syscalls != nil
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

func (k *kindTotal) collect(ch chan<- prometheus.Metric) {
	count := func(d *prometheus.Desc, n uint64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), append([]string{k.name}, labels...)...)
	}
	count(descPolls, k.Found, "true")
	count(descPolls, k.Polls-k.Found, "false")
	count(descBlocks, k.Blocks)
	count(descEvents, k.Events)
	count(descAborted, k.Aborted)
	if k.tells {
		count(descSyscalls, k.Syscalls)
	}
	ch <- prometheus.MustNewConstMetric(descWaiting, prometheus.GaugeValue, float64(k.waiting), k.name)
	ch <- k.detection.metric(descDetection, k.name)
	ch <- k.queueing.metric(descQueueing, k.name)
	ch <- k.running.metric(descRunning, k.name)
}

func (h *histogram) metric(d *prometheus.Desc, kind string) prometheus.Metric {
	cumulative := make(map[float64]uint64, buckets)
	n := uint64(0)
	for i := range h.counts {
		n += h.counts[i].Load()
		if i < buckets-1 {
			cumulative[bound(i).Seconds()] = n
		}
	}
	return prometheus.MustNewConstHistogram(d, n, float64(h.sum.Load())/1e9, cumulative, kind)
}

// String is a table of what Collect gives, for a person to read.
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
