package sites_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"fairway/internal/batch/batchtest"
	"fairway/test/files"
)

// inJob runs the workflow of a folder by a script that is submitted, on the nodes of that
// job, and returns what it printed.
func inJob(t *testing.T, folder string, submit ...string) string {
	t.Helper()
	script, said := filepath.Join(folder, "job.sh"), filepath.Join(folder, "job.out")
	files.Write(t, script, "#!/bin/sh\ncd '"+folder+"' && exec >'"+said+"' 2>&1 && '"+fairway+"' site show allocation "+
		"&& exec '"+fairway+"' run --site allocation\n")
	cmd := exec.CommandContext(t.Context(), "timeout", append([]string{"240"}, append(submit, script)...)...)
	out, err := cmd.CombinedOutput()
	text, _ := os.ReadFile(said)
	if err != nil {
		t.Fatalf("%v: %s\n%s\n%s", err, out, text, pilotLogs(folder))
	}
	return string(text)
}

// The nodes of a job that one has already are used without any description, and nothing is
// left on them.
func slurmAllocation(t *testing.T) {
	t.Helper()
	local := folderWith(t, workflow, "")
	run(t, local, "run")
	t.Run("batch script", func(t *testing.T) {
		folder := folderWith(t, workflow, "")
		inJob(t, folder, "sbatch", "--wait", "--nodes=3", "--exclusive", "--time=10", "--output=/dev/null")
		mustEqual(t, results(t, folder), results(t, local))
		nodes := map[string]bool{}
		named := below(folder, ".fairway/pilots/*/*.node")
		for _, file := range named {
			name, _ := os.ReadFile(file)
			nodes[string(name)] = true
		}
		if len(nodes) != 3 {
			t.Errorf("pilots were on %d of 3 nodes: %v", len(nodes), nodes)
		}
		noneLeft(t, folder)
	})
	out, err := exec.Command("salloc", "--no-shell", "--nodes=2", "--exclusive", "--time=10").CombinedOutput()
	job := regexp.MustCompile(`Granted job allocation (\d+)`).FindStringSubmatch(string(out))
	if err != nil || job == nil {
		t.Fatal(err, string(out))
	}
	nodes, err := exec.Command("squeue", "--noheader", "--jobs="+job[1], "--format=%N").Output()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("SLURM_JOB_ID", job[1])
	t.Setenv("SLURM_JOB_NODELIST", strings.TrimSpace(string(nodes)))
	t.Setenv("SLURM_JOB_CPUS_PER_NODE", "2(x2)")
	t.Run("site test", func(t *testing.T) {
		folder := folderWith(t, workflow, "")
		said := run(t, folder, "site", "test", "allocation")
		for _, want := range []string{"srun --jobid=" + job[1], "a pilot came after", "processors  2", "time        "} {
			if !strings.Contains(said, want) {
				t.Errorf("it doesn't say %q:\n%s", want, said)
			}
		}
	})
	t.Run("the server is killed", func(t *testing.T) {
		killedAndRunAgain(t, "", "allocation")
	})
}

func gridEngineAllocation(t *testing.T) {
	t.Helper()
	local := folderWith(t, workflow, "")
	run(t, local, "run")
	folder := folderWith(t, workflow, "")
	said := inJob(t, folder, "qsub", "-sync", "y", "-o", "/dev/null", "-e", "/dev/null", "-V", "-pe",
		batchtest.GridEngineTasks, "3", "-l", "h_rt=600")
	mustEqual(t, results(t, folder), results(t, local))
	noneLeft(t, folder)
	if !strings.Contains(said, "qrsh -inherit") {
		t.Errorf("the pilot was no task of the job:\n%s", said)
	}
}

// A person who is in no job must be told what to do.
func TestNoAllocation(t *testing.T) {
	for _, name := range []string{"SLURM_JOB_ID", "PE_HOSTFILE", "SGE_ROOT", "PBS_NODEFILE"} {
		t.Setenv(name, "")
	}
	out, err := command(t, folderWith(t, workflow, ""), "run", "--site", "allocation").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "not inside a job of Slurm, Grid Engine or PBS") ||
		!strings.Contains(string(out), "salloc") {
		t.Errorf("%v:\n%s", err, out)
	}
}
