// Command checkpoints measures what checkpoints by order cost a gang, and what the loss of a node
// costs, with examples/llk23 as the program:
//
//	cost    the work in an interval with a checkpoint, against the intervals beside it without one
//	kill    how much longer it takes when one task is lost, the others are ended, and all begin again
//
// The tasks are processes of this machine, which stand for hosts: parts are sent to task 0. It needs
// no root.
package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"fairway/bench/measure"
	"fairway/lib/orwl"
	"fairway/lib/orwl/orwltest"
)

// row is a line of the table.
type row struct {
	Name   string  `json:"name"` // cost or kill
	N      int     `json:"n"`
	Tasks  int     `json:"tasks"`
	EveryS float64 `json:"every_s"`
	// SavedMB is the size of a checkpoint, in MB.
	SavedMB float64 `json:"saved_mb"`
	// MUpdates is millions of elements that are computed in a second of an interval with a checkpoint, and
	// without one (cost).
	MUpdates        float64 `json:"mupdates_s,omitempty"`
	MUpdatesWithout float64 `json:"mupdates_s_without,omitempty"`
	// Seconds with a kill, and without (kill).
	Seconds float64 `json:"seconds,omitempty"`
	Without float64 `json:"without_s,omitempty"`
	// Cost is the median over checkpoints of how much longer the same work takes in an interval with
	// one, as a share, between its Quartiles; CPUCost is the same of processor time.
	Cost      *float64  `json:"cost,omitempty"`
	Quartiles []float64 `json:"quartiles,omitempty"`
	CPUCost   *float64  `json:"cpu_cost,omitempty"`
	// Lost is by how many intervals a gang that is killed takes longer. Of that, Again is computed once
	// more, and StartS are the seconds until the new tasks compute.
	Lost   *float64 `json:"lost_intervals,omitempty"`
	Again  float64  `json:"again_intervals,omitempty"`
	StartS float64  `json:"start_s,omitempty"`
	Rounds int      `json:"rounds"`
}

func (r row) String() string {
	s := fmt.Sprintf("%-5s %5d² %d tasks, every %4.1f s %6.1f MB, %d rounds", r.Name, r.N, r.Tasks, r.EveryS, r.SavedMB,
		r.Rounds)
	if r.Cost != nil {
		s += fmt.Sprintf("  %.0f updates/us, without %.0f: cost %.1f %% (%.1f to %.1f), of processor time %.1f %%",
			r.MUpdates, r.MUpdatesWithout, 100**r.Cost, 100*r.Quartiles[0], 100*r.Quartiles[1], 100**r.CPUCost)
	}
	if r.Lost != nil {
		s += fmt.Sprintf("  %.2f s, without %.2f s  lost %.2f intervals: %.2f computed again, %.1f s to begin",
			r.Seconds, r.Without, *r.Lost, r.Again, r.StartS)
	}
	return s
}

// settings are those of all rows.
type settings struct {
	n, iterations, rounds int
	every                 time.Duration
	cores                 int
	program, folder       string
}

func main() {
	asJSON := flag.Bool("json", false, "print one JSON object")
	s := settings{cores: 2}
	flag.IntVar(&s.n, "n", 4000, "rows and columns of the matrix")
	flag.IntVar(&s.iterations, "iterations", 2560, "sweeps of a gang that is killed: enough for some intervals")
	flag.IntVar(&s.rounds, "rounds", 5, "checkpoints, or kills, of each row")
	flag.DurationVar(&s.every, "every", 10*time.Second, "time between two checkpoints")
	only := flag.String("only", "", "only this row: cost or kill")
	folder := flag.String("folder", "", "where checkpoints are stored; empty: where temporary files are")
	flag.Parse()
	host := measure.NewHost("checkpoints", *folder)
	defer host.End()
	s.folder = host.TempDir()
	s.program = filepath.Join(s.folder, "llk23")
	if text, err := exec.Command("go", "build", "-o", s.program, "./examples/llk23").CombinedOutput(); err != nil {
		host.Fatalf("building the program: %v\n%s", err, text)
	}
	var rows []row
	for _, tasks := range []int{1, 2} {
		if *only == "kill" {
			break
		}
		r, err := s.cost(tasks)
		measure.ExitOn(err)
		fmt.Fprintln(os.Stderr, "checkpoints:", r)
		rows = append(rows, r)
	}
	if *only != "cost" {
		r, err := s.kill(2)
		measure.ExitOn(err)
		rows = append(rows, r)
	}
	measure.ExitOn(measure.Print(rows, *asJSON, row.String))
}

// gang is one attempt under way.
type gang struct {
	tasks    []*exec.Cmd
	out      []*bytes.Buffer
	progress []string // files
	began    time.Time
	took     time.Duration // until all had ended
}

// folders are new, one for each task.
func (s *settings) folders(tasks int) (all []string, err error) {
	for range tasks {
		folder, err := os.MkdirTemp(s.folder, "state")
		if err != nil {
			return nil, err
		}
		all = append(all, folder)
	}
	return all, nil
}

