package main

import (
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"fairway/internal/sim"
	"fairway/internal/sim/experiment"
	"fairway/lib/sched"
	"fairway/test/netns"
)

// element is a proxy that stands before a real WebDAV server and has it be as slow and
// as bad as an experiment says. Only what jobs read and write counts. The same accesses
// of the same tries of jobs fail as in the simulated run with the same seed.
type element struct {
	exp     *experiment.Experiment
	seed    uint64
	server  string       // where requests come from that the server makes on behalf of pilots
	address string       // HOST:PORT
	bytes   atomic.Int64 // read and written

	mu      sync.Mutex
	readers map[string][]*access // by LFN: the jobs that read it, and which of their inputs it is
	writers map[string]*access   // by LFN
	failed  map[string]int       // accesses of a job, each of which was a try
}

// access is what a job does with a file.
type access struct {
	job   string
	input int
	times int // that it did
}

// refused is the answer to an access that fails. It says that trying again is no use, so
// that the attempt fails with it, as in the experiment.
const refused = http.StatusBadRequest

// newElement serves on a host, until the run ends.
func (r *round) newElement(at *netns.Host, real, server string) *element {
	e := &element{
		exp: r.exp, seed: r.seed, server: server,
		readers: map[string][]*access{}, writers: map[string]*access{}, failed: map[string]int{},
	}
	for _, j := range r.jobs {
		for i, lfn := range j.Reads {
			e.readers[lfn] = append(e.readers[lfn], &access{job: j.Name, input: i})
		}
		for _, lfn := range j.Writes {
			e.writers[lfn] = &access{job: j.Name}
		}
	}
	var listener net.Listener
	err := at.Inside(func() (err error) {
		listener, err = net.Listen("tcp", at.Address+":0")
		return err
	})
	if err != nil {
		r.Fatal(err)
	}
	e.address = listener.Addr().String()
	to := &httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(&url.URL{Scheme: "http", Host: real})
			p.Out.Host = p.In.Host // which nginx compares with where files are moved to
		},
		ModifyResponse: func(answer *http.Response) error {
			answer.Body = &counted{answer.Body, &e.bytes}
			return nil
		},
	}
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if e.refuses(q) {
			http.Error(w, "this access fails", refused)
			return
		}
		q.Body = &counted{q.Body, &e.bytes}
		to.ServeHTTP(w, q)
	})}
	go func() { _ = s.Serve(listener) }()
	r.Cleanup(func() { _ = s.Close() })
	return e
}

// lfnOf is the logical name of a stored file of a job.
func lfnOf(path string) string {
	_, name, _ := strings.Cut(path, "/step")
	if end := strings.LastIndex(name, ".v"); end >= 0 {
		return "step" + name[:end]
	}
	return ""
}

// refuses waits as long as an access takes, and reports whether it fails. A file is
// written when it gets its name. What a pilot was refused it tries again by way of the
// server, to no avail.
func (e *element) refuses(q *http.Request) bool {
	var delay time.Duration
	fails := "" // the job whose try does
	switch q.Method {
	case http.MethodGet:
		delay, fails = e.reads(lfnOf(q.URL.Path))
	case "MOVE":
		delay, fails = e.writes(lfnOf(q.Header.Get("Destination")))
	}
	if from, _, _ := net.SplitHostPort(q.RemoteAddr); from == e.server {
		return delay > 0
	}
	if sched.Default().WaitUntil(q.Context(), time.Now().Add(delay)) != nil {
		return true // the attempt was taken back: the try goes on elsewhere
	}
	if fails == "" {
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.failed[fails]++
	return true
}

// reads draws what the reader of a file meets with that has read it least often.
func (e *element) reads(lfn string) (delay time.Duration, fails string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.readers[lfn]) == 0 {
		return 0, ""
	}
	a := slices.MinFunc(e.readers[lfn], func(a, b *access) int { return a.times - b.times })
	a.times++
	random, _ := sim.Accesses(e.seed, a.job, 1+e.failed[a.job])
	n, last := e.exp.Workflow.Accesses, 0
	for range a.input + 1 {
		fails, last = e.drawFailure(random, a.job), random.IntN(n)
	}
	if fails == "" {
		last = n - 1
	}
	for range last + 1 {
		delay += e.exp.Storage[0].Delay(random, e.exp.Workflow.Run.Mean, n)
	}
	return delay, fails
}

// writes draws what the writer of a file meets with.
func (e *element) writes(lfn string) (delay time.Duration, fails string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	a := e.writers[lfn]
	if a == nil {
		return 0, ""
	}
	_, random := sim.Accesses(e.seed, a.job, 1+e.failed[a.job])
	delay = e.exp.Storage[0].Delay(random, e.exp.Workflow.Run.Mean, 1)
	return delay, e.drawFailure(random, a.job)
}

// drawFailure returns the job if its access fails.
func (e *element) drawFailure(random *rand.Rand, job string) string {
	if random.Float64() < float64(e.exp.Storage[0].FailureRate) {
		return job
	}
	return ""
}

// counted counts what is read.
type counted struct {
	io.ReadCloser
	bytes *atomic.Int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.bytes.Add(int64(n))
	return n, err
}
