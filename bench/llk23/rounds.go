package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"time"

	"fairway/bench/measure"
	"fairway/lib/subprocess"
)

// table is the measurements of one size of matrix.
type table struct {
	folder  string
	configs []config
	runs    map[config][]answer // by rounds
	done    int                 // rounds
}

func run(quick bool, sizes ...int) (measure.Result, error) {
	folder, err := os.MkdirTemp("", "llk23")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	if err := buildPeers(folder); err != nil {
		return nil, err
	}
	var rows []row
	for _, n := range sizes {
		t := table{folder: folder, configs: round(n), runs: make(map[config][]answer)}
		if err := t.fill(budget(n, quick)); err != nil {
			return nil, err
		}
		rows = append(rows, t.rows()...)
	}
	return measure.Rows("", rows, row.String), nil
}

// budget is the time for a size. All together they leave three minutes of a quarter of
// an hour for rounds that take longer than the ones before.
func budget(n int, quick bool) time.Duration {
	switch {
	case quick:
		return 30 * time.Second
	case n <= 1000:
		return 2 * time.Minute
	}
	return 8 * time.Minute
}

// fill does as many rounds as fit into the time, and one at least.
func (t *table) fill(limit time.Duration) error {
	start := time.Now()
	took := make(map[bool]time.Duration) // by the last round, with peers and without
	for t.done == 0 || time.Since(start)+cmp.Or(took[t.withPeers()], took[true]) <= limit {
		began := time.Now()
		if err := t.round(start.Add(limit)); err != nil {
			return err
		}
		took[t.withPeers()] = time.Since(began)
		t.done++
	}
	return nil
}

// peerRounds is how many rounds there are for one with OpenMP and MPI: they take
// the most time, and are so much slower that fewer rounds tell.
const peerRounds = 3

func (t *table) withPeers() bool { return t.done%peerRounds == 0 }

func (c config) peer() bool { return c.Transport == openMP || c.Transport == mpi }

// round runs each program once. What cannot run here is left out from then on.
// Runs are not repeated after the deadline.
func (t *table) round(deadline time.Time) error {
	present := t.configs[:0]
	for _, c := range t.configs {
		if c.peer() && !t.withPeers() {
			present = append(present, c)
			continue
		}
		a, err := t.calmest(c, deadline)
		if errors.Is(err, errAbsent) {
			fmt.Fprintf(os.Stderr, "no row for %v: %v\n", c, err)
			continue
		}
		if err != nil {
			return fmt.Errorf("%v: %w", c, err)
		}
		fmt.Fprintf(os.Stderr, "llk23: round %d, %v: %.2f ns per element, others took %.0f %%\n", t.done+1, c, a.ns,
			100*a.others)
		t.runs[c] = append(t.runs[c], a)
		present = append(present, c)
	}
	t.configs = present
	return nil
}

// calmest runs a program, again where others disturbed it, and returns the run that
// was disturbed least.
func (t *table) calmest(c config, deadline time.Time) (answer, error) {
	best, err := t.once(c)
	for k := 1; k < attempts && err == nil && best.others > mostOthers && time.Now().Before(deadline); k++ {
		var again answer
		if again, err = t.once(c); again.others < best.others {
			best = again
		}
	}
	return best, err
}

// once runs a program on its cores: children inherit those that this thread is
// confined to.
func (t *table) once(c config) (answer, error) {
	cmd, err := command(t.folder, c)
	if err != nil {
		return answer{}, err
	}
	defer confineThread(c.Cores)()
	others := watch(c.Cores)
	r, err := subprocess.Start(cmd)
	if err != nil {
		return answer{}, err
	}
	a, err := ask(r)
	_ = r.Stop()
	a.round, a.others = t.done, others(cmd)
	return a, err
}
