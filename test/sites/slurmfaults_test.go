package sites_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"fairway/internal/batch/batchtest"
	"fairway/lib/sched"
	"fairway/lib/seed"
)

// longWork goes on for long enough that every kind of fault meets it.
const longWork = `workflow: long
inputs:
  texts: {files: 'in/{n}.txt', as: 'in/{n}'}
steps:
  parts:
    each: in/{n}
    writes: parts/{n}.{part}
    command: sleep 1; for p in 1 2 3 4; do sed "s/^/$p /" "$in" > parts/$n.$p; done
  upper:
    each: parts/{n}.{part}
    writes: up/{n}.{part}
    command: sleep 4; tr a-z A-Z < "$in" > "$out"
  merge:
    merge: up/{n}.{part}
    writes: merged
    command: cat $in | sort > "$out"
`

// trial is one run under faults.
type trial struct {
	t       *testing.T
	cluster *batchtest.Cluster
	random  *rand.Rand
	folder  string
	asJob   bool          // the server is a job itself
	longest time.Duration // that a fault lasts
	cmd     *exec.Cmd
	said    bytes.Buffer
	ended   chan ending
	killed  bool // by the trial
	account *account
}

// account is what Slurm says of its jobs, asked again and again. A controller that is killed may
// have on its disk that a job runs which has ended since. It says so after its restart, until it
// has asked the node, for minutes. Such a job is none any more.
type account struct {
	mu      sync.Mutex      // guards what follows
	ended   map[string]bool // jobs, by id and name, of which Slurm has said that they have ended
	revived map[string]bool // those of them that had ended when the controller started again
	jobs    []string        // the others: each with its state
	pilots  int             // the most that there were at a time
}