func (s *settings) start(tasks int, folders []string, every time.Duration, iterations int) (*gang, error) {
	files, err := os.MkdirTemp(s.folder, "gang")
	if err != nil {
		return nil, err
	}
	paths, err := orwltest.Gang{Tasks: tasks, Folders: folders}.Write(files)
	if err != nil {
		return nil, err
	}
	g := &gang{began: time.Now()}
	for _, path := range paths {
		g.progress = append(g.progress, path+".progress")
		cmd := exec.Command(s.program, "-n", strconv.Itoa(s.n), "-rows", "8", "-columns", "2", "-iterations",
			strconv.Itoa(iterations), "-every", every.String(), "-check=false", "-progress", path+".progress")
		cmd.Env = append(os.Environ(), orwl.GangVariable+"="+path, fmt.Sprint("GOMAXPROCS=", max(1, s.cores/tasks)))
		out := new(bytes.Buffer)
		cmd.Stdout, cmd.Stderr = out, out
		if err := cmd.Start(); err != nil {
			return nil, errors.Join(err, g.end())
		}
		g.tasks, g.out = append(g.tasks, cmd), append(g.out, out)
	}
	return g, nil
}

// wait waits for all.
func (g *gang) wait() (err error) {
	for k, cmd := range g.tasks {
		if e := cmd.Wait(); e != nil {
			err = errors.Join(err, fmt.Errorf("task %d: %w: %s", k, e, g.out[k]))
		}
	}
	g.took = time.Since(g.began)
	return err
}

