package allocation_test

import (
	"os/exec"
	"regexp"
	"testing"

	"fairway/internal/batch/allocation"
	"fairway/internal/batch/batchtest"
)

// inSlurm gets an allocation of some nodes, and has the environment of the test be that
// of a process in it.
func inSlurm(t *testing.T, nodes string) {
	t.Helper()
	batchtest.Slurm(t)
	out, err := exec.Command("salloc", "--no-shell", "--nodes="+nodes, "--exclusive", "--time=30").CombinedOutput()
	job := regexp.MustCompile(`Granted job allocation (\d+)`).FindStringSubmatch(string(out))
	if err != nil || job == nil {
		t.Fatal(err, string(out))
	}
	t.Setenv("SLURM_JOB_ID", job[1])
	list, err := exec.Command("squeue", "--noheader", "--jobs="+job[1], "--format=%N").Output()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("SLURM_JOB_NODELIST", string(list[:len(list)-1]))
	t.Setenv("SLURM_JOB_CPUS_PER_NODE", "2(x"+nodes+")")
}

func TestSlurm(t *testing.T) {
	inSlurm(t, "2")
	a, err := allocation.Find(t.Context())
	if err != nil || len(a.Nodes) != 2 {
		t.Fatal(a, err)
	}
	if left, ends := a.Left(); !ends || left.Minutes() > 30 || left.Minutes() < 20 {
		t.Error("of half an hour are left", left, ends)
	}
	batchtest.Run(t, func(t *testing.T) batchtest.Opened {
		folder := batchtest.OddFolder(t)
		open := func(state, folder string) allocation.System {
			s, err := a.Open(allocation.Config{
				State: state, Folder: folder,
				Script: func(launch string) (string, error) { return batchtest.Script(folder, launch), nil },
			})
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		return batchtest.Opened{
			System: open("0123456789abcdef", folder), Other: open("fedcba9876543210", t.TempDir()), Folder: folder,
		}
	})
}
