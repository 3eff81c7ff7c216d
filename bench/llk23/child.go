package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"fairway/examples/llk23/sweep"
	"fairway/lib/subprocess"
)

// childFlag makes this program a measured process of a configuration.
const childFlag = "-child"

func childCommand(c config) (*exec.Cmd, error) {
	b, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	cmd := subprocess.Self(childFlag, string(b))
	if c.onHosts() {
		words := append([]string{"--net=/run/netns/" + c.host(c.Namespaces), cmd.Path}, cmd.Args[1:]...)
		cmd = exec.Command("nsenter", words...)
	}
	return cmd, nil
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
	runtime.GOMAXPROCS(c.Cores)
	in := bufio.NewReader(os.Stdin)
	if c.Transport == withoutLocks {
		return alone(c, in)
	}
	if c.Process > 0 {
		return follow(c, in)
	}
	l, err := startFollowers(c)
	if err != nil {
		return err
	}
	defer l.stop()
	for {
		if _, err := in.ReadString('\n'); err != nil {
			return nil
		}
		a, err := l.run(c)
		if err != nil {
			return err
		}
		fmt.Printf("%.4f %s %.4f\n", a.ns, a.hash, a.waitingShare)
	}
}

// alone runs the kernel without any lock; on several cores one on each, with a matrix of its own,
// which shows what these cores can do at once.
func alone(c config, in *bufio.Reader) error {
	for {
		if _, err := in.ReadString('\n'); err != nil {
			return nil
		}
		matrices, computes := make([][]float64, c.Cores), make([]func(), c.Cores)
		for k := range computes {
			matrices[k], computes[k] = sweep.Blocked(c.N, c.Iterations, sweep.DefaultSweeps)
		}
		var all sync.WaitGroup
		start := time.Now()
		for _, compute := range computes {
			all.Go(compute)
		}
		all.Wait()
		wall := time.Since(start)
		fmt.Printf("%.4f %s\n", perElement(c, wall)/float64(c.Cores), hash(matrices[0]))
	}
}

func perElement(c config, wall time.Duration) float64 {
	return float64(wall) / float64((c.N-2)*(c.N-2)*c.Iterations)
}

// hash is FNV-1a over the words of the matrix, as in the C programs.
func hash(matrix []float64) string {
	h := uint64(0xcbf29ce484222325)
	for _, v := range matrix {
		h = (h ^ math.Float64bits(v)) * 0x100000001b3
	}
	return fmt.Sprintf("%016x", h)
}
