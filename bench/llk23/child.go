package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"fairway/examples/llk23/sweep"
)

// childFlag makes this program a measured process of a configuration.
const childFlag = "-child"

func childCommand(c config) (*exec.Cmd, error) {
	b, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return exec.Command(self, childFlag, string(b)), nil
}

// confineThread keeps this thread, and so the processes that it starts, on the
// first cores, until the function returned is called.
func confineThread(cores int) func() {
	runtime.LockOSThread()
	var before, set unix.CPUSet
	unix.SchedGetaffinity(0, &before)
	for i := range cores {
		set.Set(i)
	}
	unix.SchedSetaffinity(0, &set)
	return func() {
		unix.SchedSetaffinity(0, &before)
		runtime.UnlockOSThread()
	}
}

// child answers each line on its standard input with a run.
func child(text string) error {
	var c config
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return err
	}
	for s := bufio.NewScanner(os.Stdin); s.Scan(); {
		a, err := runOnce(c)
		if err != nil {
			return err
		}
		fmt.Printf("%.4f %s %.4f\n", a.ns, a.hash, a.waitingShare)
	}
	return nil
}

func runOnce(c config) (answer, error) {
	ctx := context.Background()
	runtime.GOMAXPROCS(c.Cores)
	p := sweep.Program{Cut: sweep.NewCut(c.N, c.Rows, c.Columns, sweep.DefaultSweeps), Last: c.Rows, Iterations: c.Iterations}
	if err := p.Build(); err != nil {
		return answer{}, err
	}
	start := time.Now()
	if err := p.Run(ctx); err != nil {
		return answer{}, err
	}
	wall := time.Since(start)
	matrix := make([]float64, c.N*c.N)
	sweep.Boundary(c.N, matrix)
	if err := p.Result(ctx, matrix); err != nil {
		return answer{}, err
	}
	return answer{
		ns:           float64(wall) / float64((c.N-2)*(c.N-2)*c.Iterations),
		hash:         hash(matrix),
		waitingShare: 1 - float64(p.Computing())/float64(wall)/float64(c.Cores),
	}, nil
}

// hash is FNV-1a over the words of the matrix, as in the C programs.
func hash(matrix []float64) string {
	h := uint64(0xcbf29ce484222325)
	for _, v := range matrix {
		h = (h ^ math.Float64bits(v)) * 0x100000001b3
	}
	return fmt.Sprintf("%016x", h)
}
