// Command gangs measures how much of the slots stands idle while jobs of several tasks, which begin
// together, and small jobs wait side by side. The TaskQueue is the real one; pilots and time are
// simulated, so that a seed gives the same figures on any machine.
//
//	go run ./bench/gangs -json
//
// A row is about all runs of one mix. Each begins with all jobs in the queue, in random order; idle is the
// part of the slots without a task, from the first job on until the first slot finds nothing to do
// because too few jobs are left, and idle_worst that of the worst run. gang_wait and small_wait
// are how long a job waits in the mean, in seconds, and alone is the idle part when nothing fills
// the gap before a job of several tasks: then small jobs do not wait in the queue with them, and
// come when these are done.
package main

import (
	"flag"
	"fmt"

	"fairway/bench/measure"
)

// mix is what waits in the queue.
type mix struct {
	name         string
	pilots       int
	slots        int // of each pilot
	gangs        int
	least, most  int // tasks of one
	small        int
	spread       float64 // of times: 0 has all jobs of a step take the same
	gangs1, one1 float64 // mean times in seconds, of a task and of a small job
}

var mixes = []mix{
	{"even times", 16, 4, 30, 2, 16, 2000, 0, 300, 60},
	{"mixed gangs and small jobs", 16, 4, 30, 2, 16, 2000, 0.5, 300, 60},
	{"large gangs", 16, 4, 12, 32, 64, 2000, 0.5, 300, 60},
	{"pilots of one slot", 64, 1, 30, 2, 16, 2000, 0.5, 300, 60},
	{"exponential times", 16, 4, 30, 2, 16, 2000, 1, 300, 60},
}

func main() {
	asJSON := flag.Bool("json", false, "print one JSON object")
	seed := flag.Uint64("seed", 1, "of the first run")
	runs := flag.Int("runs", 3, "runs of each row")
	flag.Parse()
	var rows []row
	for _, m := range mixes {
		r, err := m.measure(*seed, *runs)
		measure.ExitOn(err)
		rows = append(rows, r)
	}
	if !*asJSON {
		fmt.Println(heading)
	}
	measure.ExitOn(measure.Print(rows, *asJSON, row.String))
}

// row is what came of one mix.
type row struct {
	Name      string  `json:"name"`
	Slots     int     `json:"slots"`
	Gangs     int     `json:"gangs"`
	Tasks     string  `json:"tasks"`
	Small     int     `json:"small"`
	Runs      int     `json:"runs"`
	Idle      float64 `json:"idle"`
	IdleWorst float64 `json:"idle_worst"`
	Alone     float64 `json:"alone"`
	GangWait  float64 `json:"gang_wait"`
	SmallWait float64 `json:"small_wait"`
}

const heading = "mix                         slots gangs  tasks small runs   idle  worst  alone gang_wait small_wait"

func (r row) String() string {
	return fmt.Sprintf("%-27s %5d %5d %6s %5d %4d %6.4f %6.4f %6.4f %9.0f %10.0f", r.Name, r.Slots, r.Gangs, r.Tasks, r.Small,
		r.Runs, r.Idle, r.IdleWorst, r.Alone, r.GangWait, r.SmallWait)
}

func (m *mix) measure(seed uint64, runs int) (row, error) {
	r := row{
		Name: m.name, Slots: m.pilots * m.slots, Gangs: m.gangs, Tasks: fmt.Sprintf("%d-%d", m.least, m.most),
		Small: m.small, Runs: runs,
	}
	for i := range runs {
		w := newWorld(m, seed+uint64(i))
		if err := w.run(m.jobs(w, m.small)); err != nil {
			return r, err
		}
		r.Idle += w.idle() / float64(runs)
		r.IdleWorst = max(r.IdleWorst, w.idle())
		r.GangWait += w.gangWait.mean() / float64(runs)
		r.SmallWait += w.smallWait.mean() / float64(runs)
		alone := newWorld(m, seed+uint64(i))
		if err := alone.run(m.jobs(alone, 0)); err != nil {
			return r, err
		}
		r.Alone += alone.idle() / float64(runs)
	}
	return r, nil
}
