package main

import (
	"fmt"
	"math/rand/v2"
	"os/exec"
	"runtime"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

type row struct {
	Name        string   `json:"name"`
	Checkpoints bool     `json:"checkpoints"`
	Computing   int      `json:"computing"`
	Mean        float64  `json:"mean_us"`
	P50         float64  `json:"p50_us"`
	P99         float64  `json:"p99_us"`
	Max         float64  `json:"max_us"`
	Ratio       *float64 `json:"work_ratio"`
	Samples     int      `json:"samples"`
}

// series gathers the runs of one row.
type series struct {
	config  serverConfig
	foreign bool
	runs    []run
	ratios  []float64
}

func (s *series) name() string {
	if s.foreign {
		return s.config.mode + "+foreign"
	}
	return s.config.mode
}

// rowsFor lists the rows for n computing tasks.
func rowsFor(n int, foreign bool, priorities int) []*series {
	var list []*series
	add := func(mode string, checkpoints bool) {
		list = append(list, &series{config: serverConfig{mode, n, checkpoints, priorities}, foreign: foreign})
	}
	if !foreign {
		for _, mode := range []string{"gosched", "netconn", "locked-thread"} {
			add(mode, false)
		}
	}
	for _, mode := range []string{"sched-poll", "sched-eager", "sched-block", "sched-adaptive"} {
		add(mode, true)
		add(mode, false)
	}
	return list
}

func measureAll(p plan, pick selection, priorities int) ([]row, error) {
	runtime.LockOSThread()
	preferClient()
	fd, err := keepStamping()
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	var rows []row
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 0))
	for _, foreign := range []bool{false, true} {
		plan := p.alone
		if foreign {
			plan = p.beside
		}
		for _, n := range plan.tasks {
			list := slices.DeleteFunc(rowsFor(n, foreign, priorities), func(s *series) bool { return !pick.has(s) })
			if err := measureBeside(list, n, foreign, plan, p.pause, random); err != nil {
				return nil, err
			}
			for _, s := range list {
				rows = append(rows, s.row())
			}
		}
	}
	return rows, nil
}

// measureBeside runs the rows in alternation, with foreign processes if asked.
func measureBeside(list []*series, n int, foreign bool, p schedule, pause time.Duration, random *rand.Rand) error {
	if len(list) == 0 {
		return nil
	}
	if foreign {
		stop, err := startForeign()
		if err != nil {
			return err
		}
		defer stop()
	}
	for range p.rounds {
		if err := round(list, n, conversation{p.each, pause, random}); err != nil {
			return err
		}
	}
	return nil
}

// round runs each row once, in random order, between two runs of the yardstick.
func round(list []*series, n int, talk conversation) error {
	yardstick := func() (run, error) {
		if n == 0 {
			return run{}, nil
		}
		return measureOne(serverConfig{mode: "plain", computing: n}, talk, true)
	}
	before, err := yardstick()
	if err != nil {
		return fmt.Errorf("yardstick: %w", err)
	}
	rates := make([]float64, len(list))
	for _, i := range talk.random.Perm(len(list)) {
		r, err := measureOne(list[i].config, talk, false)
		if err != nil {
			return fmt.Errorf("%s with %d tasks: %w", list[i].name(), n, err)
		}
		list[i].runs = append(list[i].runs, r)
		rates[i] = r.rate
	}
	after, err := yardstick()
	if err != nil {
		return fmt.Errorf("yardstick: %w", err)
	}
	for i := range list {
		list[i].ratios = append(list[i].ratios, rates[i]/((before.rate+after.rate)/2))
	}
	return nil
}

// startForeign keeps every processor busy with processes at nice 0.
func startForeign() (stop func(), err error) {
	var started []*exec.Cmd
	stop = func() {
		for _, c := range started {
			_ = c.Process.Kill()
			_ = c.Wait()
		}
	}
	for range runtime.NumCPU() {
		c := exec.Command("/bin/sh", "-c", "while :; do :; done")
		c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		if err := c.Start(); err != nil {
			stop()
			return nil, err
		}
		started = append(started, c)
	}
	return stop, nil
}

// row sums the runs up: reactions of all, and the median of the ratios.
func (s *series) row() row {
	var all []time.Duration
	for _, r := range s.runs {
		all = append(all, r.reactions...)
	}
	slices.Sort(all)
	r := row{Name: s.name(), Checkpoints: s.config.checkpoints, Computing: s.config.computing, Samples: len(all)}
	if len(all) > 0 {
		var sum time.Duration
		for _, d := range all {
			sum += d
		}
		r.Mean = us(sum) / float64(len(all))
		r.P50, r.P99, r.Max = us(all[len(all)/2]), us(all[len(all)*99/100]), us(all[len(all)-1])
	}
	if s.config.computing > 0 {
		slices.Sort(s.ratios)
		r.Ratio = &s.ratios[len(s.ratios)/2]
	}
	return r
}

func us(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

var heading = fmt.Sprintf("%-24s %-11s %9s %11s %11s %11s %11s %10s",
	"name", "checkpoints", "computing", "mean us", "p50 us", "p99 us", "max us", "work ratio")

func (r row) String() string {
	ratio := "-"
	if r.Ratio != nil {
		ratio = fmt.Sprintf("%.3f", *r.Ratio)
	}
	return fmt.Sprintf("%-24s %-11v %9d %11.1f %11.1f %11.1f %11.1f %10s",
		r.Name, r.Checkpoints, r.Computing, r.Mean, r.P50, r.P99, r.Max, ratio)
}
