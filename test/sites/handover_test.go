package sites_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"fairway/internal/batch/batchtest"
	"fairway/lib/sched"
	"fairway/test/files"
)

// hosts are a login node (the last) and the nodes of a Slurm. Each takes itself for another machine, and
// knows the file system of one folder by another device number, as hosts of a network file system do.
type hosts struct {
	t      *testing.T
	shared string // that folder; beneath it files are the same on all hosts
	views  []string
}

// login is the number of the login node, and login2 one that people use besides: the node of the Slurm that
// gets jobs last.
const (
	login  = batchtest.SlurmNodes
	login2 = batchtest.SlurmNodes - 1
)

// makeHosts mounts the folder for each host. It skips where nothing can be mounted.
func makeHosts(t *testing.T) *hosts {
	t.Helper()
	if _, err := exec.LookPath("bindfs"); err != nil {
		if os.Getenv(batchtest.Required) != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	all := t.TempDir()
	h := &hosts{t: t, shared: filepath.Join(all, "shared")}
	served := filepath.Join(all, "served")
	if err := errors.Join(os.Mkdir(h.shared, 0o755), os.Mkdir(served, 0o755)); err != nil {
		t.Fatal(err)
	}
	numbers := map[uint64]bool{}
	for i := range login + 1 {
		view := filepath.Join(all, fmt.Sprintf("view%d", i))
		files.Write(t, view+".boot", fmt.Sprintf("00000000-0000-0000-0000-%012d\n", i))
		if err := os.Mkdir(view, 0o755); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command("bindfs", served, view).CombinedOutput(); err != nil {
			t.Fatalf("mounting %s: %v: %s", view, err, out)
		}
		t.Cleanup(func() { _ = unix.Unmount(view, unix.MNT_DETACH) })
		var st unix.Stat_t
		if err := unix.Stat(view, &st); err != nil {
			t.Fatal(err)
		}
		numbers[st.Dev] = true
		h.views = append(h.views, view)
	}
	if len(numbers) != len(h.views) {
		t.Fatalf("%d hosts know the folder by %d numbers", len(h.views), len(numbers))
	}
	return h
}

// enter are the words before a command that runs on a host.
func (h *hosts) enter(host int) []string {
	return []string{"unshare", "--mount", "--propagation", "private", "sh", "-ec",
		`mount --bind "$1" "$2"; mount --bind "$1.boot" /proc/sys/kernel/random/boot_id; cd "$2"; shift 2; exec "$@"`, "sh",
		h.views[host], h.shared}
}

// fairway is a command of the program on a host, in a folder.
func (h *hosts) fairway(host int, folder string, arguments ...string) *exec.Cmd {
	words := append(h.enter(host), "timeout", fmt.Sprint((2 * patience).Seconds()), fairway, "-C", folder)
	words = append(words, arguments...)
	return exec.CommandContext(h.t.Context(), words[0], words[1:]...)
}

// watch begins a run whose server is a job.
func (h *hosts) watch(t *testing.T, host int, folder string) *watching {
	t.Helper()
	w := &watching{t: t, folder: folder, cmd: h.fairway(host, folder, "run", "--site", "cluster", "--server", "site")}
	w.cmd.Stdout, w.cmd.Stderr = &w.said, &w.said
	if err := w.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return w
}

// campaign has many jobs that say when they begin.
const campaign = `workflow: campaign
inputs:
  numbers: {files: 'in/{n}.txt', as: 'in/{n}'}
steps:
  work:
    each: in/{n}
    writes: out/{n}
    needs: {time: 20s}
    command: echo begun >> ${marks}/$n; sleep ${time}; cp "$in" "$out"
`

const campaignSite = `sites:
  cluster:
    system: slurm
    partition: batch
    max_pilots: 2
    cpus: 4
    time: 3m
    poll: 1s
`

// begunTwice are the jobs that began more than once; begun counts all.
func begunTwice(t *testing.T, marks string) (twice []string, begun int) {
	t.Helper()
	for name, text := range files.Below(t, marks) {
		if begun++; strings.Count(text, "begun") != 1 {
			twice = append(twice, name)
		}
	}
	return twice, begun
}

// lay makes a campaign of some jobs in a folder. The folder is beneath served, and known to hosts as at.
func lay(t *testing.T, served string, jobs int, seconds string) (marks string) {
	t.Helper()
	marks = t.TempDir()
	files.Write(t, filepath.Join(served, "workflow.yaml"),
		strings.NewReplacer("${marks}", marks, "${time}", seconds).Replace(campaign))
	files.Write(t, filepath.Join(served, "sites.yaml"), campaignSite)
	for i := range jobs {
		files.Write(t, filepath.Join(served, "in", fmt.Sprintf("%d.txt", i)), fmt.Sprintf("number %d\n", i))
	}
	return marks
}

// wantCampaign wants each job done once, from its own input.
func wantCampaign(t *testing.T, served, marks string, jobs int) {
	t.Helper()
	if twice, begun := begunTwice(t, marks); len(twice) > 0 || begun != jobs {
		t.Errorf("%d of %d jobs began, and not once: %v\n%s", begun, jobs, twice, pilotLogs(served))
	}
	made := results(t, served)
	for name, text := range made {
		if want, _ := os.ReadFile(filepath.Join(served, "in", filepath.Base(name)+".txt")); text != string(want) {
			t.Errorf("%s is not what was read", name)
		}
	}
	if len(made) != jobs {
		t.Errorf("%d jobs have %d results", jobs, len(made))
	}
}

// A job has an end, and a run need not: the server has another job follow it, which goes on with the same
// pilots. Hosts may know the folder by different device numbers.
func TestSlurmServersFollow(t *testing.T) {
	long(t)
	h := makeHosts(t)
	batchtest.SlurmOf(t, batchtest.Nodes{CPUs: 8, Enter: h.enter})
	plain := t.TempDir()
	t.Run("runs", func(t *testing.T) {
		for name, at := range map[string]struct{ folder, served string }{
			"one number":      {plain, plain},
			"another on each": {filepath.Join(h.shared, "work"), filepath.Join(h.views[login], "work")},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				handsOver(t, h, at.folder, at.served)
			})
		}
		t.Run("after a kill", func(t *testing.T) {
			t.Parallel()
			goesOnElsewhere(t, h)
		})
	})
	nothingQueued(t)
}

