// Nextflow measures how many tasks that do nothing Nextflow brings through in a second: with its
// executor for HyperQueue, which finds Fairway under the name hq, and with its own local executor,
// on two slots each.
//
//	go run ./bench/nextflow -json
//
// The time is from the submission of the first task to the end of the last one, as Nextflow's trace
// has them. scripts/install-nextflow.sh installs Nextflow.
package main

import (
	"context"
	"encoding/csv"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"fairway/bench/measure"
)

// slots is how many tasks run at a time.
const slots = 2

const workflow = `params.tasks = 1
process NOTHING {
    cpus 1
    input: val n
    script: "true"
}
workflow { NOTHING(Channel.of(1..params.tasks)) }
`

// configuration is what docs/nextflow.md recommends, for short tasks.
const configuration = `executor {
    queueSize = 1000
    pollInterval = '500 ms'
    queueStatInterval = '5 sec'
    '$local' { cpus = 2; queueSize = 1000; pollInterval = '100 ms' }
}
trace { fields = 'submit,complete'; raw = true }
`

type row struct {
	Name        string  `json:"name"`
	TasksPerSec float64 `json:"tasks_per_s"`
}

func main() {
	asJSON := flag.Bool("json", false, "print one JSON object")
	tasks := flag.Int("tasks", 1000, "tasks of each run")
	jars := flag.String("nextflow", "bin/nextflow-24.10.0", "folder with the jars of Nextflow")
	flag.Parse()
	rows, err := measureAll(context.Background(), *tasks, *jars)
	measure.ExitOn(err)
	measure.ExitOn(measure.Print(rows, *asJSON, func(r row) string {
		return fmt.Sprintf("%-24s %6.1f tasks/s", r.Name, r.TasksPerSec)
	}))
}

func measureAll(ctx context.Context, tasks int, jars string) ([]row, error) {
	jars, err := filepath.Abs(jars)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(jars); err != nil {
		return nil, fmt.Errorf("scripts/install-nextflow.sh 24.10.0 installs Nextflow: %w", err)
	}
	scratch, err := os.MkdirTemp("", "nextflow")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	hq := filepath.Join(scratch, "bin", "hq")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", hq, "./cmd/fairway").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("building fairway: %w\n%s", err, out)
	}
	fairway := filepath.Join(filepath.Dir(hq), "fairway")
	if err := os.Link(hq, fairway); err != nil {
		return nil, err
	}
	var rows []row
	for _, executor := range []string{"hq", "local"} {
		rate, err := measureOne(ctx, filepath.Join(scratch, executor), fairway, jars, executor, tasks)
		if err != nil {
			return nil, fmt.Errorf("executor %s: %w", executor, err)
		}
		name := map[string]string{"hq": "nextflow with fairway", "local": "nextflow alone"}[executor]
		rows = append(rows, row{name, rate})
	}
	return rows, nil
}

func measureOne(ctx context.Context, folder, fairway, jars, executor string, tasks int) (rate float64, err error) {
	if err := errors.Join(
		os.Mkdir(folder, 0o755),
		os.WriteFile(filepath.Join(folder, "main.nf"), []byte(workflow), 0o644),
		os.WriteFile(filepath.Join(folder, "nextflow.config"), []byte(configuration), 0o644),
	); err != nil {
		return 0, err
	}
	if executor == "hq" {
		server := exec.CommandContext(ctx, fairway, "open", "--pilots", strconv.Itoa(slots))
		server.Dir = folder
		if err := server.Start(); err != nil {
			return 0, err
		}
		defer func() { _ = server.Process.Signal(os.Interrupt); _ = server.Wait() }()
	}
	words := []string{"-XX:TieredStopAtLevel=1"}
	for _, name := range []string{
		"java.lang", "java.io", "java.nio", "java.net", "java.util", "java.util.concurrent.locks",
		"java.util.concurrent.atomic", "sun.nio.ch", "sun.nio.fs",
	} {
		words = append(words, "--add-opens=java.base/"+name+"=ALL-UNNAMED")
	}
	words = append(words, "-cp", jars+"/*", "nextflow.cli.Launcher", "-q", "run", "main.nf", "-process.executor", executor,
		"-with-trace", "trace.txt", "--tasks", strconv.Itoa(tasks))
	nextflow := exec.CommandContext(ctx, "java", words...)
	nextflow.Dir = folder
	nextflow.Env = append(os.Environ(), "NXF_HOME="+filepath.Join(folder, "home"), "NXF_OFFLINE=true",
		"NXF_ANSI_LOG=false", "PATH="+filepath.Dir(fairway)+":"+os.Getenv("PATH"))
	if out, err := nextflow.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("nextflow: %w\n%s", err, out)
	}
	return rateOf(filepath.Join(folder, "trace.txt"), tasks)
}

// rateOf reads the times of tasks, in milliseconds, from a trace.
func rateOf(trace string, tasks int) (float64, error) {
	text, err := os.ReadFile(trace)
	if err != nil {
		return 0, err
	}
	reader := csv.NewReader(strings.NewReader(string(text)))
	reader.Comma = '\t'
	lines, err := reader.ReadAll()
	if err != nil {
		return 0, err
	}
	if len(lines) != tasks+1 {
		return 0, fmt.Errorf("%d tasks are in the trace, not %d", len(lines)-1, tasks)
	}
	first, last := int64(0), int64(0)
	for _, line := range lines[1:] {
		submitted, err := strconv.ParseInt(line[0], 10, 64)
		completed, err2 := strconv.ParseInt(line[1], 10, 64)
		if err := errors.Join(err, err2); err != nil {
			return 0, fmt.Errorf("trace: %w", err)
		}
		if first == 0 || submitted < first {
			first = submitted
		}
		last = max(last, completed)
	}
	return float64(tasks) / (float64(last-first) / 1000), nil
}
