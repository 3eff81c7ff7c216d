package process

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// What is left in a group ends, and the group goes, whatever systemd has named those above.
func TestGroupsOfAnyName(t *testing.T) {
	above := filepath.Join(t.TempDir(), `app-org.gnome.Terminal\x2d12[3].scope`)
	group := filepath.Join(above, "7")
	if err := os.MkdirAll(group, 0o755); err != nil {
		t.Fatal(err)
	}
	left := exec.Command("sleep", "60")
	if err := left.Start(); err != nil {
		t.Fatal(err)
	}
	list := filepath.Join(group, "cgroup.procs")
	if err := os.WriteFile(list, fmt.Appendln(nil, left.Process.Pid), 0o644); err != nil {
		t.Fatal(err)
	}
	if n := killGroupsIn(above); n != 1 {
		t.Errorf("%d processes of one were ended", n)
		_ = left.Process.Kill()
	}
	_ = left.Wait()
	_ = os.Remove(list) // the kernel's go with their group
	if removeGroups(above); exists(above) {
		t.Error("the group is still there")
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// The limit of a job stands in its own group or in one above it, never at the root
// alone.
func TestMemoryLimitOfGroups(t *testing.T) {
	root := t.TempDir()
	set := func(path, text string) {
		t.Helper()
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	set("memory/slurm/uid_0/job_7/memory.limit_in_bytes", "4194304000")
	set("memory/slurm/uid_0/job_7/step_0/memory.limit_in_bytes", "9223372036854771712")
	set("system.slice/slurmstepd.scope/job_8/memory.max", "1048576000")
	set("system.slice/slurmstepd.scope/job_8/step_batch/memory.max", "max")
	for groups, want := range map[string]int64{
		"9:memory:/slurm/uid_0/job_7/step_0\n":                                   4194304000,
		"0::/system.slice/slurmstepd.scope/job_8/step_batch\n":                   1048576000,
		"0::/user.slice\n1:name=systemd:/\n":                                     0,
		"9:memory:/slurm/uid_0/job_7\n0::/system.slice/slurmstepd.scope/job_8\n": 1048576000,
		"": 0, "x": 0,
	} {
		if got, limited := memoryLimit(root, groups); got != want || limited != (want > 0) {
			t.Errorf("%q: %d %v", groups, got, limited)
		}
	}
}
