package sites_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fairway/lib/sched"
	"fairway/test/files"
)

// asJob runs a workflow at a site whose job its server is, and returns what is printed and
// how the command ended.
func asJob(t *testing.T, folder, site string, arguments ...string) *watching {
	t.Helper()
	w := &watching{
		t: t, folder: folder,
		cmd: command(t, folder, append([]string{"run", "--site", site, "--server", "site"}, arguments...)...),
	}
	w.cmd.Stdout, w.cmd.Stderr = &w.said, &w.said
	if err := w.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return w
}

// watching is a `fairway run` that waits for the server.
type watching struct {
	t      *testing.T
	folder string
	cmd    *exec.Cmd
	said   bytes.Buffer
}

// wait returns the exit code of the command.
func (w *watching) wait() int {
	w.t.Helper()
	_ = w.cmd.Wait()
	return w.cmd.ProcessState.ExitCode()
}

// mustSucceed waits for the end of a run.
func (w *watching) mustSucceed() {
	w.t.Helper()
	if code := w.wait(); code != 0 {
		w.t.Fatalf("exit code %d\n%s\n%s\n%s", code, w.said.String(), pilotLogs(w.folder), serverLogs(w.folder))
	}
}

// serverLogs are what servers said that were batch jobs.
func serverLogs(folder string) string {
	var all strings.Builder
	logs := below(folder, ".fairway/servers/*.log")
	for _, log := range logs {
		text, _ := os.ReadFile(log)
		all.WriteString("== " + filepath.Base(log) + "\n" + string(text))
	}
	return all.String()
}

// awaitFile waits until a job has made a file.
func awaitFile(t *testing.T, w *watching, path string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := sched.Default().WaitFile(
		ctx, sched.FileQuery{Path: path, Until: func(f sched.FileState) bool { return f.Info != nil }},
	); err != nil {
		_ = w.cmd.Process.Kill()
		_ = w.cmd.Wait()
		t.Fatalf("%s: %v\n%s\n%s\n%s", path, err, w.said.String(), pilotLogs(w.folder), serverLogs(w.folder))
	}
}

// servers are the ids of the jobs of Slurm that are servers.
func servers(t *testing.T) (ids []string) {
	t.Helper()
	out, err := exec.Command("squeue", "--noheader", "--states=PENDING,RUNNING", "--format=%i %j").CombinedOutput()
	if err != nil {
		t.Fatal(err, string(out))
	}
	for line := range strings.Lines(string(out)) {
		if id, name, _ := strings.Cut(strings.TrimSpace(line), " "); strings.HasPrefix(name, "fairway-server.") {
			ids = append(ids, id)
		}
	}
	return ids
}

// nothingQueued waits until Slurm has seen that what has ended has ended.
func nothingQueued(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for left := "?"; left != ""; {
		if left = strings.TrimSpace(queue(t)); left != "" && sched.Default().Sleep(ctx, 100*time.Millisecond) != nil {
			t.Errorf("the batch system has after the run: %s", left)
			return
		}
	}
}

// The server is a job as its pilots are. Whoever is on the login node finds it by the state,
// over TLS; the Unix socket would be on another machine.
func slurmServerIsAJob(t *testing.T) {
	t.Helper()
	local := folderWith(t, workflow, "")
	run(t, local, "run")
	folder := folderWith(t, workflow, slurmSite)
	w := asJob(t, folder, "cluster")
	w.mustSucceed()
	mustEqual(t, results(t, folder), results(t, local))
	nothingOnNodes(t, folder)
	nothingQueued(t)
	if again := run(t, folder, "run", "--site", "cluster", "--server", "site"); !strings.Contains(again, "done") {
		t.Errorf("once more:\n%s", again)
	}
	run(t, folder, "clean")
	if left, err := os.ReadDir(filepath.Join(folder, ".fairway")); err == nil {
		t.Errorf("left: %v", left)
	}
}

