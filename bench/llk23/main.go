// Command llk23 measures the kernel 23 sweep of examples/llk23 against
// Listing 8 compiled by gcc, and against OpenMP and MPI.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"

	"fairway/bench/measure"
)

type row struct {
	N            int      `json:"n"`
	Cores        int      `json:"cores"`
	TasksPerCore int      `json:"tasks_per_core"`
	Processes    int      `json:"processes"`
	Transport    string   `json:"transport"`
	NSPerElement float64  `json:"ns_per_element"`
	WaitingShare *float64 `json:"waiting_share"` // null for peers, which don't tell
	SameBits     bool     `json:"same_bits"`
	CRatio       float64  `json:"c_ratio"`
}

func main() {
	if len(os.Args) == 3 && os.Args[1] == childFlag {
		exit(child(os.Args[2]))
	}
	asJSON := flag.Bool("json", false, "print one JSON object")
	quick := flag.Bool("quick", false, "only the small matrix, fewer rounds")
	paper := flag.Bool("paper", false, "repeat the experiments of the paper's section 4.2")
	docs := flag.String("docs", "docs", "where -paper writes its tables and plots")
	flag.Parse()
	if *paper {
		exit(repeatPaper(*docs))
	}
	exit(run(*asJSON, *quick))
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "llk23:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func run(asJSON, quick bool) error {
	folder, err := os.MkdirTemp("", "llk23")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	if err := buildPeers(folder); err != nil {
		return err
	}
	var rows []row
	for _, c := range all(quick) {
		add := func(transport string, cmd *exec.Cmd, err error) error {
			if errors.Is(err, errAbsent) {
				fmt.Fprintf(os.Stderr, "no row for %v: %v\n", c, err)
				return nil
			}
			if err != nil {
				return err
			}
			r, err := compare(c, cmd, yardstick(folder, c), rounds(c, quick))
			if err != nil {
				return fmt.Errorf("%v: %w", c, err)
			}
			r.Transport = transport
			rows = append(rows, r)
			return nil
		}
		cmd, err := childCommand(c)
		if err := add(c.Transport, cmd, err); err != nil {
			return err
		}
		if c.Processes > 1 || c.Cores*c.TasksPerCore == 1 {
			continue
		}
		for _, name := range []string{"openmp", "mpi"} {
			cmd, err := peer(folder, name, c)
			if err := add(name, cmd, err); err != nil {
				return err
			}
		}
	}
	return measure.Print(rows, asJSON, func(r row) string {
		waiting := ""
		if r.WaitingShare != nil {
			waiting = fmt.Sprintf("waiting %.1f %%", 100**r.WaitingShare)
		}
		return fmt.Sprintf("%5d² %d cores %2d tasks/core %d processes %-7s %6.2f ns/element  c_ratio %.2f  same bits %-5v  %s",
			r.N, r.Cores, r.TasksPerCore, r.Processes, r.Transport, r.NSPerElement, r.CRatio, r.SameBits, waiting)
	})
}

// rounds keeps the whole table within a quarter of an hour.
func rounds(c config, quick bool) int {
	if quick || c.N > 1000 {
		return 3
	}
	return 5
}

// compare alternates a candidate with the yardstick.
func compare(c config, candidate, yardstick *exec.Cmd, rounds int) (row, error) {
	// Children inherit the cores that this thread is confined to.
	defer confineThread(c.Cores)()
	ours, err := startRunner(candidate)
	if err != nil {
		return row{}, err
	}
	defer ours.stop()
	theirs, err := startRunner(yardstick)
	if err != nil {
		return row{}, err
	}
	defer theirs.stop()
	r := row{N: c.N, Cores: c.Cores, TasksPerCore: c.TasksPerCore, Processes: c.Processes, SameBits: true}
	var ns, c8, waiting []float64
	for range rounds {
		a, err := ours.run()
		if err != nil {
			return row{}, err
		}
		y, err := theirs.run()
		if err != nil {
			return row{}, err
		}
		ns, c8, waiting = append(ns, a.ns), append(c8, y.ns), append(waiting, a.waitingShare)
		r.SameBits = r.SameBits && a.hash == y.hash
	}
	r.NSPerElement = measure.Median(ns)
	if share := measure.Median(waiting); share >= 0 {
		r.WaitingShare = &share
	}
	r.CRatio = r.NSPerElement / measure.Median(c8)
	return r, nil
}
