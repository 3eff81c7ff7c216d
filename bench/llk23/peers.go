package main

import (
	"bufio"
	"embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
)

//go:embed peers
var sources embed.FS

// errAbsent says that a peer cannot be built or run here.
var errAbsent = errors.New("not on this machine")

// answer is what a measured program says of one run.
type answer struct {
	ns           float64 // per element and sweep
	hash         string
	waitingShare float64 // negative where the program does not tell
}

// runner is a program that runs the kernel each time it is asked.
type runner struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func startRunner(cmd *exec.Cmd) (*runner, error) {
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", cmd.Path, err)
	}
	return &runner{cmd, in, bufio.NewReader(out)}, nil
}

func (r *runner) run() (answer, error) {
	if _, err := io.WriteString(r.in, "run\n"); err != nil {
		return answer{}, err
	}
	line, err := r.out.ReadString('\n')
	if err != nil {
		return answer{}, fmt.Errorf("%s ended: %w", r.cmd.Path, err)
	}
	a := answer{waitingShare: -1}
	if _, err := fmt.Sscan(line, &a.ns, &a.hash, &a.waitingShare); err != nil && a.hash == "" {
		return answer{}, fmt.Errorf("%s said %q: %w", r.cmd.Path, line, err)
	}
	return a, nil
}

func (r *runner) stop() {
	r.in.Close()
	r.cmd.Wait()
}

// buildPeers compiles the C programs into a folder; what cannot be compiled
// here is missing there.
func buildPeers(folder string) error {
	entries, err := sources.ReadDir("peers")
	if err != nil {
		return err
	}
	for _, e := range entries {
		b, err := sources.ReadFile("peers/" + e.Name())
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(folder, e.Name()), b, 0o644); err != nil {
			return err
		}
	}
	flags := []string{"-O3", "-march=native", "-ffp-contract=off", "-std=gnu11"}
	if out, err := compile(folder, "gcc", "listing8", flags...); err != nil {
		return fmt.Errorf("compiling the yardstick needs gcc: %w\n%s", err, out)
	}
	compile(folder, "gcc", "openmp", append(flags, "-fopenmp")...)
	compile(folder, "mpicc", "mpi", flags...)
	return nil
}

func compile(folder, compiler, name string, flags ...string) ([]byte, error) {
	args := append(flags, "-o", filepath.Join(folder, name), filepath.Join(folder, name+".c"))
	return exec.Command(compiler, args...).CombinedOutput()
}

// yardstick is Listing 8 on one core.
func yardstick(folder string, c config) *exec.Cmd {
	return exec.Command(filepath.Join(folder, "listing8"), strconv.Itoa(c.N), strconv.Itoa(c.Iterations))
}

// peer returns the command of a peer, or errAbsent.
func peer(folder, name string, c config) (*exec.Cmd, error) {
	path := filepath.Join(folder, name)
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("%s: %w", name, errAbsent)
	}
	args := []string{strconv.Itoa(c.N), strconv.Itoa(c.Iterations), strconv.Itoa(c.Rows), strconv.Itoa(c.Columns)}
	if name == "openmp" {
		cmd := exec.Command(path, args...)
		cmd.Env = append(os.Environ(), "OMP_NUM_THREADS="+strconv.Itoa(c.Cores))
		return cmd, nil
	}
	launch := []string{"--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", strconv.Itoa(c.Rows * c.Columns), path}
	return exec.Command("mpirun", append(launch, args...)...), nil
}
