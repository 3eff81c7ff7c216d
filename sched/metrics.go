package sched

import (
	"fmt"
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

// Collect makes a Scheduler a [prometheus.Collector]. For each kind it gives
// polls, blocks, events and aborted waits, and the distributions of the times of
// detection, of queueing and of running. The time of detection is an upper
// bound: from the poll before, or from the request if that is later.
func (s *Scheduler) Collect(ch chan<- prometheus.Metric) {
	for _, src := range s.kinds() {
		src.collect(ch)
	}
	total, running, queued := s.slots.sizes()
	for d, v := range map[*prometheus.Desc]int{descSlots: total, descRunners: running, descQueue: queued} {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(v))
	}
}

// kinds returns the sources whose names may stand in metrics: of those with the
// same name the first.
func (s *Scheduler) kinds() (list []*source) {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := make(map[string]bool)
	for _, src := range s.sources {
		if !seen[src.name] {
			seen[src.name] = true
			list = append(list, src)
		}
	}
	return list
}

func (src *source) collect(ch chan<- prometheus.Metric) {
	st, c := src.stats, src.counts()
	count := func(d *prometheus.Desc, n uint64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), append([]string{src.name}, labels...)...)
	}
	count(descPolls, c.Found, "true")
	count(descPolls, c.Polls-c.Found, "false")
	count(descBlocks, c.Blocks)
	count(descEvents, c.Events)
	count(descAborted, c.Aborted)
	if src.syscalls != nil {
		count(descSyscalls, c.Syscalls)
	}
	ch <- prometheus.MustNewConstMetric(descWaiting, prometheus.GaugeValue, float64(src.members.Load()), src.name)
	ch <- st.detection.metric(descDetection, src.name)
	ch <- st.queueing.metric(descQueueing, src.name)
	ch <- st.running.metric(descRunning, src.name)
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
	total, running, queued := s.slots.sizes()
	fmt.Fprintf(&b, "%d slots, %d tasks running, %d queued\n", total, running, queued)
	for _, src := range s.kinds() {
		st, c := src.stats, src.counts()
		fmt.Fprintf(&b, "%s: %d waiting, %d events, %d aborted, %d polls (%d found), %d blocks, %d system calls\n", src.name,
			src.members.Load(), c.Events, c.Aborted, c.Polls, c.Found, c.Blocks, c.Syscalls)
		fmt.Fprintf(&b, "  detection %v; queueing %v; running %v\n", &st.detection, &st.queueing, &st.running)
	}
	return b.String()
}
