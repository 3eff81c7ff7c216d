package main

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

const nextflowVersion = "24.10.0"

const nextflowText = `params.tasks = 1
process NOTHING {
    cpus 1
    input: val n
    script: "true"
}
workflow { NOTHING(Channel.of(1..params.tasks)) }
`

// nextflowConfig is what docs/nextflow.md recommends, for short tasks.
const nextflowConfig = `executor {
    queueSize = 1000
    pollInterval = '500 ms'
    queueStatInterval = '5 sec'
    '$local' { cpus = 2; queueSize = 1000; pollInterval = '100 ms' }
}
trace { fields = 'submit,complete'; raw = true }
`

// nextflows are the ways to have the tasks of Nextflow run. The time is from the submission of the
// first task to the end of the last one, as Nextflow's trace has them.
func (b *bench) nextflows(tasks int) (all []*subject) {
	for _, way := range []struct{ name, executor string }{{"fairway", "hq"}, {"local", "local"}} {
		all = append(all, &subject{
			name: "nextflow " + way.name, tasks: tasks,
			run: func(ctx context.Context, tasks int) (float64, error) { return b.nextflow(ctx, way.executor, tasks) },
		})
	}
	return all
}

func (b *bench) nextflow(ctx context.Context, executor string, tasks int) (float64, error) {
	jars := filepath.Join(b.root, "bin", "nextflow-"+nextflowVersion)
	if _, err := os.Stat(jars); err != nil {
		_, err = b.run(ctx, b.root, "scripts/install-packages.sh", "openjdk-17-jre-headless", "maven")
		if err == nil {
			_, err = b.run(ctx, b.root, "scripts/install-nextflow.sh", nextflowVersion)
		}
		if err != nil {
			return 0, err
		}
	}
	folder, err := os.MkdirTemp(b.folder, "nextflow")
	if err != nil {
		return 0, err
	}
	hq := filepath.Join(filepath.Dir(b.fairway), "hq")
	if err := os.Link(b.fairway, hq); err != nil && !errors.Is(err, os.ErrExist) {
		return 0, err
	}
	if err := errors.Join(
		os.WriteFile(filepath.Join(folder, "main.nf"), []byte(nextflowText), 0o644),
		os.WriteFile(filepath.Join(folder, "nextflow.config"), []byte(nextflowConfig), 0o644),
	); err != nil {
		return 0, err
	}
	if executor == "hq" {
		server := exec.Command(b.fairway, "open", "--pilots", strconv.Itoa(slots))
		server.Dir = folder
		if err := server.Start(); err != nil {
			return 0, err
		}
		defer func() { _ = server.Process.Signal(os.Interrupt); _ = server.Wait() }()
	}
	words := []string{"NXF_HOME=" + filepath.Join(folder, "home"), "NXF_OFFLINE=true", "NXF_ANSI_LOG=false", "java",
		"-XX:TieredStopAtLevel=1"}
	for _, name := range []string{
		"java.lang", "java.io", "java.nio", "java.net", "java.util", "java.util.concurrent.locks",
		"java.util.concurrent.atomic", "sun.nio.ch", "sun.nio.fs",
	} {
		words = append(words, "--add-opens=java.base/"+name+"=ALL-UNNAMED")
	}
	words = append(words, "-cp", jars+"/*", "nextflow.cli.Launcher", "-q", "run", "main.nf", "-process.executor", executor,
		"-with-trace", "trace.txt", "--tasks", strconv.Itoa(tasks))
	if _, err := b.run(ctx, folder, "env", words...); err != nil {
		return 0, err
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
