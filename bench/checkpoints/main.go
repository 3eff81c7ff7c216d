// Command checkpoints measures what checkpoints by order cost a gang, and what the loss of a node
// costs, with examples/llk23 as the program:
//
//	cost    the time with a checkpoint every so often, over that without, in turns
//	kill    how much longer it takes when one task is killed and all begin again
//
// The tasks are processes of this machine, which stand for hosts: parts are sent to task 0. It needs
// no root.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
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
	// Seconds with checkpoints, and without (cost) or without a kill (kill).
	Seconds float64 `json:"seconds"`
	Without float64 `json:"without_s"`
	// Checkpoints is how many were made in all rounds, and CPUEach the processor time of one in seconds;
	// CPUShare is that over the time of all cores in an interval.
	Checkpoints int      `json:"checkpoints,omitempty"`
	CPUEach     *float64 `json:"cpu_s_each,omitempty"`
	CPUShare    *float64 `json:"cpu_share,omitempty"`
	// Cost is the median over the rounds of how much longer it takes, as a share; CPUCost the same of
	// processor time. A kill has Lost instead: by how many intervals it takes longer.
	Cost    *float64 `json:"cost,omitempty"`
	CPUCost *float64 `json:"cpu_cost,omitempty"`
	Lost    *float64 `json:"lost_intervals,omitempty"`
	Rounds  int      `json:"rounds"`
}

func (r row) String() string {
	s := fmt.Sprintf("%-5s %5d² %d tasks, every %4.1f s %6.1f MB  %7.2f s, without %7.2f s", r.Name, r.N, r.Tasks,
		r.EveryS, r.SavedMB, r.Seconds, r.Without)
	if r.Cost != nil {
		s += fmt.Sprintf("  cost %.1f %%, of processor time %.1f %%", 100**r.Cost, 100**r.CPUCost)
	}
	if r.CPUEach != nil {
		s += fmt.Sprintf("; %d checkpoints of %.2f s, %.1f %% of all cores", r.Checkpoints, *r.CPUEach, 100**r.CPUShare)
	}
	if r.Lost != nil {
		s += fmt.Sprintf("  lost %.2f intervals", *r.Lost)
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
	flag.IntVar(&s.iterations, "iterations", 2560, "sweeps: enough for some intervals")
	flag.IntVar(&s.rounds, "rounds", 3, "rounds of each row")
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
	tasks []*exec.Cmd
	out   []*bytes.Buffer
	began time.Time
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

func (s *settings) start(tasks int, folders []string, every time.Duration) (*gang, error) {
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
		cmd := exec.Command(s.program, "-n", strconv.Itoa(s.n), "-rows", "8", "-columns", "2", "-iterations",
			strconv.Itoa(s.iterations), "-every", every.String(), "-check=false")
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

// wait waits for all, and returns the time and the processor time in seconds.
func (g *gang) wait() (wall, cpu float64, err error) {
	for k, cmd := range g.tasks {
		if e := cmd.Wait(); e != nil {
			err = errors.Join(err, fmt.Errorf("task %d: %w: %s", k, e, g.out[k]))
		}
		cpu += (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
	}
	return time.Since(g.began).Seconds(), cpu, err
}

// end kills all.
func (g *gang) end() error {
	for _, cmd := range g.tasks {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	return nil
}

// once runs a gang from its beginning to its end.
func (s *settings) once(tasks int, folders []string, every time.Duration) (wall, cpu float64, saved int, err error) {
	g, err := s.start(tasks, folders, every)
	if err != nil {
		return 0, 0, 0, err
	}
	wall, cpu, err = g.wait()
	if m := checkpointCount.FindSubmatch(g.out[0].Bytes()); m != nil {
		saved, _ = strconv.Atoi(string(m[1]))
	}
	return wall, cpu, saved, err
}

// checkpointCount finds in what a task says how many it has made.
var checkpointCount = regexp.MustCompile(`; (\d+) checkpoints`)

// never is an interval that no run lasts.
const never = 1000 * time.Hour

func (s *settings) cost(tasks int) (row, error) {
	r := row{Name: "cost", N: s.n, Tasks: tasks, EveryS: s.every.Seconds(), Rounds: s.rounds}
	var with, without, costs, cpuCosts []float64
	more := 0.0 // processor time
	for range s.rounds {
		folders, err := s.folders(tasks)
		if err != nil {
			return r, err
		}
		wall, cpu, saved, err := s.once(tasks, folders, s.every)
		if err != nil {
			return r, err
		}
		if r.SavedMB, err = savedMB(folders[0]); err != nil {
			return r, err
		}
		if folders, err = s.folders(tasks); err != nil {
			return r, err
		}
		wallWithout, cpuWithout, _, err := s.once(tasks, folders, never)
		if err != nil {
			return r, err
		}
		r.Checkpoints += saved
		more += cpu - cpuWithout
		with, without = append(with, wall), append(without, wallWithout)
		costs, cpuCosts = append(costs, wall/wallWithout-1), append(cpuCosts, cpu/cpuWithout-1)
	}
	cost, cpuCost := measure.Median(costs), measure.Median(cpuCosts)
	r.Seconds, r.Without, r.Cost, r.CPUCost = measure.Median(with), measure.Median(without), &cost, &cpuCost
	if r.Checkpoints > 0 {
		each := more / float64(r.Checkpoints)
		share := each / (s.every.Seconds() * float64(s.cores))
		r.CPUEach, r.CPUShare = &each, &share
	}
	return r, nil
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
	var with, without, lost []float64
	for round := range s.rounds {
		folders, err := s.folders(tasks)
		if err != nil {
			return r, err
		}
		undisturbed, _, _, err := s.once(tasks, folders, s.every)
		if err != nil {
			return r, err
		}
		if folders, err = s.folders(tasks); err != nil {
			return r, err
		}
		began := time.Now()
		g, err := s.start(tasks, folders, s.every)
		if err != nil {
			return r, err
		}
		// Each round at another place between two checkpoints.
		share := 0.5 + float64(round)/float64(s.rounds)*s.every.Seconds()/undisturbed
		victim := g.tasks[round%tasks].Process
		late := time.AfterFunc(time.Duration(share*undisturbed*float64(time.Second)), func() { _ = victim.Kill() })
		_, _, err = g.wait()
		late.Stop()
		if err == nil {
			return r, errors.New("the gang came to its end before a task was killed: take more iterations")
		}
		if _, _, _, err := s.once(tasks, folders, s.every); err != nil {
			return r, err
		}
		took := time.Since(began).Seconds()
		with, without = append(with, took), append(without, undisturbed)
		lost = append(lost, (took-undisturbed)/s.every.Seconds())
		if r.SavedMB, err = savedMB(folders[0]); err != nil {
			return r, err
		}
	}
	intervals := measure.Median(lost)
	r.Seconds, r.Without, r.Lost = measure.Median(with), measure.Median(without), &intervals
	return r, nil
}