// end kills all.
func (g *gang) end() error {
	for _, cmd := range g.tasks {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	return nil
}

// attempt is what one attempt of a gang has done.
type attempt struct{ seconds, computing, updates float64 }

// once runs a gang to its end.
func (s *settings) once(tasks int, folders []string) (a attempt, err error) {
	g, err := s.start(tasks, folders, s.every, s.iterations)
	if err != nil {
		return a, err
	}
	if err := g.wait(); err != nil {
		return a, err
	}
	return g.done()
}

// killed runs a gang for some seconds.
func (s *settings) killed(tasks int, folders []string, seconds float64) (a attempt, err error) {
	g, err := s.start(tasks, folders, s.every, s.iterations)
	if err != nil {
		return a, err
	}
	late := time.AfterFunc(time.Duration(seconds*float64(time.Second)), func() {
		for _, task := range g.tasks { // as a TaskQueue ends the others; by themselves they notice after their lease
			_ = task.Process.Kill()
		}
	})
	defer late.Stop()
	if g.wait() == nil {
		return a, errors.New("the gang came to its end before a task was killed: take more iterations")
	}
	return g.done()
}

// done is what an attempt that has ended did.
func (g *gang) done() (attempt, error) {
	c, err := g.course()
	if err != nil {
		return attempt{}, err
	}
	a := attempt{seconds: g.took.Seconds()}
	for _, samples := range c.tasks {
		if len(samples) > 0 {
			last := samples[len(samples)-1]
			a.computing, a.updates = max(a.computing, last.Seconds), a.updates+last.Updated
		}
	}
	return a, nil
}

// cost runs one gang that makes a checkpoint in every second interval, and compares each such
// interval with the two beside it: what else changes on a machine is slower than that.
func (s *settings) cost(tasks int) (row, error) {
	r := row{Name: "cost", N: s.n, Tasks: tasks, EveryS: s.every.Seconds(), Rounds: s.rounds}
	folders, err := s.folders(tasks)
	if err != nil {
		return r, err
	}
	g, err := s.start(tasks, folders, 2*s.every, math.MaxInt32)
	if err != nil {
		return r, err
	}
	course, err := g.follow(s.rounds, s.every)
	_ = g.end()
	if err != nil {
		return r, err
	}
	var rates, ratesWithout, costs, cpuCosts []float64
	for _, at := range course.checkpoints[:s.rounds] {
		every := s.every.Seconds()
		with := course.between(at-every/2, at+every/2)
		before, after := course.between(at-3*every/2, at-every/2), course.between(at+every/2, at+3*every/2)
		without := (before.updates + after.updates) / 2
		rates, ratesWithout = append(rates, with.updates/every/1e6), append(ratesWithout, without/every/1e6)
		costs = append(costs, without/with.updates-1)
		cpuCosts = append(cpuCosts, with.cpu/with.updates/((before.cpu+after.cpu)/2/without)-1)
	}
	cost, cpuCost := measure.Median(costs), measure.Median(cpuCosts)
	slices.Sort(costs)
	r.Quartiles = []float64{costs[len(costs)/4], costs[len(costs)-1-len(costs)/4]}
	r.MUpdates, r.MUpdatesWithout, r.Cost, r.CPUCost = measure.Median(rates), measure.Median(ratesWithout), &cost, &cpuCost
	r.SavedMB, err = savedMB(folders[0])
	return r, err
}

// course is how far a gang has come, from its beginning on.
type course struct {
	tasks       [][]sample
	checkpoints []float64 // when task 0 had stored its part, in seconds; the first is left out
}

// sample is a line of what a task tells by -progress.
type sample struct {
	Seconds     float64
	Updated     float64
	Processor   float64
	Checkpoints int
}

// follow waits until so many checkpoints, apart from the first, have an interval after them.
func (g *gang) follow(rounds int, every time.Duration) (course, error) {
	last := -1.0
	for {
		time.Sleep(every)
		c, err := g.course()
		if err != nil {
			return c, err
		}
		all := c.tasks[0]
		for i := range all[:max(1, len(all))-1] {
			if all[i+1].Checkpoints > max(1, all[i].Checkpoints) {
				c.checkpoints = append(c.checkpoints, all[i+1].Seconds)
			}
		}
		if len(c.checkpoints) >= rounds && all[len(all)-1].Seconds > c.checkpoints[rounds-1]+2*every.Seconds() {
			return c, nil
		}
		if len(all) == 0 || all[len(all)-1].Seconds <= last {
			return c, fmt.Errorf("task 0 does not go on: %s", g.out[0])
		}
		last = all[len(all)-1].Seconds
	}
}

// course reads how far the tasks have come.
func (g *gang) course() (c course, err error) {
	for k, path := range g.progress {
		text, err := os.ReadFile(path)
		if err != nil {
			return c, fmt.Errorf("task %d tells nothing: %w: %s", k, err, g.out[k])
		}
		samples, err := parse(text)
		if err != nil {
			return c, err
		}
		c.tasks = append(c.tasks, samples)
	}
	return c, nil
}

// parse leaves out a last line that is being written.
func parse(text []byte) (all []sample, err error) {
	for line := range bytes.Lines(text) {
		if !bytes.HasSuffix(line, []byte("\n")) {
			break
		}
		var s sample
		if err := json.Unmarshal(line, &s); err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

// work is what all tasks did in a time.
type work struct{ updates, cpu float64 }

func (c course) between(from, to float64) (w work) {
	for _, samples := range c.tasks {
		f, t := at(samples, from), at(samples, to)
		w.updates += t.updates - f.updates
		w.cpu += t.cpu - f.cpu
	}
	return w
}

// at is what a task had done at a time, between the two samples beside it.
func at(samples []sample, seconds float64) work {
	i, _ := slices.BinarySearchFunc(samples, seconds, func(s sample, t float64) int { return cmp.Compare(s.Seconds, t) })
	i = min(max(i, 1), len(samples)-1)
	a, b := samples[i-1], samples[i]
	share := (seconds - a.Seconds) / (b.Seconds - a.Seconds)
	return work{a.Updated + share*(b.Updated-a.Updated), a.Processor + share*(b.Processor-a.Processor)}
}

// savedMB is the size of the last whole checkpoint.
func savedMB(folder string) (float64, error) {
	var w struct {
		Parts []struct{ Size float64 }
	}
	text, err := os.ReadFile(filepath.Join(folder, "whole.json"))
	if err == nil {
		err = json.Unmarshal(text, &w)
	}
	mb := 0.0
	for _, p := range w.Parts {
		mb += p.Size / 1e6
	}
	return mb, err
}

// kill runs gangs with a task killed in the middle, beside gangs that nobody kills.
func (s *settings) kill(tasks int) (row, error) {
	r := row{Name: "kill", N: s.n, Tasks: tasks, EveryS: s.every.Seconds(), Rounds: s.rounds}
	var with, without, lost, again, start []float64
	for round := range s.rounds {
		folders, err := s.folders(tasks)
		if err != nil {
			return r, err
		}
		whole, err := s.once(tasks, folders)
		if err != nil {
			return r, err
		}
		if folders, err = s.folders(tasks); err != nil {
			return r, err
		}
		// Each round at another place between two checkpoints.
		share := 0.5 + float64(round)/float64(s.rounds)*s.every.Seconds()/whole.seconds
		first, err := s.killed(tasks, folders, share*whole.seconds)
		if err != nil {
			return r, err
		}
		second, err := s.once(tasks, folders)
		if err != nil {
			return r, err
		}
		took := first.seconds + second.seconds
		with, without = append(with, took), append(without, whole.seconds)
		lost = append(lost, (took-whole.seconds)/s.every.Seconds())
		interval := whole.updates / whole.computing * s.every.Seconds()
		again = append(again, (first.updates+second.updates-whole.updates)/interval)
		start = append(start, second.seconds-second.computing)
		fmt.Fprintf(os.Stderr, "checkpoints: round %d: %.2f s, without %.2f s, lost %.2f intervals: %.2f computed again, "+
			"%.1f s to begin\n", round+1, took, whole.seconds, lost[round], again[round], start[round])
		if r.SavedMB, err = savedMB(folders[0]); err != nil {
			return r, err
		}
	}
	intervals := measure.Median(lost)
	r.Seconds, r.Without, r.Lost = measure.Median(with), measure.Median(without), &intervals
	r.Again, r.StartS = measure.Median(again), measure.Median(start)
	return r, nil
}
