package nextflow

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"fairway/test/program"
)

var fairway string

func TestMain(m *testing.M) { program.Main(m, &fairway) }

// libraries names the folder with the jars of Nextflow for the long tests. The short one takes those
// that `make test` installs.
const libraries = "FAIRWAY_TEST_NEXTFLOW"

const installed = "../../bin/nextflow-24.10.0"

// launch is a folder in which Nextflow is started.
type launch struct {
	t      *testing.T
	folder string
	path   string // with hq
	jars   string // of Nextflow
	server *exec.Cmd
}

// newLongLaunch is newLaunch for tests that take minutes.
func newLongLaunch(t *testing.T) *launch {
	t.Helper()
	jars := os.Getenv(libraries)
	if jars == "" {
		t.Skip("`make test-nextflow` runs this")
	}
	return newLaunch(t, jars)
}

func newLaunch(t *testing.T, jars string) *launch {
	t.Helper()
	jars, err := filepath.Abs(jars)
	if err == nil {
		_, err = os.Stat(jars)
	}
	if err != nil {
		t.Skipf("`make test` installs Nextflow: %v", err)
	}
	l := &launch{t: t, folder: t.TempDir(), jars: jars}
	bin := filepath.Join(t.TempDir(), "bin")
	l.path = bin + ":" + os.Getenv("PATH")
	if err := errors.Join(
		os.CopyFS(l.folder, os.DirFS("testdata")), os.Mkdir(bin, 0o755), os.Symlink(fairway, filepath.Join(bin, "hq")),
	); err != nil {
		t.Fatal(err)
	}
	return l
}

// serve has an open run in the folder, with two pilots.
func (l *launch) serve() {
	l.t.Helper()
	l.server = exec.Command(fairway, "-C", l.folder, "open", "--pilots", "2")
	if err := l.server.Start(); err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() {
		if l.server.ProcessState == nil {
			_ = l.server.Process.Signal(os.Interrupt)
			_ = l.server.Wait()
		}
	})
	for l.jobs("--limit", "1") == nil { // until it answers
		if l.server.ProcessState != nil {
			l.t.Fatal("the server has ended")
		}
	}
}

type job struct {
	ID                int
	Name, Step, State string
}

// jobs are those that `fairway jobs` lists; nil where nothing answers.
func (l *launch) jobs(flags ...string) []job {
	command := exec.Command(fairway, append([]string{"-C", l.folder, "jobs", "--json"}, flags...)...)
	out, err := command.Output()
	if err != nil {
		return nil
	}
	var answer struct{ Jobs []job }
	if err := json.Unmarshal(out, &answer); err != nil {
		l.t.Fatalf("%v\n%s", err, out)
	}
	return append([]job{}, answer.Jobs...)
}

// await waits for a job of a step in a state.
func (l *launch) await(step, state string) job {
	for {
		if found := l.jobs("--step", step, "--state", state); len(found) > 0 {
			return found[0]
		}
		if l.t.Context().Err() != nil {
			l.t.FailNow()
		}
	}
}

// nextflow starts Nextflow.
func (l *launch) nextflow(arguments ...string) (*exec.Cmd, *bytes.Buffer) {
	l.t.Helper()
	words := []string{"-XX:TieredStopAtLevel=1"}
	for _, name := range []string{
		"java.lang", "java.io", "java.nio", "java.net", "java.util", "java.util.concurrent.locks",
		"java.util.concurrent.atomic", "sun.nio.ch", "sun.nio.fs",
	} {
		words = append(words, "--add-opens=java.base/"+name+"=ALL-UNNAMED")
	}
	words = append(words, "-cp", l.jars+"/*", "nextflow.cli.Launcher", "-q")
	command := exec.CommandContext(l.t.Context(), "java", append(words, arguments...)...)
	command.Dir = l.folder
	command.Env = append(os.Environ(), "PATH="+l.path, "NXF_HOME="+filepath.Join(l.folder, "home"), "NXF_OFFLINE=true",
		"NXF_ANSI_LOG=false")
	said := new(bytes.Buffer)
	command.Stdout, command.Stderr = said, said
	if err := command.Start(); err != nil {
		l.t.Fatal(err)
	}
	return command, said
}

// run is nextflow until it has ended well.
func (l *launch) run(arguments ...string) {
	l.t.Helper()
	command, said := l.nextflow(arguments...)
	if err := command.Wait(); err != nil {
		log, _ := os.ReadFile(filepath.Join(l.folder, ".nextflow.log"))
		l.t.Fatalf("nextflow: %v\n%s\n%s", err, said, log)
	}
}

// trace is how often tasks ended how: PROCESS STATUS EXIT.
func (l *launch) trace(name string) map[string]int {
	l.t.Helper()
	file, err := os.Open(filepath.Join(l.folder, name))
	if err != nil {
		l.t.Fatal(err)
	}
	defer file.Close()
	reader := csv.NewReader(file)
	reader.Comma = '\t'
	rows, err := reader.ReadAll()
	if err != nil {
		l.t.Fatal(err)
	}
	ends := map[string]int{}
	for _, row := range rows[1:] {
		ends[strings.Join([]string{row[0], row[2], row[3]}, " ")]++
	}
	return ends
}

