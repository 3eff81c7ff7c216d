package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"fairway/lib/sched"
)

// load is what a server has to bear.
type load struct {
	clients int
	lasts   time.Duration
}

// pause is the mean of the exponential pauses between requests for /hello.
const pause = 10 * time.Millisecond

// measurement is what one server showed.
type measurement struct {
	with      string
	latencies []time.Duration // of /hello, sorted
	pictures  float64         // per second
}

func (m measurement) quantile(q float64) time.Duration {
	return m.latencies[int(q*float64(len(m.latencies)-1))]
}

func (m measurement) String() string {
	round := func(q float64) time.Duration { return m.quantile(q).Round(10 * time.Microsecond) }
	return fmt.Sprintf("%-6s /hello: p50 %v, p90 %v, p99 %v, max %v (%d requests); %.1f pictures a second",
		m.with, round(0.5), round(0.9), round(0.99), round(1), len(m.latencies), m.pictures)
}

// measure puts the load on a server in a process of its own.
func measure(with string, l load) (m measurement, err error) {
	url, stop, err := start(with)
	if err != nil {
		return m, err
	}
	defer stop()
	return ask(url, with, l)
}

// start starts a server, and returns its address and what ends it.
func start(with string) (url string, stop func(), err error) {
	cmd := exec.Command("/proc/self/exe", "-serve", with)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	stop = func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		stop()
		return "", nil, err
	}
	return "http://" + strings.TrimSpace(line), stop, nil
}

func ask(url, with string, l load) (measurement, error) {
	sched.Default().React() // as if this client had a machine of its own
	ctx, cancel := context.WithTimeout(context.Background(), l.lasts)
	defer cancel()
	var wg sync.WaitGroup
	var pictures atomic.Int64
	for range l.clients {
		wg.Go(func() {
			for get(ctx, url+"/mandelbrot") == nil {
				pictures.Add(1)
			}
		})
	}
	m := measurement{with: with}
	var mu sync.Mutex
	for ctx.Err() == nil {
		// Requests come whether or not those before were answered.
		_ = sched.Default().Sleep(ctx, time.Duration(rand.ExpFloat64()*float64(pause)))
		wg.Go(func() {
			start := time.Now()
			if get(ctx, url+"/hello") == nil {
				mu.Lock()
				defer mu.Unlock()
				m.latencies = append(m.latencies, time.Since(start))
			}
		})
	}
	wg.Wait()
	if len(m.latencies) == 0 {
		return m, errors.New("no answer")
	}
	slices.Sort(m.latencies)
	m.pictures = float64(pictures.Load()) / l.lasts.Seconds()
	return m, nil
}

func get(ctx context.Context, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}