func handsOver(t *testing.T, h *hosts, folder, served string) {
	t.Helper()
	const jobs = 100
	marks := lay(t, served, jobs, "10")
	w := h.watch(t, login, folder)
	awaitFile(t, w, filepath.Join(marks, "0"))
	follower := h.fairway(login2, folder, "run", "--follow")
	followed := make(chan string, 1)
	go func() {
		out, err := follower.CombinedOutput()
		followed <- fmt.Sprintf("%v\n%s", err, out)
	}()
	awaitTerm(t, w, served, 2)
	if _, begun := begunTwice(t, marks); begun >= jobs {
		t.Errorf("all %d jobs had begun before another server followed", begun)
	}
	w.mustSucceed()
	if said := <-followed; !strings.Contains(said, fmt.Sprintf("%d jobs done", jobs)) {
		t.Errorf("who follows the run on another host does not see its end:\n%s", said)
	}
	wantCampaign(t, served, marks, jobs)
	if logs := serverLogs(served); !strings.Contains(logs, "the run goes on in the next job of the server") {
		t.Errorf("no server handed the run over:\n%s", logs)
	}
	if out, err := h.fairway(login2, folder, "jobs", "--state", "done").CombinedOutput(); err != nil ||
		!strings.Contains(string(out), "work/99") {
		t.Errorf("on another host after the run: %v\n%s", err, out)
	}
}

// awaitTerm waits until a server has begun the term with a number.
func awaitTerm(t *testing.T, w *watching, served string, number int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for name := fmt.Sprintf(".fairway/servers/%08d.term", number); len(below(served, name)) == 0; {
		if sched.Default().Sleep(ctx, 200*time.Millisecond) != nil {
			_ = w.cmd.Process.Kill()
			_ = w.cmd.Wait()
			t.Fatalf("no server has followed\n%s\n%s", w.said.String(), serverLogs(served))
		}
	}
}

// A server that is killed is followed by one that is started on another login node, to which the folder has
// another number: it finds the pilots.
func goesOnElsewhere(t *testing.T, h *hosts) {
	t.Helper()
	const jobs = 40
	folder, served := filepath.Join(h.shared, "killed"), filepath.Join(h.views[login], "killed")
	marks := lay(t, served, jobs, "10")
	w := h.watch(t, login, folder)
	awaitFile(t, w, filepath.Join(marks, "0"))
	killed := killedServer(t, served)
	if code := w.wait(); code != 1 || !strings.Contains(w.said.String(), "run it again to go on") {
		t.Errorf("job %s was killed: exit code %d\n%s", killed, code, w.said.String())
	}
	h.watch(t, login2, folder).mustSucceed()
	wantCampaign(t, served, marks, jobs)
}

// killedServer kills the job that is the server of a folder, and returns its number.
func killedServer(t *testing.T, served string) string {
	t.Helper()
	launches := below(served, ".fairway/servers/server-*.log")
	if len(launches) != 1 {
		t.Fatalf("servers: %v", launches)
	}
	launch := strings.TrimSuffix(filepath.Base(launches[0]), ".log")
	out, err := exec.Command("squeue", "--noheader", "--states=RUNNING", "--format=%i %j").CombinedOutput()
	if err != nil {
		t.Fatal(err, string(out))
	}
	for line := range strings.Lines(string(out)) {
		if id, name, _ := strings.Cut(strings.TrimSpace(line), " "); strings.HasSuffix(name, launch) {
			slurm(t, "scancel", "--signal=KILL", "--full", id)
			return id
		}
	}
	t.Fatalf("the batch system has no job %s:\n%s", launch, out)
	return ""
}