// result is what all tasks of main.nf have come to.
func (l *launch) result() string {
	l.t.Helper()
	text, err := os.ReadFile(filepath.Join(l.folder, "results/report.txt"))
	if err != nil {
		l.t.Fatal(err)
	}
	return string(text)
}

// Tasks that wait for others, and one that fails at first, end as Nextflow means them to.
func TestShort(t *testing.T) {
	l := newLaunch(t, installed)
	l.serve()
	l.run("run", "short.nf", "-process.executor", "hq", "-with-trace", "trace.txt")
	if got := l.result(); got != "A\nB\nC\n" {
		t.Errorf("the result is %q", got)
	}
	ends := l.trace("trace.txt")
	want := map[string]int{"UPPER COMPLETED 0": 3, "GATHER FAILED 7": 1, "GATHER COMPLETED 0": 1}
	if !maps.Equal(ends, want) {
		t.Errorf("tasks ended as %v, not as %v", ends, want)
	}
	if jobs := l.jobs("--state", "done"); len(jobs) != 4 {
		t.Errorf("%d jobs of Fairway are done: %v", len(jobs), jobs)
	}
}

// A workflow of twenty processes does as with Nextflow's own executor, also where Nextflow and the
// server are killed meanwhile.
func TestAsWithTheLocalExecutor(t *testing.T) {
	local := newLongLaunch(t)
	local.run("run", "main.nf", "-process.executor", "local", "-with-trace", "trace.txt")
	want, wantEnds := local.result(), local.trace("trace.txt")

	l := newLongLaunch(t)
	gate := filepath.Join(l.folder, "gate")
	l.serve()
	killed, said := l.nextflow("run", "main.nf", "-process.executor", "hq", "--gate", gate, "-with-trace", "killed.txt")
	l.await("GATHER", "running")
	for _, process := range []*exec.Cmd{killed, l.server} {
		if err := process.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = process.Wait()
	}
	if _, err := os.Stat(filepath.Join(l.folder, "results/report.txt")); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("it was killed too late: %v\n%s", err, said)
	}
	l.serve()
	if err := os.WriteFile(gate, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	l.run("run", "main.nf", "-process.executor", "hq", "--gate", gate, "-resume", "-with-trace", "trace.txt")
	if got := l.result(); got != want {
		t.Errorf("the result is\n%s\nwant\n%s", got, want)
	}
	ends := l.trace("trace.txt")
	if ends["UPPER CACHED 0"] != 8 || ends["HUNGRY CACHED 0"] != 8 || ends["REPORT COMPLETED 0"] != 1 {
		t.Errorf("after -resume: %v", ends)
	}
	// What was not done again ended before as with the local executor.
	before := l.trace("killed.txt")
	for _, end := range []string{"FLAKY FAILED 7", "HUNGRY FAILED 137", "FLAKY COMPLETED 0", "IGNORED FAILED 3"} {
		if before[end] != wantEnds[end] || before[end] == 0 {
			t.Errorf("%s: %d tasks, with the local executor %d", end, before[end], wantEnds[end])
		}
	}
}

// Tasks that fail, are killed, cancelled, run out of time or memory end for Nextflow as they do.
func TestEndsOfTasks(t *testing.T) {
	l := newLongLaunch(t)
	l.serve()
	command, said := l.nextflow("run", "ends.nf", "-process.executor", "hq", "-with-trace", "trace.txt")
	cancelled := l.await("CANCELLED", "running")
	for begun := filepath.Join(l.folder, "begun"); ; cancelled = l.await("CANCELLED", "running") {
		if _, err := os.Stat(begun); err == nil { // the wrapper of its command is past what may not be interrupted
			break
		}
	}
	if out, err := exec.Command(fairway, "-C", l.folder, "cancel", cancelled.Name).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if err := command.Wait(); err != nil {
		t.Fatalf("nextflow: %v\n%s", err, said)
	}
	ends := l.trace("trace.txt")
	for _, end := range []string{
		"FAILING FAILED 5", "KILLED FAILED -", "CANCELLED FAILED 143", "LATE FAILED 143", "GREEDY COMPLETED 0",
	} {
		if ends[end] != 1 {
			t.Errorf("no task ended as %q: %v", end, ends)
		}
	}
	if ends["GREEDY FAILED 143"]+ends["GREEDY FAILED 137"] != 1 {
		t.Errorf("a task that took too much memory ended otherwise: %v", ends)
	}
}

// Ctrl-C at Nextflow cancels what runs.
func TestInterrupted(t *testing.T) {
	l := newLongLaunch(t)
	l.serve()
	command, said := l.nextflow("run", "main.nf", "-process.executor", "hq", "--gate", filepath.Join(l.folder, "gate"))
	l.await("GATHER", "running")
	if err := command.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	_ = command.Wait()
	l.await("GATHER", "cancelled")
	if left := l.jobs("--state", "running", "--state", "ready", "--state", "waiting"); len(left) > 0 {
		t.Errorf("jobs are left: %v\n%s", left, said)
	}
}
