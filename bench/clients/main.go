// Command clients measures what people's own tools reach with Fairway behind them, in tasks a second:
// Python functions that do nothing through fairway.Executor, concurrent.futures.ProcessPoolExecutor,
// Dask, Parsl's HighThroughputExecutor and Ray; and a Snakefile of jobs that do nothing with the
// plugin for Fairway, its local executor and cluster-generic. All have two slots.
//
// It installs the tools from PyPI into bin/clients, if they are not there. One that cannot be had has
// no row, and standard error says why.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"fairway/bench/measure"
)

// row is the median of some rounds.
type row struct {
	Name        string  `json:"name"`
	TasksPerSec float64 `json:"tasks_per_s"`
}

func (r row) String() string { return fmt.Sprintf("%-32s %8.1f tasks/s", r.Name, r.TasksPerSec) }

// bench is where everything is.
type bench struct {
	root, python, folder string
	env                  []string
}

func main() {
	asJSON := flag.Bool("json", false, "print one JSON object")
	rounds := flag.Int("rounds", 3, "rounds, in each of which all have a turn")
	calls := flag.Int("calls", 1000, "calls of a Python function")
	jobs := flag.Int("jobs", 1000, "jobs of the Snakefile; a tenth of it for those that start Snakemake for each")
	only := flag.String("only", "", "measure those only whose names begin like this")
	flag.Parse()
	b, err := newBench()
	measure.ExitOn(err)
	defer func() { _ = os.RemoveAll(b.folder) }()
	type subject struct {
		name string
		run  func() (float64, error)
	}
	var subjects []subject
	for _, name := range []string{"fairway", "ProcessPoolExecutor", "dask", "parsl", "ray"} {
		subjects = append(subjects, subject{"python " + name, func() (float64, error) { return b.functions(name, *calls) }})
	}
	for _, s := range []struct {
		name  string
		jobs  int
		flags []string
	}{
		{"fairway", *jobs, []string{"--executor", "fairway", "--jobs", "100"}},
		{"fairway cold", *jobs / 10, []string{"--executor", "fairway", "--fairway-cold", "--jobs", "100"}},
		{"local", *jobs, []string{"--cores", "2"}},
		{"cluster-generic", *jobs / 10, []string{
			"--executor", "cluster-generic", "--jobs", "2", "--cluster-generic-submit-cmd", "./submit",
			"--seconds-between-status-checks", "0", "--max-status-checks-per-second", "100",
		}},
	} {
		subjects = append(subjects, subject{
			"snakemake " + s.name, func() (float64, error) { return b.snakemake(s.jobs, s.flags) },
		})
	}
	rates := map[string][]float64{}
	for range *rounds {
		for _, s := range subjects {
			if !strings.HasPrefix(s.name, *only) {
				continue
			}
			rate, err := s.run()
			if err != nil {
				fmt.Fprintf(os.Stderr, "%s: %v\n", s.name, err)
				continue
			}
			rates[s.name] = append(rates[s.name], rate)
		}
	}
	var rows []row
	for _, s := range subjects {
		if len(rates[s.name]) > 0 {
			rows = append(rows, row{s.name, measure.Median(rates[s.name])})
		}
	}
	measure.ExitOn(measure.Print(rows, *asJSON, row.String))
}

// newBench builds fairway and installs the tools.
func newBench() (*bench, error) {
	root, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	b := &bench{root: root, python: filepath.Join(root, "bin/clients/bin/python")}
	if b.folder, err = os.MkdirTemp("", "clients"); err != nil {
		return nil, err
	}
	program := filepath.Join(b.folder, "fairway")
	if out, err := exec.Command("go", "build", "-o", program, "./cmd/fairway").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("building fairway: %w\n%s", err, out)
	}
	python := filepath.Join(root, "python")
	b.env = append(os.Environ(), "FAIRWAY_BIN="+program,
		"PATH="+filepath.Dir(b.python)+":"+os.Getenv("PATH"), "PYTHONPATH="+filepath.Join(python, "src")+":"+
			filepath.Join(python, "snakemake-executor-plugin-fairway/src"), "RAY_ENABLE_UV_RUN_RUNTIME_ENV=0")
	if _, err := os.Stat(b.python); err == nil {
		return b, nil
	}
	environment := filepath.Join(root, "bin/clients")
	if out, err := exec.Command("python3", "-m", "venv", environment).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("an environment for Python: %w\n%s", err, out)
	}
	for _, tools := range [][]string{
		{"cloudpickle", "snakemake==9.27.1", "snakemake-executor-plugin-cluster-generic"},
		{"dask[distributed]"}, {"parsl"}, {"ray"},
	} {
		words := append([]string{"-m", "pip", "-q", "install"}, tools...)
		if out, err := exec.Command(b.python, words...).CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "pip install %v: %v\n%s", tools, err, out)
		}
	}
	return b, nil
}

// functions has a library call a function so often, and returns calls a second.
func (b *bench) functions(name string, calls int) (float64, error) {
	out, err := b.run(b.python, filepath.Join(b.root, "bench/clients/functions.py"), name, strconv.Itoa(calls))
	if err != nil {
		return 0, err
	}
	lines := strings.Fields(string(out))
	if len(lines) == 0 {
		return 0, fmt.Errorf("it said nothing")
	}
	return strconv.ParseFloat(lines[len(lines)-1], 64)
}

const snakefile = `rule all:
    input: expand("made/{i}", i=range(%d))
rule one:
    output: "made/{i}"
    shell: "touch {output}"
`

// snakemake runs a Snakefile of so many jobs, and returns jobs a second, with all that comes before and
// after them.
func (b *bench) snakemake(jobs int, flags []string) (float64, error) {
	folder, err := os.MkdirTemp(b.folder, "snakemake")
	if err != nil {
		return 0, err
	}
	for name, text := range map[string]string{
		"Snakefile": fmt.Sprintf(snakefile, jobs), "submit": "#!/bin/sh\nsetsid sh \"$1\" >/dev/null 2>&1 &\necho $!\n",
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o755); err != nil {
			return 0, err
		}
	}
	words := append([]string{"-m", "snakemake", "--quiet", "all", "--directory", folder, "--snakefile",
		filepath.Join(folder, "Snakefile"), "--scheduler", "greedy"}, flags...)
	began := time.Now()
	if _, err := b.runIn(folder, b.python, words...); err != nil {
		return 0, err
	}
	took := time.Since(began)
	made, err := os.ReadDir(filepath.Join(folder, "made"))
	if err == nil && len(made) != jobs {
		err = fmt.Errorf("%d of %d files were made", len(made), jobs)
	}
	return float64(jobs) / took.Seconds(), err
}

func (b *bench) run(program string, words ...string) ([]byte, error) {
	return b.runIn(b.folder, program, words...)
}

func (b *bench) runIn(folder, program string, words ...string) ([]byte, error) {
	command := exec.Command(program, words...)
	command.Dir, command.Env = folder, b.env
	var said bytes.Buffer
	command.Stderr = &said
	out, err := command.Output()
	if err != nil {
		text := strings.TrimSpace(said.String())
		return nil, fmt.Errorf("%w: %s", err, text[max(0, len(text)-600):])
	}
	return out, nil
}
