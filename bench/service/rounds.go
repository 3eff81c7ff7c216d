package main

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"strings"
	"time"

	"fairway/bench/measure"
	"fairway/internal/store/storetest"
)

// places makes states and stores for servers.
type places struct {
	host     *measure.Host
	database *storetest.Database // nil until it is needed
}

func (p *places) config(store string, pilots int) serverConfig {
	c := serverConfig{folder: p.host.TempDir(), pilots: pilots}
	if store == postgres {
		if p.database == nil {
			p.database = storetest.DurablePostgres(p.host)
		}
		c.store = p.database.Address()
	}
	return c
}

// start starts a server with pilots and runs.
func (p *places) start(ctx context.Context, store string, pilots, runs int) (*load, error) {
	l, err := startLoad(ctx, p.config(store, pilots))
	if err != nil {
		return nil, err
	}
	if store == postgres {
		l.store = func() time.Duration {
			return measure.ProcessorTime(p.database.Process()) + measure.ProcessorTimeBelow(p.database.Process())
		}
	}
	if err := l.openRuns(ctx, runs); err != nil {
		l.end()
		return nil, err
	}
	return l, nil
}

// jobRows measures all stores with all numbers of runs, in turns.
func jobRows(ctx context.Context, host *measure.Host, p plan) ([]row, error) {
	at := &places{host: host}
	var rows []row
	for _, store := range p.stores {
		for _, runs := range p.runs {
			rows = append(rows, row{Name: "jobs", Store: store, Runs: runs, Jobs: p.jobs})
		}
	}
	measured := make([][]row, len(rows))
	for range p.rounds {
		for i, r := range rows {
			r, err := jobRound(ctx, at, p, r)
			if err != nil {
				return nil, fmt.Errorf("%s with %d runs: %w", r.Store, r.Runs, err)
			}
			measured[i] = append(measured[i], r)
		}
	}
	for i := range rows {
		rows[i] = medians(measured[i])
	}
	return rows, nil
}

// medians are those of what was measured in several rounds.
func medians(rounds []row) row {
	r := rounds[0]
	for _, field := range []func(*row) *float64{
		func(r *row) *float64 { return &r.Rate }, func(r *row) *float64 { return &r.P99 },
		func(r *row) *float64 { return &r.Calm },
		func(r *row) *float64 { return &r.Server }, func(r *row) *float64 { return &r.Database },
		func(r *row) *float64 { return &r.Load }, func(r *row) *float64 { return &r.Ratio },
	} {
		var values []float64
		for i := range rounds {
			values = append(values, *field(&rounds[i]))
		}
		*field(&r) = measure.Median(values)
	}
	return r
}

// jobRound is one round of a row, with a server of its own.
func jobRound(ctx context.Context, at *places, p plan, r row) (row, error) {
	l, err := at.start(ctx, r.Store, p.pilots, r.Runs)
	if err != nil {
		return r, err
	}
	defer l.end()
	if err := l.flood(ctx, p.jobs/10); err != nil {
		return r, err
	}
	if err := l.round(ctx, p, &r); err != nil {
		return r, err
	}
	if r.P99, err = l.assignedWithin(ctx, r.Rate/2, p.paced); err != nil {
		return r, err
	}
	r.Calm, err = l.assignedWithin(ctx, min(calmRate, r.Rate/2), p.paced)
	return r, err
}

// calmRate is half of the jobs per second that a server is asked for.
const calmRate = 2500

// assignedWithin is the time in ms within which all jobs but 1 % have reached a pilot, if they come at a
// rate.
func (l *load) assignedWithin(ctx context.Context, rate float64, lasts time.Duration) (float64, error) {
	times, err := l.pace(ctx, rate, lasts)
	if err != nil {
		return 0, err
	}
	return float64(times[len(times)*99/100].Microseconds()) / 1000, nil
}

// round has jobs done as fast as possible.
func (l *load) round(ctx context.Context, p plan, r *row) error {
	if p.profile != "" {
		if _, err := l.server.Ask("cpu " + p.profile); err != nil {
			return err
		}
	}
	before, began := l.spent(), time.Now()
	if err := l.flood(ctx, p.jobs); err != nil {
		return err
	}
	took, used := time.Since(began), l.spent().since(before)
	if p.profile != "" {
		if _, err := l.server.Ask("cpu"); err != nil {
			return err
		}
	}
	r.Rate = float64(p.jobs) / took.Seconds()
	r.Server, r.Database, r.Load = micros(used.server, p.jobs), micros(used.store, p.jobs), micros(used.load, p.jobs)
	return nil
}

// pageRow measures what an open page costs, in turns with and without it.
func pageRow(ctx context.Context, host *measure.Host, p plan) (row, error) {
	l, err := (&places{host: host}).start(ctx, sqlite, p.pilots, 1)
	if err != nil {
		return row{}, err
	}
	defer l.end()
	if err := l.flood(ctx, p.jobs/10); err != nil {
		return row{}, err
	}
	browser, err := enter(l.page)
	if err != nil {
		return row{}, err
	}
	var rounds []row
	for range p.rounds * 3 {
		without := row{Name: "page", Store: sqlite, Runs: 1, Jobs: p.jobs}
		with := without
		if err := l.round(ctx, p, &without); err != nil {
			return row{}, err
		}
		leave, err := browser.watch(ctx, fmt.Sprintf("/runs/%d?live=1", l.runs[0]))
		if err != nil {
			return row{}, err
		}
		err = l.round(ctx, p, &with)
		if events := leave(); err == nil && events == 0 {
			err = fmt.Errorf("the page has told nothing")
		}
		if err != nil {
			return row{}, err
		}
		with.Ratio = with.Server / without.Server
		rounds = append(rounds, with)
	}
	return medians(rounds), nil
}

// browser reads pages of a server.
type browser struct {
	client *http.Client
	base   string
}

// enter follows the link that lets a browser in.
func enter(link string) (*browser, error) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, err
	}
	base, _, _ := strings.Cut(link, "/?")
	b := &browser{client: &http.Client{Jar: jar}, base: base}
	answer, err := b.client.Get(link)
	if err != nil {
		return nil, err
	}
	return b, answer.Body.Close()
}

// watch reads the events of a stream until leave is called, which counts them.
func (b *browser) watch(ctx context.Context, path string) (leave func() (events int), err error) {
	ctx, cancel := context.WithCancel(ctx)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, b.base+path, nil)
	if err == nil {
		var answer *http.Response
		if answer, err = b.client.Do(request); err == nil && answer.StatusCode == http.StatusOK {
			counted := make(chan int)
			go func() {
				events := 0
				lines := bufio.NewScanner(answer.Body)
				lines.Buffer(nil, 16<<20)
				for lines.Scan() {
					if strings.HasPrefix(lines.Text(), "event: page") {
						events++
					}
				}
				_ = answer.Body.Close()
				counted <- events
			}()
			return func() int { cancel(); return <-counted }, nil
		}
		if err == nil {
			err = fmt.Errorf("%s: %s", path, answer.Status)
			_ = answer.Body.Close()
		}
	}
	cancel()
	return nil, err
}
