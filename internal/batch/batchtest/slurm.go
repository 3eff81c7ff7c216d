package batchtest

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
)

func listen(port int) (net.Listener, error) {
	return net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
}

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

// Slurm starts Slurm with four nodes on this machine, and has the environment of the
// test name it. It skips where Slurm is not installed.
func Slurm(t Host) {
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
	port := freePorts(t, SlurmNodes+1)
	settings := filepath.Join(d, "slurm.conf")
	write(t, settings, strings.NewReplacer("$D", d, "$CTLD", fmt.Sprint(port),
		"$SLURMD", fmt.Sprintf("%d-%d", port+1, port+SlurmNodes)).Replace(slurmSettings))
	t.Setenv("SLURM_CONF", settings)
	for _, inherited := range []string{"SLURM_JOB_ID", "SLURM_CPUS_ON_NODE"} {
		t.Setenv(inherited, "")
		_ = os.Unsetenv(inherited)
	}
	all := &daemons{t: t}
	t.Cleanup(all.end)
	all.start(nil, "munged", "--foreground", "--force", "--key-file="+key, "--socket="+filepath.Join(d, "munge.socket"),
		"--pid-file="+filepath.Join(d, "munged.pid"), "--log-file="+filepath.Join(d, "munged.log"), "--seed-file="+filepath.Join(d, "munged.seed"))
	until(t, nil, func(string) bool { return true }, "munge", "--no-input", "--socket="+filepath.Join(d, "munge.socket"))
	all.start(nil, "slurmctld", "-D", "-c")
	for i := range SlurmNodes {
		all.start(nil, "slurmd", "-D", "-c", "-N", fmt.Sprintf("n%d", i+1))
	}
	until(t, nil, func(out string) bool { return strings.TrimSpace(out) == fmt.Sprint(SlurmNodes) }, "sinfo", "-h", "-t", "idle", "-o", "%D")
	t.Cleanup(func() { run(t, nil, "", "scancel", "--partition="+SlurmPartition) })
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
KillWait=2
NodeName=n[1-4] NodeHostname=localhost NodeAddr=127.0.0.1 Port=[$SLURMD] CPUs=2 Boards=1 SocketsPerBoard=1 CoresPerSocket=2 ThreadsPerCore=1 RealMemory=4000 State=UNKNOWN
PartitionName=batch Nodes=ALL Default=YES MaxTime=INFINITE State=UP
`
