package sites_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"fairway/internal/batch/batchtest"
	"fairway/lib/sched"
)

// patient has jobs that tell which process they are when they begin, and take a while.
const patient = `workflow: patient
inputs:
  numbers: {files: 'in/{n}.txt', as: 'in/{n}'}
steps:
  work:
    each: in/{n}
    writes: out/{n}
    command: echo $$ >> ${marks}/$n; sleep 3; cp "$in" "$out"
`

// A node that dies, with its slurmd and the pilot, costs what ran there. The rest goes to the
// other pilot at once, and what ran too when Slurm says that the node has failed: the run
// does not wait for the lease of the pilot, which is hours.
func TestSlurmNodeDies(t *testing.T) {
	cluster := batchtest.Slurm(t, "SlurmdTimeout=6", "MessageTimeout=3")
	marks := t.TempDir()
	sites := strings.Replace(slurmSite, "max_pilots: 3", "max_pilots: 2\n    lease: 3h", 1)
	folder := folderWith(t, strings.ReplaceAll(patient, "${marks}", marks), sites)
	cmd := command(t, folder, "run", "--site", "cluster")
	out := new(strings.Builder)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		ended <- cmd.Wait()
		cancel()
	}()
	began := sched.FileQuery{
		Path: filepath.Join(marks, "0"), Until: func(f sched.FileState) bool { return f.Info != nil && f.Info.Size() > 0 },
	}
	if _, err := sched.Default().WaitFile(ctx, began); err != nil {
		t.Fatal("no job began:", err, <-ended, out, pilotLogs(folder))
	}
	killNodeOf(t, cluster, filepath.Join(marks, "0"))
	if err := <-ended; err != nil {
		t.Fatalf("%v\n%s\n%s", err, out, pilotLogs(folder))
	}
	for name, text := range results(t, folder) {
		if want, _ := os.ReadFile(filepath.Join(folder, "in", filepath.Base(name)+".txt")); text != string(want) {
			t.Errorf("%s is not what was read", name)
		}
	}
	again := 0
	for i := range 8 {
		begun, _ := os.ReadFile(filepath.Join(marks, fmt.Sprint(i)))
		again += strings.Count(string(begun), "\n") - 1
	}
	if again < 1 || again > 2 {
		t.Errorf("%d jobs began again, and at most 2 ran on the node\n%s", again, out)
	}
}

// killNodeOf kills all that lets a node be known of whose pilot runs the job that has written its
// process to a file: slurmd, slurmstepd, the pilot and the job.
func killNodeOf(t *testing.T, cluster *batchtest.Cluster, mark string) {
	t.Helper()
	text, err := os.ReadFile(mark)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	var line []int // the job and those that it comes from
	var node string
	for node == "" {
		line = append(line, pid)
		said, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err != nil || pid < 2 {
			t.Fatalf("job %d is of no slurmstepd: %v", line[0], err)
		}
		if job := stepOf.FindStringSubmatch(string(said)); job != nil {
			out, err := exec.Command("squeue", "--noheader", "--job="+job[1], "--format=%N").Output()
			if err != nil {
				t.Fatal(err)
			}
			node = strings.TrimSpace(string(out))
		}
		pid = parentOf(t, pid)
	}
	for i := range batchtest.SlurmNodes {
		if batchtest.NodeName(i) == node {
			cluster.KillNode(i)
		}
	}
	for i := len(line) - 1; i >= 0; i-- {
		_ = syscall.Kill(line[i], syscall.SIGKILL)
	}
}

// stepOf finds the job in the command line of a slurmstepd.
var stepOf = regexp.MustCompile(`^slurmstepd: \[(\d+)\.`)

func parentOf(t *testing.T, pid int) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(status), "PPid:")
	parent, err := strconv.Atoi(strings.Fields(after)[0])
	if err != nil {
		t.Fatal(err)
	}
	return parent
}
