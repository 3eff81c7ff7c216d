package pilot

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"fairway/internal/wire"
)

func environmentOf(settings map[string]string) func(string) string {
	return func(name string) string { return settings[name] }
}

// A pilot that took the whole machine would compute on processors of other jobs.
func TestTakesWhatTheBatchSystemAllotted(t *testing.T) {
	slot := filepath.Join(t.TempDir(), "machine.ad")
	text := "Arch = \"X86_64\"\nCpus = 2\nDetectedCpus = 64\nMemory = 1000\nTotalMemory = 256000\n"
	if err := os.WriteFile(slot, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		environment  map[string]string
		given        Config
		cpus, memory int64
	}{
		"nothing known":      {nil, Config{}, 0, 0},
		"slurm":              {map[string]string{"SLURM_CPUS_ON_NODE": "16", "SLURM_MEM_PER_NODE": "64000"}, Config{}, 16000, 64000 << 20 / 10 * 9},
		"slurm, per cpu":     {map[string]string{"SLURM_CPUS_ON_NODE": "4", "SLURM_MEM_PER_CPU": "1000"}, Config{}, 4000, 4000 << 20 / 10 * 9},
		"grid engine":        {map[string]string{"NSLOTS": "8"}, Config{}, 8000, 0},
		"pbs":                {map[string]string{"NCPUS": "8"}, Config{}, 8000, 0},
		"htcondor":           {map[string]string{"_CONDOR_MACHINE_AD": slot}, Config{}, 2000, 1000 << 20 / 10 * 9},
		"no file of a slot":  {map[string]string{"_CONDOR_MACHINE_AD": slot + ".none"}, Config{}, 0, 0},
		"settings win":       {map[string]string{"NSLOTS": "8"}, Config{MilliCPUs: 500, Memory: 7}, 500, 7},
		"nonsense is passed": {map[string]string{"NSLOTS": "-8", "SLURM_CPUS_ON_NODE": "many"}, Config{}, 0, 0},
	} {
		c := test.given
		c.takeAllotment(t.Context(), environmentOf(test.environment))
		if c.MilliCPUs != test.cpus || c.Memory != test.memory {
			t.Errorf("%s: %d thousandths, %d bytes", name, c.MilliCPUs, c.Memory)
		}
	}
}

// Sandboxes in a folder of the wrong name would fill the disk of everybody.
func TestVariablesOfTheNode(t *testing.T) {
	c := Config{SandboxDir: "$SCRATCH/fairway/sandbox", Cache: CacheConfig{Dir: "${TMPDIR}/cache"}}
	if err := c.onNode(environmentOf(map[string]string{"SCRATCH": "/local/7"})); err != nil {
		t.Fatal(err)
	}
	if c.SandboxDir != "/local/7/fairway/sandbox" || c.Cache.Dir != filepath.Join(os.TempDir(), "cache") {
		t.Error(c.SandboxDir, c.Cache.Dir)
	}
	c = Config{SandboxDir: "$SCRATCH/sandbox"}
	if err := c.onNode(environmentOf(nil)); err == nil || !strings.Contains(err.Error(), "SCRATCH") {
		t.Error(err)
	}
}

// The person must read why a node takes no jobs.
func TestCheckOfTheSite(t *testing.T) {
	left := filepath.Join(t.TempDir(), "pid")
	for check, want := range map[string]string{
		"": "", "true": "", "false": "the check of the site failed: exit status 1: false",
		"echo one; echo no data here; exit 3": "the check of the site failed: exit status 3: no data here",
		"sleep 100 & echo $! >" + left:        "", // it does not wait for what the check starts
	} {
		err := (&Config{Check: check}).runCheck()
		if err == nil && want != "" || err != nil && err.Error() != want {
			t.Errorf("%q: %v", check, err)
		}
	}
	text, _ := os.ReadFile(left)
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || syscall.Kill(pid, syscall.SIGKILL) != nil {
		t.Error("what the check has started does not run any more:", err)
	}
}

// Grid Engine announces its SIGKILL by SIGUSR2, and a suspension by SIGUSR1, which
// ends a process that does not expect it.
func TestSignalsOfGridEngine(t *testing.T) {
	q := newTaskQueue(t)
	p := q.start(q.config("p1"))
	a := shell("sleep 1000")
	q.assign("p1", a)
	q.started("p1", a.GetAttempt())
	for _, s := range []syscall.Signal{syscall.SIGUSR1, syscall.SIGUSR2} {
		if err := p.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
	}
	expect(t, q.result(a.GetAttempt()), wire.Outcome_OUTCOME_LOST, "")
	if err := p.wait(); err != nil {
		t.Error(err)
	}
}
