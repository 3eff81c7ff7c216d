package batchtest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// HTCondorUser is who submits the jobs of an HTCondor of a test: it takes none of root.
const HTCondorUser = "games"

// HTCondorCPUs are the processors of its node.
const HTCondorCPUs = 4

// HTCondor starts HTCondor with one node on this machine, and has the environment of the test name
// it. Jobs run as nobody, so that they share no folder with HTCondorUser, unless further lines of its
// configuration say otherwise. It skips where HTCondor is not installed. All may read the folder that
// it returns.
func HTCondor(t Host, further ...string) (folder string) {
	master, err := exec.LookPath("condor_master")
	if err == nil {
		err = installed("condor_submit", "condor_q", "condor_rm", "condor_status", "setpriv")
	}
	if err != nil {
		absent(t, "htcondor", err)
	}
	d := scratch(t, "htcondor")
	for _, name := range []string{"spool", "execute", "log", "lock", "run"} {
		own := filepath.Join(d, name)
		if err := os.Mkdir(own, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(own, condorID, condorID); err != nil {
			t.Fatal(err)
		}
	}
	release := filepath.Join(filepath.Dir(filepath.Dir(master)), "usr")
	settings := filepath.Join(d, "condor_config")
	own := strings.NewReplacer("$D", d, "$PORT", fmt.Sprint(freePorts(t, 1)), "$RELEASE", release,
		"$ID", fmt.Sprint(condorID), "$CPUS", fmt.Sprint(HTCondorCPUs)).Replace(condorSettings)
	write(t, settings, own+strings.Join(further, "\n")+"\n")
	t.Setenv("CONDOR_CONFIG", settings)
	all := &daemons{t: t}
	t.Cleanup(all.end)
	all.start(nil, master, "-f")
	for _, question := range [][]string{
		{"condor_status", "-af", "Name"}, {"condor_status", "-schedd", "-af", "Name"},
		{"condor_status", "-negotiator", "-af", "Name"},
	} {
		until(t, nil, func(said string) bool { return strings.TrimSpace(said) != "" }, question...)
	}
	return d
}

// condorID is the number of an ordinary user and its group, as whom the daemons write.
const condorID = 1

const condorSettings = `CONDOR_HOST = 127.0.0.1
COLLECTOR_HOST = 127.0.0.1:$PORT
SHARED_PORT_PORT = $PORT
NETWORK_INTERFACE = 127.0.0.1
BIND_ALL_INTERFACES = False
RELEASE_DIR = $RELEASE
LOCAL_DIR = $D
BIN = $(RELEASE_DIR)/bin
SBIN = $(RELEASE_DIR)/sbin
LIB = $(RELEASE_DIR)/lib/condor
LIBEXEC = $(RELEASE_DIR)/libexec/condor
SHARE = $(RELEASE_DIR)/share/condor
SPOOL = $D/spool
EXECUTE = $D/execute
LOG = $D/log
LOCK = $D/lock
RUN = $D/run
DAEMON_SOCKET_DIR = $D/run/s
CONDOR_IDS = $ID.$ID
DAEMON_LIST = MASTER, COLLECTOR, NEGOTIATOR, SCHEDD, STARTD
use SECURITY : HOST_BASED
ALLOW_WRITE = *
ALLOW_READ = *
ALLOW_DAEMON = *
ALLOW_ADMINISTRATOR = *
SEC_DEFAULT_AUTHENTICATION = OPTIONAL
SEC_DEFAULT_AUTHENTICATION_METHODS = FS
STARTER_ALLOW_RUNAS_OWNER = False
BASE_CGROUP =
NUM_CPUS = $CPUS
MEMORY = 4096
NUM_SLOTS = 1
NUM_SLOTS_TYPE_1 = 1
SLOT_TYPE_1 = 100%
SLOT_TYPE_1_PARTITIONABLE = True
START = True
SUSPEND = False
PREEMPT = False
KILL = False
MachineMaxVacateTime = 10
NEGOTIATOR_INTERVAL = 2
NEGOTIATOR_CYCLE_DELAY = 1
NEGOTIATOR_MIN_INTERVAL = 1
SCHEDD_INTERVAL = 2
SCHEDD_MIN_INTERVAL = 1
UPDATE_INTERVAL = 5
PERIODIC_EXPR_INTERVAL = 2
MAX_PERIODIC_EXPR_INTERVAL = 2
`
