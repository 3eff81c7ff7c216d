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
	"time"

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
	out, ended := begin(t, folder, filepath.Join(marks, "0"))
	killNodeOf(t, cluster, filepath.Join(marks, "0"))
	killed := time.Now()
	if err := <-ended; err != nil {
		t.Fatalf("%v\n%s\n%s", err, out, pilotLogs(folder))
	}
	t.Logf("the run ended %v after the node; its jobs take %v on the other one", time.Since(killed).Round(time.Second),
		8*3*time.Second/2)
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

// begin begins a run at the cluster, and returns when a job has left its mark: what the run says, and
// how it ends.
func begin(t *testing.T, folder, mark string) (out *strings.Builder, ended chan error) {
	t.Helper()
	cmd := command(t, folder, "run", "--site", "cluster")
	out, ended = new(strings.Builder), make(chan error, 1)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	go func() {
		ended <- cmd.Wait()
		cancel()
	}()
	began := sched.FileQuery{
		Path: mark, Until: func(f sched.FileState) bool { return f.Info != nil && f.Info.Size() > 0 },
	}
	if _, err := sched.Default().WaitFile(ctx, began); err != nil {
		t.Fatal("no job began:", err, <-ended, out, pilotLogs(folder))
	}
	return out, ended
}

// A person who ends a run beside a pilot that is dead or stands still does not wait for it: not for
// its lease, which is hours, nor for Slurm, which takes it for alive. No job is then said to run.
func TestSlurmStopBesideADeadPilot(t *testing.T) {
	cluster := batchtest.Slurm(t, "SlurmdTimeout=300")
	sites := strings.Replace(slurmSite, "max_pilots: 3", "max_pilots: 2\n    lease: 3h", 1)
	for _, stop := range [][]string{{"stop"}, {"stop", "--now"}} {
		for _, how := range []string{"dead", "still"} {
			t.Run(how+", "+strings.Join(stop, " "), func(t *testing.T) {
				cluster.Ready()
				marks := t.TempDir()
				mark := filepath.Join(marks, "0")
				folder := folderWith(t, strings.ReplaceAll(patient, "${marks}", marks), sites)
				out, ended := begin(t, folder, mark)
				switch pid := jobOf(t, mark); how {
				case "dead":
					node := killNodeOf(t, cluster, mark)
					defer cluster.StartNode(node)
				case "still":
					for _, p := range []int{parentOf(pid), pid} {
						if err := syscall.Kill(p, syscall.SIGSTOP); err != nil {
							t.Fatal(err)
						}
						defer func() { _ = syscall.Kill(p, syscall.SIGKILL) }()
					}
				}
				asked := time.Now()
				run(t, folder, stop...)
				err := <-ended
				t.Logf("it ended after %v: %v", time.Since(asked).Round(10*time.Millisecond), err)
				if said := out.String(); !strings.Contains(said, "stopped") {
					t.Errorf("it did not end as it was asked to: %v\n%s", err, said)
				}
				if said := run(t, folder, "jobs", "--state", "running", "--state", "assigned"); strings.Contains(said, "work/") {
					t.Errorf("jobs that nobody runs:\n%s", said)
				}
			})
		}
	}
}

// jobOf is the process of the job that has left a mark.
func jobOf(t *testing.T, mark string) int {
	t.Helper()
	text, err := os.ReadFile(mark)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// killNodeOf kills the node whose pilot runs the job that has written its process to a file. It returns
// the number of the node.
func killNodeOf(t *testing.T, cluster *batchtest.Cluster, mark string) (number int) {
	t.Helper()
	pid := jobOf(t, mark)
	node := nodeOf(pid)
	if node == "" {
		t.Fatalf("job %d is of no slurmstepd", pid)
	}
	number, _ = killNode(cluster, node, []int{pid})
	return number
}

// killNode kills all that lets a node be known: its slurmd, and the slurmstepd of those of the given
// processes that are there, with all that they have started, as pilots and jobs. It returns the number
// of the node, and what it has killed besides the slurmd.
func killNode(cluster *batchtest.Cluster, node string, among []int) (number int, killed map[int]bool) {
	killed = map[int]bool{}
	started := startedBy()
	var kill func(pid int)
	kill = func(pid int) {
		killed[pid] = true
		for _, child := range started[pid] {
			kill(child)
		}
	}
	for _, pid := range among {
		if step := stepAbove(pid); step > 0 && !killed[step] && nodeOf(pid) == node {
			kill(step)
		}
	}
	for i := range batchtest.SlurmNodes {
		if batchtest.NodeName(i) == node {
			number = i
			cluster.KillNode(i)
		}
	}
	for pid := range killed {
		if syscall.Kill(pid, syscall.SIGKILL) != nil { // it has ended by itself meanwhile
			delete(killed, pid)
		}
	}
	return number, killed
}

// stepOf finds the job in the command line of a slurmstepd.
var stepOf = regexp.MustCompile(`^slurmstepd: \[(\d+)\.`)

// stepAbove is the slurmstepd that has started a process, or what it comes from; 0 where there is none.
func stepAbove(pid int) int {
	for ; pid > 1; pid = parentOf(pid) {
		if said, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); stepOf.Match(said) {
			return pid
		}
	}
	return 0
}

// batchJobOf is the job of Slurm that a process belongs to; empty where it belongs to none.
func batchJobOf(pid int) string {
	said, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", stepAbove(pid)))
	if job := stepOf.FindStringSubmatch(string(said)); job != nil {
		return job[1]
	}
	return ""
}

// nodeOf is the node on which a process runs; empty where Slurm has not started it.
func nodeOf(pid int) string {
	job := batchJobOf(pid)
	if job == "" {
		return ""
	}
	out, _ := exec.Command("squeue", "--noheader", "--job="+job, "--format=%N").Output()
	return strings.TrimSpace(string(out))
}

// parentOf is the process that has started another; 0 where that is gone.
func parentOf(pid int) int {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, after, _ := strings.Cut(string(status), "PPid:")
	line, _, _ := strings.Cut(after, "\n")
	parent, _ := strconv.Atoi(strings.TrimSpace(line))
	return parent
}

// startedBy are all processes, by the one that has started them.
func startedBy() map[int][]int {
	all, _ := filepath.Glob("/proc/[0-9]*") // the pattern is right
	started := map[int][]int{}
	for _, folder := range all {
		if pid, err := strconv.Atoi(filepath.Base(folder)); err == nil {
			parent := parentOf(pid)
			started[parent] = append(started[parent], pid)
		}
	}
	return started
}
