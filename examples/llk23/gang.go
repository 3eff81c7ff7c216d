package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"fairway/examples/llk23/sweep"
	"fairway/lib/orwl"
)

// gang says how this process takes part in a gang of jobs.
type gang struct {
	every    time.Duration
	result   string
	check    bool
	progress string
}

func (g *gang) flags() {
	flag.DurationVar(&g.every, "every", 0, "as a task of a gang: time between two checkpoints")
	flag.StringVar(&g.result, "result", "", "as a task of a gang: file for the matrix, which task 0 writes")
	flag.StringVar(&g.progress, "progress", "", "as a task of a gang: file for the elements updated so far, in "+
		"lines of JSON, ten a second")
	flag.BoolVar(&g.check, "check", true, "as a task of a gang: compare with the sequential sweep, which takes longer")
}

// runTask computes the rows of blocks of one task, from the last checkpoint on.
func runTask(g *gang, p *sweep.Program) error {
	ctx := context.Background()
	m, err := orwl.Join(ctx)
	if err != nil {
		return err
	}
	defer m.Close()
	return compute(ctx, g, p, m)
}

func compute(ctx context.Context, g *gang, p *sweep.Program, m *orwl.Member) error {
	task, tasks := m.Process(), m.Processes()
	p.First, p.Last = task*p.Rows/tasks, (task+1)*p.Rows/tasks
	if p.First == p.Last {
		return fmt.Errorf("task %d of %d has none of %d rows of blocks", task, tasks, p.Rows)
	}
	if err := p.Build(); err != nil {
		return err
	}
	served := p.Frontiers()
	var own orwl.Handle // on the rows of this task, which nobody reads before they are there
	if g.result != "" {
		matrix, err := orwl.New(resultName(task), 8*p.N*p.N)
		if err != nil {
			return err
		}
		if err := own.WriteRequest(matrix); err != nil {
			return err
		}
		served = append(served, matrix)
	}
	var err error
	if p.Saves, err = m.Checkpoints(ctx, g.every, p.Locations()...); err != nil {
		return err
	}
	if err := m.Serve(ctx, served...); err != nil {
		return err
	}
	p.Others = m
	start := time.Now()
	told, err := g.tell(p, start)
	if err != nil {
		return err
	}
	if err := errors.Join(p.Insert(ctx), p.Run(ctx), told()); err != nil {
		return err
	}
	took := time.Since(start)
	last, saved, err := p.Saves.Saved()
	if err != nil {
		return err
	}
	fmt.Printf("task %d of %d: iterations %d to %d in %v, computing for %v; %d checkpoints, the last after %d\n", task,
		tasks, p.Saves.Begun(), (p.Iterations+p.Sweeps-1)/p.Sweeps, took.Round(time.Microsecond), p.Computing(), saved, last)
	if g.result != "" {
		err = orwl.Do(ctx, &own, func(rows []float64) error { return p.Result(ctx, rows) })
	}
	if g.result != "" && err == nil && task == 0 {
		err = gather(ctx, p, m, g.result)
	}
	if err := errors.Join(err, m.Finish(ctx)); err != nil {
		return err
	}
	if !g.check {
		return nil
	}
	return report(ctx, p, took)
}

// progress is a line of the file of -progress: the seconds since the beginning, the elements updated
// (sweep.Program.Updated), the seconds of processor time of this process, and the checkpoints stored.
type progress struct {
	Seconds     float64 `json:"seconds"`
	Updated     int64   `json:"updated"`
	Processor   float64 `json:"processor"`
	Checkpoints int     `json:"checkpoints"`
}

// tell writes the progress until told, which returns why it could not.
func (g *gang) tell(p *sweep.Program, start time.Time) (told func() error, err error) {
	if g.progress == "" {
		return func() error { return nil }, nil
	}
	file, err := os.Create(g.progress)
	if err != nil {
		return nil, err
	}
	stop, done := make(chan struct{}), make(chan error)
	go func() {
		ticks := time.NewTicker(100 * time.Millisecond)
		defer ticks.Stop()
		out := json.NewEncoder(file)
		for {
			_, saved, _ := p.Saves.Saved()
			var used unix.Rusage
			_ = unix.Getrusage(unix.RUSAGE_SELF, &used) // cannot fail for oneself
			err := out.Encode(progress{
				Seconds: time.Since(start).Seconds(), Updated: p.Updated(), Checkpoints: saved,
				Processor: float64(used.Utime.Nano()+used.Stime.Nano()) / 1e9,
			})
			select {
			case <-ticks.C:
				if err == nil {
					continue
				}
				<-stop
			case <-stop:
			}
			done <- errors.Join(err, file.Close())
			return
		}
	}()
	return func() error { close(stop); return <-done }, nil
}

func resultName(task int) string { return fmt.Sprint("result ", task) }

// gather writes the whole matrix to a file, from the rows of all tasks.
func gather(ctx context.Context, p *sweep.Program, m *orwl.Member, path string) error {
	matrix := make([]float64, p.N*p.N)
	for k := range m.Processes() {
		r, err := m.Resource(ctx, resultName(k))
		if err != nil {
			return err
		}
		var h orwl.Handle
		err = errors.Join(h.ReadRequest(r), orwl.DoReading(ctx, &h, func(rows []float64) error {
			for i, v := range rows {
				if math.Float64bits(v) != 0 { // those of other tasks are zero
					matrix[i] = v
				}
			}
			return nil
		}))
		if err != nil {
			return err
		}
	}
	sweep.Boundary(p.N, matrix)
	whole, err := orwl.New("matrix", 8*len(matrix))
	if err != nil {
		return err
	}
	whole.Initialize(func(b []byte) { copy(orwl.BytesAs[float64](b), matrix) })
	return orwl.WriteFile(ctx, whole, path)
}