// A server that is cancelled, as any job may be, loses nothing: the next one goes on.
func slurmServerJobIsCancelled(t *testing.T) {
	t.Helper()
	marks := t.TempDir()
	// However slow this machine is, the server is killed before the jobs end.
	text := strings.NewReplacer("${marks}", marks,
		"sleep 1.5", "until [ -e "+marks+"/go ]; do sleep 0.1; done").Replace(slow)
	folder := folderWith(t, text, strings.Replace(slurmSite, "max_pilots: 3", "max_pilots: 2", 1))
	most := countJobs(t)
	w := asJob(t, folder, "cluster")
	awaitFile(t, w, filepath.Join(marks, "0"))
	for _, asked := range []struct {
		arguments []string
		want      string
	}{{[]string{"jobs"}, "wait/0"}, {[]string{"explain", "wait/0"}, "running"}, {[]string{"run", "--dry-run"}, ""}} {
		out, err := command(t, folder, asked.arguments...).CombinedOutput()
		if asked.want != "" && (err != nil || !strings.Contains(string(out), asked.want)) {
			t.Errorf("fairway %s: %v\n%s", strings.Join(asked.arguments, " "), err, out)
		}
	}
	if out, err := command(t, folder, "run").CombinedOutput(); err == nil ||
		!strings.Contains(string(out), "another process runs the workflow") {
		t.Errorf("a second run: %v\n%s", err, out)
	}
	ids := servers(t)
	if len(ids) != 1 {
		t.Fatalf("servers: %v", ids)
	}
	if out, err := exec.Command("scancel", "--signal=KILL", "--full", ids[0]).CombinedOutput(); err != nil {
		t.Fatal(err, string(out))
	}
	files.Write(t, filepath.Join(marks, "go"), "")
	if code := w.wait(); code != 1 || !strings.Contains(w.said.String(), "run it again to go on") {
		t.Errorf("exit code %d\n%s", code, w.said.String())
	}
	asJob(t, folder, "cluster").mustSucceed()
	for name, text := range results(t, folder) {
		if want, _ := os.ReadFile(filepath.Join(folder, "in", filepath.Base(name)+".txt")); text != string(want) {
			t.Errorf("%s is not what was read", name)
		}
	}
	begun, _ := os.ReadFile(filepath.Join(marks, "0"))
	if n := strings.Count(string(begun), "begun"); n != 1 {
		t.Errorf("the job that ran when the server was killed began %d times\n%s", n, pilotLogs(folder))
	}
	if n := most(); n > 2 || n == 0 {
		t.Errorf("the batch system had %d pilots, of at most 2", n)
	}
}

// What a person does to a run whose server is a job works at Grid Engine too: logs that
// grow are followed, a job is cancelled, the run is stopped, and run once more it goes on.
func gridEngineServerIsAJob(t *testing.T) {
	t.Helper()
	marks := t.TempDir()
	text := strings.NewReplacer("${marks}", marks, "sleep 1.5",
		"until [ -e "+marks+"/go ] || [ -e "+marks+"/go$n ]; do sleep 0.1; done; echo let go").Replace(slow)
	folder := folderWith(t, text, strings.Replace(gridEngineSite, "max_pilots: 2", "max_pilots: 1", 1))
	w := asJob(t, folder, "farm")
	awaitFile(t, w, filepath.Join(marks, "0"))
	awaitFile(t, w, filepath.Join(marks, "1"))
	follower := command(t, folder, "logs", "-f", "wait/0")
	var followed bytes.Buffer
	follower.Stdout, follower.Stderr = &followed, &followed
	if err := follower.Start(); err != nil {
		t.Fatal(err)
	}
	run(t, folder, "cancel", "wait/1")
	if said := run(t, folder, "jobs"); !strings.Contains(said, "cancelled") {
		t.Errorf("after it was cancelled:\n%s", said)
	}
	files.Write(t, filepath.Join(marks, "go0"), "")
	if err := follower.Wait(); err != nil || !strings.Contains(followed.String(), "let go") {
		t.Errorf("the log of a job that runs, followed to its end: %v\n%s", err, followed.String())
	}
	run(t, folder, "stop", "--now")
	if code := w.wait(); code == 0 {
		t.Errorf("the run was stopped, and the command succeeded:\n%s", w.said.String())
	}
	run(t, folder, "retry", "wait/1")
	files.Write(t, filepath.Join(marks, "go"), "")
	asJob(t, folder, "farm").mustSucceed()
	for name, text := range results(t, folder) {
		if want, _ := os.ReadFile(filepath.Join(folder, "in", filepath.Base(name)+".txt")); text != string(want) {
			t.Errorf("%s is not what was read", name)
		}
	}
	noneLeft(t, folder)
}
