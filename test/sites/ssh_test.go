package sites_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fairway/internal/batch/batchtest"
	"fairway/lib/sched"
)

// sshSite describes hosts that a test has started.
func sshSite(hosts *batchtest.Hosts) string {
	quoted := func(all []string) string { return "['" + strings.Join(all, "', '") + "']" }
	return fmt.Sprintf("sites:\n  lab:\n    system: ssh\n    poll: 1s\n    cpus: 2\n    hosts: %s\n    options: %s\n",
		quoted(hosts.Names), quoted(hosts.Options))
}

func TestSSH(t *testing.T) {
	t.Parallel()
	hosts := batchtest.SSH(t, 2)
	site := sshSite(hosts)
	t.Run("sums", func(t *testing.T) {
		noneLeft(t, onSite(t, workflow, site, "lab"))
	})
	t.Run("sharing nothing", func(t *testing.T) {
		noneLeft(t, onSite(t, workflow, site+"    shares: nothing\n", "lab"))
	})
	t.Run("site test", func(t *testing.T) {
		folder := folderWith(t, workflow, strings.Replace(site, "hosts: [", "hosts: ['no-such-host.invalid', ", 1))
		said := run(t, folder, "site", "test", "lab")
		for _, want := range []string{
			"# by ssh, to one of: ", "a pilot came after", "processors  2", "no-such-host.invalid",
			"there is no host of that name",
		} {
			if !strings.Contains(said, want) {
				t.Errorf("it doesn't say %q:\n%s", want, said)
			}
		}
	})
	t.Run("no host answers", func(t *testing.T) {
		folder := folderWith(t, workflow, strings.ReplaceAll(site, "127.0.0.1", "no-such-host.invalid"))
		out, err := command(t, folder, "site", "test", "lab", "--wait", "5s").CombinedOutput()
		if err == nil || !strings.Contains(string(out), "there is no host of that name") {
			t.Errorf("%v:\n%s", err, out)
		}
	})
}

// limited makes cgroups with a limit of memory and, where they are of version 1, with one
// processor. The returned function puts a process into them. They go when the test ends,
// after the processes that it starts from now on.
func limited(t *testing.T, memory int64) (enter func(process int), oneProcessor bool) {
	t.Helper()
	name := fmt.Sprintf("fairway-test-%d", os.Getpid())
	var made []string
	makeOne := func(folder string, limits map[string]string) bool {
		if os.Mkdir(folder, 0o755) != nil {
			return false
		}
		t.Cleanup(func() { _ = os.Remove(folder) })
		made = append(made, folder)
		for file, value := range limits {
			if os.WriteFile(filepath.Join(folder, file), []byte(value), 0o644) != nil {
				return false
			}
		}
		return true
	}
	limit := fmt.Sprint(memory)
	switch {
	case makeOne("/sys/fs/cgroup/memory/"+name, map[string]string{"memory.limit_in_bytes": limit}):
		oneProcessor = makeOne("/sys/fs/cgroup/cpuset/"+name, map[string]string{"cpuset.cpus": "0", "cpuset.mems": "0"})
	case !makeOne("/sys/fs/cgroup/"+name, map[string]string{"memory.max": limit}):
		t.Skip("no cgroup with a limit of memory can be made here")
	}
	return func(process int) {
		for _, folder := range made {
			if err := os.WriteFile(filepath.Join(folder, "cgroup.procs"), []byte(fmt.Sprint(process)), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}, oneProcessor
}

// A host may be shared with others: a pilot takes what its cgroup has, and not the machine.
func TestSSHPilotTakesWhatItsCgroupHas(t *testing.T) {
	t.Parallel()
	const memory = 512 << 20
	enter, oneProcessor := limited(t, memory)
	hosts := batchtest.SSH(t, 1)
	enter(hosts.Process(0))
	folder := folderWith(t, workflow, strings.Replace(sshSite(hosts), "    cpus: 2\n", "", 1))
	var said struct {
		Found struct {
			MilliCPUs int64 `json:"milli_cpus"`
			Memory    int64 `json:"memory"`
		} `json:"found"`
	}
	text := run(t, folder, "site", "test", "lab", "--json")
	if err := json.Unmarshal([]byte(text), &said); err != nil {
		t.Fatal(err, text)
	}
	if said.Found.Memory > memory || said.Found.Memory < memory/2 {
		t.Errorf("it takes %d bytes, and its cgroup has %d\n%s", said.Found.Memory, memory, text)
	}
	if oneProcessor && said.Found.MilliCPUs != 1000 {
		t.Errorf("it takes %d thousandths of a processor, and its cgroup has one\n%s", said.Found.MilliCPUs, text)
	}
}

// A server that is killed leaves its pilots on the hosts, and the next one takes them
// over.
func TestSSHServerIsKilled(t *testing.T) {
	t.Parallel()
	killedAndRunAgain(t, sshSite(batchtest.SSH(t, 2)), "lab")
}

// killedAndRunAgain kills a server while a job runs at a site, and runs the workflow again:
// no job runs twice.
func killedAndRunAgain(t *testing.T, sites, site string) {
	t.Helper()
	marks := t.TempDir()
	folder := folderWith(t, strings.ReplaceAll(slow, "${marks}", marks), sites)
	first := exec.CommandContext(t.Context(), fairway, "run", "--site", site)
	first.Dir = folder
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if _, err := sched.Default().WaitFile(
		ctx, sched.FileQuery{Path: filepath.Join(marks, "0"), Until: func(f sched.FileState) bool { return f.Info != nil }},
	); err != nil {
		t.Fatal("no job began:", err, pilotLogs(folder))
	}
	if err := first.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = first.Wait()
	run(t, folder, "run", "--site", site)
	begun, _ := os.ReadFile(filepath.Join(marks, "0"))
	if n := strings.Count(string(begun), "begun"); n != 1 {
		t.Errorf("the job that ran when the server was killed began %d times\n%s", n, pilotLogs(folder))
	}
	noneLeft(t, folder)
}

// noneLeft waits until no pilot of a folder is left on the hosts, which are this machine.
func noneLeft(t *testing.T, folder string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	left := sched.NewStatus(sched.Default(), sched.StatusConfig[string, string]{
		Name: "pilots of " + t.Name(), Every: 100 * time.Millisecond,
		Query: func(_ context.Context, keys []string) (map[string]string, error) {
			// exit code 1: there is none
			out, _ := exec.Command("pgrep", "-af", "pilot --connect "+filepath.Join(folder, ".fairway")).Output()
			return map[string]string{keys[0]: string(out)}, nil
		},
	})
	if answer, err := left.Wait(ctx, folder, func(a sched.Answer[string]) bool { return a.Value == "" }); err != nil {
		t.Errorf("left on a host: %s", answer.Value)
	}
}
