package web

import (
	"context"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"fairway/internal/rights"
	"fairway/internal/server/api"
	"fairway/internal/taskqueue"
)

// metrics asks the server when Prometheus asks.
type metrics struct {
	site *site
	all  map[string]*prometheus.Desc
}

func newMetrics(s *site) http.Handler {
	m := &metrics{site: s, all: map[string]*prometheus.Desc{}}
	for _, d := range described {
		m.all[d.name] = prometheus.NewDesc("fairway_"+d.name, d.about, d.labels, nil)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(m, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{MaxRequestsInFlight: 2, Timeout: readyTime})
}

// described are the metrics, all with the prefix fairway_. Counters begin with the server.
var described = []struct {
	name, about string
	labels      []string
}{
	{"jobs", "Jobs of the runs in memory, by state.", []string{"state"}},
	{"runs", "Runs in memory.", nil},
	{"job_events_total", "What happened to jobs.", []string{"event"}},
	{"attempts_total", "Attempts that have ended, by outcome.", []string{"outcome"}},
	{"pilots", "Pilots that are there, by site and state.", []string{"site", "state"}},
	{"pilots_queued", "Pilots that are asked for and not there yet.", []string{"site"}},
	{"pilots_wanted", "Pilots that the last plan wants besides those that are there.", []string{"site"}},
	{"pilots_limit", "Pilots that a site may have.", []string{"site"}},
	{"batch_calls_total", "Calls of batch systems, by kind.", []string{"site", "call"}},
	{"batch_errors_total", "Calls of batch systems that failed.", []string{"site"}},
	{"cache_hits_total", "Inputs that attempts read from caches, by where the copy was.", []string{"from"}},
	{"cache_misses_total", "Inputs that attempts read from storage elements.", nil},
	{"read_bytes_total", "Bytes that attempts read, by where they were.", []string{"from"}},
	{"written_bytes_total", "Bytes that attempts wrote.", nil},
	{"slot_seconds_total", "Time of slots, by what they did.", []string{"use"}},
	{"queue_length", "What waits, by queue: ready jobs, jobs at pilots, requests for the loop.", []string{"queue"}},
	{"pages_live", "Pages that are kept up to date.", nil},
}

// Describe is part of prometheus.Collector.
func (m *metrics) Describe(to chan<- *prometheus.Desc) {
	for _, d := range m.all {
		to <- d
	}
}

// Collect is part of prometheus.Collector.
func (m *metrics) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(rights.With(context.Background(), rights.Owner), readyTime) // who asks may watch
	defer cancel()
	f, err := m.site.Service.Figures(ctx)
	if err != nil {
		to <- prometheus.NewInvalidMetric(m.all["jobs"], err)
		return
	}
	gauge := func(name string, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(m.all[name], prometheus.GaugeValue, value, labels...)
	}
	counter := func(name string, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(m.all[name], prometheus.CounterValue, value, labels...)
	}
	for state, n := range f.Jobs.ByState {
		if taskqueue.State(state).String() == "" {
			continue // no job is in it
		}
		gauge("jobs", float64(n), taskqueue.State(state).String())
	}
	gauge("runs", float64(f.Runs))
	gauge("pages_live", float64(m.site.lives.open()))
	gauge("queue_length", float64(f.Jobs.ByState[taskqueue.Ready]), "ready")
	gauge("queue_length", float64(f.Queued), "pilots")
	gauge("queue_length", float64(f.Inbox), "loop")
	m.used(f, counter)
	for _, s := range f.Sites {
		gauge("pilots_queued", float64(s.Inactive), s.Name)
		gauge("pilots_wanted", float64(s.Wanted), s.Name)
		gauge("pilots_limit", float64(s.Max), s.Name)
		for _, state := range []string{"idle", "busy", "silent", "doubted"} {
			gauge("pilots", float64(f.Pilots[s.Name][state]), s.Name, state)
		}
	}
	for site, calls := range f.Calls {
		for call, n := range calls {
			if call == "errors" {
				counter("batch_errors_total", float64(n), site)
			} else {
				counter("batch_calls_total", float64(n), site, call)
			}
		}
	}
}

func (m *metrics) used(f *api.Figures, counter func(name string, value float64, labels ...string)) {
	u := &f.Used
	for kind, n := range u.Events {
		counter("job_events_total", float64(n), kind.String())
	}
	for outcome, n := range u.Outcomes {
		counter("attempts_total", float64(n), outcome.String())
	}
	counter("cache_hits_total", float64(u.Hits-u.Remote), "own")
	counter("cache_hits_total", float64(u.Remote), "other hosts")
	counter("cache_misses_total", float64(u.Misses))
	counter("read_bytes_total", float64(u.Staged), "storage")
	counter("read_bytes_total", float64(u.Cached-u.BytesRemote), "own cache")
	counter("read_bytes_total", float64(u.BytesRemote), "other hosts")
	counter("written_bytes_total", float64(u.Written))
	counter("slot_seconds_total", u.Staging, "staging")
	counter("slot_seconds_total", u.Computing, "computing")
}
