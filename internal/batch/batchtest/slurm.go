package batchtest

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Nodes of the Slurm and slots of the Grid Engine that tests start.
const (
	SlurmNodes       = 4
	SlurmCPUs        = 2 // of a node
	GridEngineSlots  = 4
	SlurmPartition   = "batch"
	GridEngineQueue  = "all.q"
	GridEngineShared = "smp"   // its parallel environment for one node
	GridEngineTasks  = "tasks" // that in which a job may start tasks on its nodes
)

// Nodes are how the nodes of a Slurm are made.
type Nodes struct {
	Number int // of nodes. Default: SlurmNodes
	CPUs   int // of a node. Default: SlurmCPUs
	// Enter are the words before the command that starts the daemon of a node, from 0, as for a namespace
	// of its own. Default: none.
	Enter func(node int) []string
}

// Cluster is a Slurm that Slurm has started. Its methods are for one goroutine.
type Cluster struct {
	all        *daemons
	enter      func(node int) []string
	controller *exec.Cmd
	nodes      []*exec.Cmd
}

// KillController kills slurmctld with SIGKILL. Nobody answers squeue until StartController.
func (c *Cluster) KillController() { kill(c.controller) }

// StartController starts slurmctld with the state that the one before has left.
func (c *Cluster) StartController() { c.controller = c.all.start(nil, "slurmctld", "-D") }

// KillNode kills the slurmd of a node, from 0, with SIGKILL. The jobs on it go on.
func (c *Cluster) KillNode(i int) { kill(c.nodes[i]) }

// StartNode starts the slurmd of a node, which takes over the jobs that run there.
func (c *Cluster) StartNode(i int) {
	c.startNode(i, "slurmd", "-D", "-N", NodeName(i))
}

func (c *Cluster) startNode(i int, command ...string) {
	if c.enter != nil {
		command = append(c.enter(i), command...)
	}
	c.nodes[i] = c.all.start(nil, command[0], command[1:]...)
}

// NameHosts starts the slurmd of each node again, so that what runs there sees the name of the node as that of
// its host. It needs root, and no job may be there.
func (c *Cluster) NameHosts() {
	for i := range c.nodes {
		c.KillNode(i)
		c.nodes[i] = c.all.start(nil, "unshare", "--uts", "sh", "-c",
			"hostname "+NodeName(i)+" && exec slurmd -D -N "+NodeName(i))
	}
	c.Ready()
}

// NodeName is the name of a node, from 0.
func NodeName(i int) string { return fmt.Sprintf("n%d", i+1) }

// Ready waits until all nodes take jobs.
func (c *Cluster) Ready() {
	all := func(out string) bool { return strings.Count(out, "\n") == len(c.nodes) }
	until(c.all.t, nil, all, "sinfo", "-h", "-N", "-t", "idle,mixed,allocated,completing", "-o", "%N")
}

func kill(cmd *exec.Cmd) {
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
}

// Slurm starts Slurm with four nodes on this machine, and has the environment of the
// test name it. Further lines of its configuration may be given. It skips where Slurm is not
// installed.
func Slurm(t Host, further ...string) *Cluster { return SlurmOf(t, Nodes{}, further...) }

// SlurmOf is Slurm with nodes that are made in some way.
func SlurmOf(t Host, nodes Nodes, further ...string) *Cluster {
	if err := installed("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scancel"); err != nil {
		absent(t, "slurm", err)
	}
	d := scratch(t, "slurm")
	for _, folder := range []string{"state", "spool", "run", "log"} {
		if err := os.MkdirAll(filepath.Join(d, folder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	key := filepath.Join(d, "munge.key")
	if err := os.WriteFile(key, []byte(strings.Repeat("fairway test key", 64)), 0o600); err != nil {
		t.Fatal(err)
	}
	number := cmp.Or(nodes.Number, SlurmNodes)
	port := freePorts(t, number+1)
	settings := filepath.Join(d, "slurm.conf")
	write(t, settings, strings.NewReplacer("$D", d, "$CTLD", fmt.Sprint(port),
		"$CPUS", fmt.Sprint(cmp.Or(nodes.CPUs, SlurmCPUs)),
		"$NODES", fmt.Sprintf("n[1-%d]", number), "$SLURMD", fmt.Sprintf("%d-%d", port+1, port+number),
	).Replace(slurmSettings)+strings.Join(further, "\n"))
	t.Setenv("SLURM_CONF", settings)
	for _, inherited := range []string{"SLURM_JOB_ID", "SLURM_CPUS_ON_NODE"} {
		t.Setenv(inherited, "")
		_ = os.Unsetenv(inherited)
	}
	all := &daemons{t: t}
	t.Cleanup(all.end)
	all.start(nil, "munged", "--foreground", "--force", "--key-file="+key, "--socket="+filepath.Join(d, "munge.socket"),
		"--pid-file="+filepath.Join(d, "munged.pid"), "--log-file="+filepath.Join(d, "munged.log"),
		"--seed-file="+filepath.Join(d, "munged.seed"))
	until(t, nil, func(string) bool { return true }, "munge", "--no-input", "--socket="+filepath.Join(d, "munge.socket"))
	c := &Cluster{
		all: all, enter: nodes.Enter, controller: all.start(nil, "slurmctld", "-D", "-c"),
		nodes: make([]*exec.Cmd, number),
	}
	for i := range c.nodes {
		c.startNode(i, "slurmd", "-D", "-c", "-N", NodeName(i))
	}
	until(t, nil, func(out string) bool { return strings.TrimSpace(out) == fmt.Sprint(number) }, "sinfo", "-h", "-t",
		"idle", "-o", "%D")
	t.Cleanup(func() { run(t, nil, "", "scancel", "--partition="+SlurmPartition) })
	return c
}

// scratch is a folder with a short name: sockets stand in it.
func scratch(t Host, name string) string {
	d, err := os.MkdirTemp("", "fairway-"+name+"-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the folder of %s is kept: %s", name, d)
			return
		}
		_ = os.RemoveAll(d)
	})
	if err := os.Chmod(d, 0o755); err != nil {
		t.Fatal(err)
	}
	return d
}

const slurmSettings = `ClusterName=fairway
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort=$CTLD
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$D/munge.socket
CredType=cred/munge
StateSaveLocation=$D/state
SlurmdSpoolDir=$D/spool/%n
SlurmctldPidFile=$D/run/slurmctld.pid
SlurmdPidFile=$D/run/slurmd.%n.pid
SlurmctldLogFile=$D/log/slurmctld.log
SlurmdLogFile=$D/log/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
ReturnToService=2
MaxJobCount=20000
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_interval=1,sched_min_interval=0,bf_interval=1,default_queue_depth=1000,partition_job_depth=1000
MinJobAge=2
KillWait=10
NodeName=$NODES NodeHostname=localhost NodeAddr=127.0.0.1 Port=[$SLURMD] CPUs=$CPUS Boards=1 SocketsPerBoard=1 CoresPerSocket=$CPUS ThreadsPerCore=1 RealMemory=4000 State=UNKNOWN
PartitionName=batch Nodes=ALL Default=YES MaxTime=INFINITE State=UP
`
