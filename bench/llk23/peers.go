package main

import (
	"embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"fairway/lib/subprocess"
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
	round        int     // from 0
	others       float64 // share of the cores that other programs took
}

// ask has a program run the kernel.
func ask(program *subprocess.Child) (answer, error) {
	line, err := program.Ask("run")
	if err != nil {
		return answer{}, err
	}
	a := answer{waitingShare: -1}
	if _, err := fmt.Sscan(line, &a.ns, &a.hash, &a.waitingShare); err != nil && a.hash == "" {
		return answer{}, fmt.Errorf("a program said %q: %w", line, err)
	}
	return a, nil
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
	if out, err := compile(folder, "gcc", listing8, flags...); err != nil {
		return fmt.Errorf("compiling the yardstick needs gcc (apt install gcc libc6-dev): %w\n%s", err, out)
	}
	compile(folder, "gcc", openMP, append(flags, "-fopenmp")...)
	compile(folder, "mpicc", mpi, flags...)
	return nil
}

func compile(folder, compiler, name string, flags ...string) ([]byte, error) {
	args := append(flags, "-o", filepath.Join(folder, name), filepath.Join(folder, name+".c"))
	return exec.Command(compiler, args...).CombinedOutput()
}

// packages is what a person installs for a peer that is absent.
var packages = map[string]string{openMP: "libgomp1", mpi: "libopenmpi-dev openmpi-bin"}

// peer returns the command of a C program, or errAbsent.
func peer(folder string, c config) (*exec.Cmd, error) {
	path := filepath.Join(folder, c.Transport)
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("%s is %w (apt install %s)", c.Transport, errAbsent, packages[c.Transport])
	}
	args := []string{strconv.Itoa(c.N), strconv.Itoa(c.Iterations)}
	if c.Transport == listing8 {
		return exec.Command(path, args...), nil
	}
	args = append(args, strconv.Itoa(c.Rows), strconv.Itoa(c.Columns))
	if c.Transport == openMP {
		cmd := exec.Command(path, args...)
		cmd.Env = append(os.Environ(), "OMP_NUM_THREADS="+strconv.Itoa(c.Cores))
		return cmd, nil
	}
	if _, err := exec.LookPath("mpirun"); err != nil {
		return nil, fmt.Errorf("%s is %w (apt install %s)", mpi, errAbsent, packages[mpi])
	}
	launch := []string{"--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1",
		"-n", strconv.Itoa(c.Rows * c.Columns), path}
	return exec.Command("mpirun", append(launch, args...)...), nil
}