// keepAccount keeps it until the test has ended.
func keepAccount(t *testing.T) *account {
	a := &account{ended: map[string]bool{}, revived: map[string]bool{}}
	status := sched.NewStatus(sched.Default(), sched.StatusConfig[string, string]{
		Name: "squeue of " + t.Name(), Every: 100 * time.Millisecond,
		Query: func(ctx context.Context, keys []string) (map[string]string, error) {
			out, err := exec.CommandContext(ctx, "squeue", "--noheader", "--states=all", "--format=%i %j|%T").Output()
			return map[string]string{keys[0]: string(out)}, err
		},
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = status.Wait(ctx, "jobs", func(answer sched.Answer[string]) bool {
			a.take(answer.Value)
			return false
		})
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return a
}

func (a *account) take(said string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.jobs = nil
	pilots := 0
	for line := range strings.Lines(said) {
		job, state, _ := strings.Cut(strings.TrimSpace(line), "|")
		if state != "PENDING" && state != "RUNNING" {
			a.ended[job] = true
			continue
		}
		delete(a.ended, job)
		if a.revived[job] {
			continue
		}
		a.jobs = append(a.jobs, job+" "+state)
		if strings.Contains(job, " fairway.") {
			pilots++
		}
	}
	a.pilots = max(a.pilots, pilots)
}

// restart is for a controller that begins to read its disk.
func (a *account) restart() {
	a.mu.Lock()
	defer a.mu.Unlock()
	maps.Copy(a.revived, a.ended)
}

// mostPilots is how many pilots Slurm had at most.
func (a *account) mostPilots() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.pilots
}

// mustEmpty waits until Slurm has no job.
func (a *account) mustEmpty(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for {
		a.mu.Lock()
		left := a.jobs
		a.mu.Unlock()
		if len(left) == 0 {
			return
		}
		if sched.Default().Sleep(ctx, 100*time.Millisecond) != nil {
			t.Errorf("the batch system has after the run: %s", left)
			return
		}
	}
}

// ending is how a command has ended.
type ending struct {
	code int
	said string
}

// slurmFault begins, and returns how it ends; nil where it is over at once.
type slurmFault struct {
	name  string
	begin func(*trial) (end func())
}

var slurmFaults = []slurmFault{
	{"the controller is killed", func(tr *trial) func() {
		tr.cluster.KillController()
		return func() {
			tr.account.restart()
			tr.cluster.StartController()
		}
	}},
	{"the partition is down", func(tr *trial) func() {
		tr.slurm("scontrol", "update", "partitionname=batch", "state=DOWN")
		return func() { tr.slurm("scontrol", "update", "partitionname=batch", "state=UP") }
	}},
	{"the partition takes no jobs", func(tr *trial) func() {
		tr.slurm("scontrol", "update", "partitionname=batch", "state=INACTIVE")
		return func() { tr.slurm("scontrol", "update", "partitionname=batch", "state=UP") }
	}},
	{"a pilot is started twice", func(tr *trial) func() {
		if id := tr.pilot(); id != "" {
			tr.slurm("scontrol", "update", "jobid="+id, "requeue=1")
			tr.slurm("scontrol", "requeue", id)
		}
		return nil
	}},
	{"a pilot is cancelled", func(tr *trial) func() {
		if id := tr.pilot(); id != "" {
			tr.slurm("scancel", id)
		}
		return nil
	}},
	{"a pilot is killed", func(tr *trial) func() {
		if id := tr.pilot(); id != "" {
			tr.slurm("scancel", "--signal=KILL", "--full", id)
		}
		return nil
	}},
	{"a node's daemon is killed", func(tr *trial) func() {
		node := tr.random.IntN(batchtest.SlurmNodes)
		tr.cluster.KillNode(node)
		return func() { tr.cluster.StartNode(node) }
	}},
	{"a node dies", func(tr *trial) func() {
		pids := tr.processes()
		var there []int // that Slurm has started
		for _, pid := range pids {
			if stepAbove(pid) > 0 {
				there = append(there, pid)
			}
		}
		if len(there) == 0 {
			return nil
		}
		node := nodeOf(there[tr.random.IntN(len(there))])
		if node == "" {
			return nil
		}
		for _, pid := range there { // before they are gone
			tr.killed = tr.killed || nodeOf(pid) == node && slices.Contains(servers(tr.t), batchJobOf(pid))
		}
		number, _ := killNode(tr.cluster, node, there)
		return func() { tr.cluster.StartNode(number) }
	}},
	{"a node is drained", func(tr *trial) func() { return tr.node("DRAIN") }},
	{"a node is down", func(tr *trial) func() { return tr.node("DOWN") }},
	{"the server is killed", func(tr *trial) func() {
		tr.killServer()
		return nil
	}},
}

// slurm calls a program of Slurm. What it refuses, as for a job that has just ended, is no
// fault then.
func (tr *trial) slurm(name string, arguments ...string) {
	ctx, cancel := context.WithTimeout(tr.t.Context(), 20*time.Second)
	defer cancel()
	if out, err := exec.CommandContext(ctx, name, arguments...).CombinedOutput(); err != nil {
		tr.t.Logf("%s %s: %v: %s", name, strings.Join(arguments, " "), err, bytes.TrimSpace(out))
	}
}

// node takes a node out of service.
func (tr *trial) node(state string) func() {
	name := "nodename=" + batchtest.NodeName(tr.random.IntN(batchtest.SlurmNodes))
	tr.slurm("scontrol", "update", name, "state="+state, "reason=test")
	return func() { tr.slurm("scontrol", "update", name, "state=RESUME") }
}

// pilot is the id of a job that is a pilot and runs; empty where there is none.
func (tr *trial) pilot() string {
	out, _ := exec.Command("squeue", "--noheader", "--states=RUNNING", "--format=%i %j").Output()
	var ids []string
	for line := range strings.Lines(string(out)) {
		if id, name, _ := strings.Cut(strings.TrimSpace(line), " "); strings.HasPrefix(name, "fairway.") {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return ""
	}
	return ids[tr.random.IntN(len(ids))]
}

func (tr *trial) start() {
	tr.t.Helper()
	arguments := []string{"run", "--site", "cluster"}
	if tr.asJob {
		arguments = append(arguments, "--server", "site")
	}
	tr.cmd = exec.Command(fairway, arguments...)
	tr.cmd.Dir = tr.folder
	var said bytes.Buffer
	tr.cmd.Stdout, tr.cmd.Stderr = &said, &said
	if err := tr.cmd.Start(); err != nil {
		tr.t.Fatal(err)
	}
	running := tr.cmd
	go func() {
		_ = running.Wait()
		tr.ended <- ending{running.ProcessState.ExitCode(), said.String()}
	}()
}

func (tr *trial) killServer() {
	tr.killed = true
	if !tr.asJob {
		_ = tr.cmd.Process.Kill()
		return
	}
	if tr.random.IntN(2) == 0 {
		for _, id := range servers(tr.t) {
			tr.slurm("scancel", id)
		}
		return
	}
	for _, pid := range pidsOf(filepath.Join(tr.folder, ".fairway", "servers")) {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

// processes are the pilots and servers of the run, in the order of their numbers.
func (tr *trial) processes() []int { return pidsOf(filepath.Join(tr.folder, ".fairway")) }

// pidsOf are processesOf by their numbers.
func pidsOf(folder string) (pids []int) {
	for _, line := range processesOf(folder) {
		var pid int
		if _, err := fmt.Sscanf(line, "/proc/%d/", &pid); err == nil {
			pids = append(pids, pid)
		}
	}
	slices.Sort(pids)
	return pids
}

// run has faults begin and end until the run has ended, and all of them once at least.
func (tr *trial) run() {
	tr.t.Helper()
	// A minute each passes until a controller that lost its records has a server counted as dead,
	// and then its pilots as gone.
	ctx, cancel := context.WithTimeout(tr.t.Context(), patience+2*time.Minute)
	defer cancel()
	tr.start()
	wait := func(most time.Duration) (how ending, over bool) {
		limit, cancel := context.WithTimeout(ctx, time.Duration(tr.random.Int64N(int64(most))))
		defer cancel()
		how, err := sched.Receive(limit, sched.Default(), tr.ended)
		return how, err == nil
	}
	deck := tr.random.Perm(len(slurmFaults))
	for _, i := range deck {
		fault := slurmFaults[i]
		how, over := wait(2 * time.Second)
		if !over {
			tr.t.Logf("%s", fault.name)
			end := fault.begin(tr)
			how, over = wait(tr.longest)
			if end != nil {
				end()
			}
		}
		if over && tr.again(how) {
			return
		}
	}
	for {
		how, err := sched.Receive(ctx, sched.Default(), tr.ended)
		if err != nil {
			_ = tr.cmd.Process.Signal(syscall.SIGQUIT)
			last := <-tr.ended
			tr.t.Fatalf("the run does not end: %v\n%s\n%s\n%s\n%s", err, tr.said.String(), last.said, pilotLogs(tr.folder),
				serverLogs(tr.folder))
		}
		if tr.again(how) {
			return
		}
	}
}

// again starts the server again that was ended: by the trial, or as a job by a cluster that
// ends jobs of a node that is down, and of which its controller has lost the record. It
// reports whether the run is over.
func (tr *trial) again(how ending) (over bool) {
	tr.t.Helper()
	tr.said.WriteString(how.said)
	switch {
	case how.code == 0:
		return true
	case !tr.killed && !(tr.asJob && strings.Contains(how.said, "run it again to go on")):
		tr.t.Fatalf("exit code %d\n%s\n%s\n%s", how.code, tr.said.String(), pilotLogs(tr.folder), serverLogs(tr.folder))
	}
	tr.killed = false
	tr.start()
	return false
}

// Whatever happens to a cluster, the results are those of one machine, it never has more pilots
// than the site permits, as it says itself, and nothing is left running.
func TestSlurmFaults(t *testing.T) {
	local := folderWith(t, strings.NewReplacer("sleep 1; ", "", "sleep 4; ", "").Replace(longWork), "")
	run(t, local, "run")
	want := results(t, local)
	rounds, longest := 1, 3*time.Second
	if os.Getenv("FAIRWAY_SOAK") != "" {
		rounds, longest = 10, 5*time.Second
	}
	first := seed.Of(t)
	for i := range rounds {
		number := first + uint64(i)
		t.Run(fmt.Sprint(number), func(t *testing.T) {
			random := rand.New(rand.NewPCG(number, 0))
			cluster := batchtest.Slurm(t)
			tr := &trial{
				t: t, cluster: cluster, account: keepAccount(t), random: random, asJob: random.IntN(2) == 0,
				longest: longest,
				ended:   make(chan ending, 1),
				folder:  folderWith(t, longWork, slurmSite+"    lease: 20s\n"),
			}
			t.Logf("the server is a job: %v", tr.asJob)
			tr.run()
			mustEqual(t, results(t, tr.folder), want)
			if n := tr.account.mostPilots(); n > 3 || n == 0 {
				t.Errorf("the batch system had %d pilots, of at most 3", n)
			}
			cluster.Ready()
			tr.account.mustEmpty(t)
			nothingRuns(t, tr.folder)
		})
	}
}

// processesOf are those that name a folder in their arguments, as pilots and servers do.
func processesOf(folder string) (lines []string) {
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range all {
		if line, _ := os.ReadFile(file); bytes.Contains(line, []byte(folder+"/")) {
			lines = append(lines, file+": "+string(bytes.ReplaceAll(line, []byte{0}, []byte{' '})))
		}
	}
	return lines
}

// nothingRuns waits until no pilot of a folder is left, for as long as its lease.
func nothingRuns(t *testing.T, folder string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 40*time.Second)
	defer cancel()
	state := filepath.Join(folder, ".fairway")
	for left := processesOf(state); len(left) > 0; left = processesOf(state) {
		if sched.Default().Sleep(ctx, 100*time.Millisecond) != nil {
			t.Errorf("processes are left: %v\n%s", left, pilotLogs(folder))
			return
		}
	}
}
