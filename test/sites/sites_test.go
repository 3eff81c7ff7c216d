// Package sites_test runs workflows on real batch systems as a person does, and compares
// what comes out with a run on this machine.
package sites_test

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"fairway/internal/batch/batchtest"
	"fairway/lib/sched"
	"fairway/test/files"
	"fairway/test/program"
)

var fairway string

func TestMain(m *testing.M) { program.Main(m, &fairway) }

// workflow has jobs that depend on each other, with data that tell where they came from.
const workflow = `workflow: sums
inputs:
  texts: {files: 'in/{n}.txt', as: 'in/{n}'}
steps:
  upper:
    each: in/{n}
    writes: up/{n}
    command: tr a-z A-Z < "$in" > "$out"
  parts:
    each: up/{n}
    writes: parts/{n}.{part}
    command: for p in 1 2 3; do sed "s/^/$p /" "$in" > parts/$n.$p; done
  merge:
    merge: parts/{n}.{part}
    writes: merged
    command: cat $in | sort > "$out"
`

// work is what runs at sites and on this machine, with the same results.
type work struct {
	lay       func(t *testing.T, folder string) // the files of it, in an empty folder
	arguments []string                          // of `fairway run`
	stored    bool                              // its results are in the storage element: it publishes none
}

// texts is a workflow over a few files of text.
func texts(workflow string) work {
	return work{lay: func(t *testing.T, folder string) {
		t.Helper()
		files.Write(t, filepath.Join(folder, "workflow.yaml"), workflow)
		for i := range 8 {
			files.Write(t, filepath.Join(folder, "in", fmt.Sprintf("%d.txt", i)),
				strings.Repeat(fmt.Sprintf("text %d\n", i), 100))
		}
	}}
}

// folderWith makes a folder with a workflow and some sites. It is one that nodes see.
func folderWith(t *testing.T, workflow, sites string) string {
	t.Helper()
	return texts(workflow).folder(t, sites)
}

func (w work) folder(t *testing.T, sites string) string {
	t.Helper()
	return w.in(t, t.TempDir(), sites)
}

// in is folder in an empty folder that is there.
func (w work) in(t *testing.T, folder, sites string) string {
	t.Helper()
	w.lay(t, folder)
	if sites != "" {
		files.Write(t, filepath.Join(folder, "sites.yaml"), sites)
	}
	return folder
}

// as are the words before a command that have another user give it; none: whoever runs the tests.
var as []string

// patience is how long a run may take.
const patience = 4 * time.Minute

// run runs fairway in a folder, and returns what it prints.
func run(t *testing.T, folder string, arguments ...string) string {
	t.Helper()
	cmd := command(t, folder, arguments...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("fairway %s: %v\n%s\n%s", strings.Join(arguments, " "), err, out, pilotLogs(folder))
	}
	return string(out)
}

func command(t *testing.T, folder string, arguments ...string) *exec.Cmd {
	t.Helper()
	argv := slices.Concat([]string{fmt.Sprint(patience.Seconds())}, as, []string{fairway}, arguments)
	cmd := exec.CommandContext(t.Context(), "timeout", argv...)
	cmd.Dir = folder
	return cmd
}

// below are the files of a folder that match a pattern, whatever the folder is called.
func below(folder, pattern string) (paths []string) {
	names, _ := fs.Glob(os.DirFS(folder), pattern)
	for _, name := range names {
		paths = append(paths, filepath.Join(folder, name))
	}
	return paths
}

// pilotLogs are what the pilots of a folder said.
func pilotLogs(folder string) string {
	var all bytes.Buffer
	logs := below(folder, ".fairway/pilots/*/*.log")
	for _, log := range logs {
		text, _ := os.ReadFile(log)
		fmt.Fprintf(&all, "== %s\n%s", filepath.Base(log), text)
	}
	return all.String()
}

// results are the files of a finished run with their contents.
func results(t *testing.T, folder string) map[string]string {
	t.Helper()
	return filesIn(t, filepath.Join(folder, "results"))
}

func filesIn(t *testing.T, root string) map[string]string {
	t.Helper()
	all := files.Below(t, root)
	if len(all) == 0 {
		t.Fatal("no results in", root)
	}
	for name, text := range all {
		all[name] = dated.ReplaceAllString(text, "")
	}
	return all
}

// results are the files that a work of this kind has made in a folder.
func (w work) results(t *testing.T, folder string) map[string]string {
	t.Helper()
	if !w.stored {
		return results(t, folder)
	}
	all := map[string]string{}
	for name, text := range filesIn(t, filepath.Join(folder, ".fairway/storage")) {
		_, name, _ = strings.Cut(name, "/") // below the identity of the state
		if written := strings.LastIndex(name, ".a"); written > 0 {
			all[name[:written]] = text
		}
	}
	return all
}

// dated is what bcftools writes of when it ran.
var dated = regexp.MustCompile(`(?m)^##bcftools_.*Date=.*$`)

func mustEqual(t *testing.T, got, want map[string]string) {
	t.Helper()
	for name, text := range want {
		if got[name] != text {
			t.Errorf("%s: %d bytes, and %d in the local run", name, len(got[name]), len(text))
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d results, and %d in the local run", len(got), len(want))
	}
}

// onSite runs a workflow over texts at sites and on this machine, and compares the
// results.
func onSite(t *testing.T, workflow, sites string, named ...string) (folder string) {
	t.Helper()
	return texts(workflow).onSite(t, sites, named...)
}

func (w work) onSite(t *testing.T, sites string, named ...string) (folder string) {
	t.Helper()
	arguments := append([]string{"run"}, w.arguments...)
	local := w.folder(t, "")
	run(t, local, arguments...)
	folder = w.in(t, batchtest.OddFolder(t), sites)
	for _, name := range named {
		arguments = append(arguments, "--site", name)
	}
	run(t, folder, arguments...)
	mustEqual(t, w.results(t, folder), w.results(t, local))
	nothingOnNodes(t, folder)
	return folder
}

// nothingOnNodes waits until the last pilot of a run that is over has removed its
// sandboxes and caches. The nodes of the batch systems are this machine.
func nothingOnNodes(t *testing.T, folder string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	states := below(folder, ".fairway/pilots/*")
	for _, state := range states {
		scratch := filepath.Join(os.TempDir(), "fairway-"+filepath.Base(state))
		if _, err := sched.Default().WaitFile(ctx, sched.Disappears(scratch)); err != nil {
			t.Errorf("%s is on the nodes when the run is over: %v", scratch, err)
		}
	}
}

const slurmSite = `sites:
  cluster:
    system: slurm
    partition: batch
    max_pilots: 3
    cpus: 2
    time: 1h
    poll: 1s
    tools: [tr, sed]
`

const gridEngineSite = `sites:
  farm:
    system: gridengine
    queue: all.q
    parallel_environment: smp
    max_pilots: 2
    cpus: 2
    time: 1h
    poll: 1s
`

// The examples and a trace are long tests.
func long(t *testing.T) {
	t.Helper()
	if os.Getenv(batchtest.Required) == "" {
		t.Skip("a long test: make test-slurm, make test-gridengine")
	}
}

func lambda(t *testing.T) work {
	t.Helper()
	long(t)
	for _, program := range []string{"bowtie2", "samtools", "bcftools"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip("the programs of the lambda workflow are not installed:", err)
		}
	}
	text, err := os.ReadFile("../../examples/lambda/workflow.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return texts(string(text))
}

// tier0 is the example with jobs from the contents of files, rewrites and outputs
// that are in caches only.
func tier0(t *testing.T) work {
	t.Helper()
	long(t)
	data := t.TempDir()
	if out, err := exec.Command("../../examples/tier0/make-events", "3", "300", data).CombinedOutput(); err != nil {
		t.Fatalf("make-events: %v\n%s", err, out)
	}
	return work{arguments: []string{"--set", "data=" + data, "--set", "events=100"},
		lay: func(t *testing.T, folder string) {
			t.Helper()
			if err := os.CopyFS(folder, os.DirFS("../../examples/tier0")); err != nil {
				t.Fatal(err)
			}
		}}
}

// trace is the project's own trace, without its computing and with small files.
func trace(t *testing.T) work {
	t.Helper()
	long(t)
	return work{arguments: []string{"mosaic.json", "--time-scale", "0", "--size-scale", "0.00001"}, stored: true,
		lay: func(t *testing.T, folder string) {
			t.Helper()
			text, err := os.ReadFile("../traces/testdata/mosaic.json")
			if err != nil {
				t.Fatal(err)
			}
			files.Write(t, filepath.Join(folder, "mosaic.json"), string(text))
		}}
}

// examples run at a site.
func examples(t *testing.T, sites, named string) {
	t.Helper()
	for name, of := range map[string]func(*testing.T) work{"lambda": lambda, "tier0": tier0, "trace": trace} {
		t.Run(name, func(t *testing.T) { of(t).onSite(t, sites, named) })
	}
}

// one is a test that needs a batch system for itself, but not a new one.
type one struct {
	name string
	run  func(t *testing.T)
}

// All tests of one Slurm: each finds it without jobs.
func TestSlurm(t *testing.T) {
	batchtest.Slurm(t)
	for _, test := range []one{
		{"runs", runsAtSlurm},
		{"server is killed", slurmServerIsKilled},
		{"pilots are left", slurmPilotsAreLeft},
		{"reasons", slurmReasons},
		{"pilots tell why they die", slurmPilotsTellWhyTheyDie},
		{"refuses pilots", slurmRefusesPilots},
		{"never starts", slurmNeverStarts},
		{"burst", slurmBurst},
		{"hands over", slurmHandsOver},
		{"server is a job", slurmServerIsAJob},
		{"server job is cancelled", slurmServerJobIsCancelled},
		{"allocation", slurmAllocation},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Cleanup(func() {
				slurm(t, "scancel", "--me")
				nothingQueued(t)
			})
			test.run(t)
		})
	}
}

// All tests of one Grid Engine.
func TestGridEngine(t *testing.T) {
	batchtest.GridEngine(t)
	for _, test := range []one{
		{"runs", runsAtGridEngine},
		{"never starts", gridEngineNeverStarts},
		{"server is a job", gridEngineServerIsAJob},
		{"allocation", gridEngineAllocation},
		{"beside Slurm", slurmAndGridEngine},
	} {
		t.Run(test.name, test.run)
	}
}

func runsAtSlurm(t *testing.T) {
	t.Helper()
	t.Run("sums", func(t *testing.T) {
		folder := onSite(t, workflow, slurmSite, "cluster")
		if left := strings.TrimSpace(queue(t)); left != "" {
			t.Errorf("the batch system has after the run: %s", left)
		}
		noSecrets(t, folder)
	})
	examples(t, slurmSite, "cluster")
	// The batch system says that a pilot has ended when it is asked the next time.
	t.Run("the end waits for no answer", func(t *testing.T) {
		folder := onSite(t, workflow, strings.Replace(slurmSite, "poll: 1s", "poll: 1h", 1), "cluster")
		noSecrets(t, folder)
	})
	t.Run("site test", func(t *testing.T) {
		folder := folderWith(t, workflow, slurmSite)
		said := run(t, folder, "site", "test", "cluster")
		for _, want := range []string{
			"#SBATCH --partition=batch", "a pilot came after", "processors  2", "memory      ", "disk        ", "time        ",
			"tools       tr, sed",
			"server      reached at ", "folder      the workflow's is read and written in place",
		} {
			if !strings.Contains(said, want) {
				t.Errorf("it doesn't say %q:\n%s", want, said)
			}
		}
		if entries, _ := os.ReadDir(folder); len(entries) != 3 {
			t.Errorf("it left files: %v", entries)
		}
	})
	t.Run("site test of a node without a tool", func(t *testing.T) {
		folder := folderWith(t, workflow, strings.Replace(slurmSite, "[tr, sed]", "[no-such-tool]", 1))
		out, err := command(t, folder, "site", "test", "cluster").CombinedOutput()
		if err == nil || !strings.Contains(string(out), "no-such-tool is not in PATH") {
			t.Errorf("%v:\n%s", err, out)
		}
	})
	t.Run("no such partition", func(t *testing.T) {
		folder := folderWith(t, workflow, strings.Replace(slurmSite, "partition: batch", "partition: nowhere", 1))
		out, err := command(t, folder, "site", "test", "cluster").CombinedOutput()
		if err == nil || !strings.Contains(string(out), "invalid partition") {
			t.Errorf("%v:\n%s", err, out)
		}
	})
	// Each site has only its own launches in the answer of their batch system.
	t.Run("two sites of one cluster", func(t *testing.T) {
		other := strings.Replace(strings.TrimPrefix(slurmSite, "sites:\n"), "cluster:", "cluster-b:", 1)
		folder := onSite(t, strings.Replace(slow, "echo begun >> ${marks}/$n; ", "", 1),
			strings.ReplaceAll(slurmSite+other, "max_pilots: 3", "max_pilots: 1\n    min_pilots: 1"), "cluster", "cluster-b")
		launches := below(folder, ".fairway/pilots/*/*.sh")
		if len(launches) != 2 {
			t.Errorf("two sites with one pilot each had %d: %v", len(launches), launches)
		}
	})
	t.Run("steps that need more than one processor of a whole node", func(t *testing.T) {
		onSite(t, strings.Replace(workflow, "  upper:\n", "  upper:\n    needs: {cpus: 2}\n", 1),
			strings.Replace(slurmSite, "    cpus: 2\n", "", 1), "cluster")
	})
	t.Run("sharing nothing", func(t *testing.T) {
		folder := onSite(t, workflow, slurmSite+"    shares: nothing\n", "cluster")
		if scripts := below(folder, ".fairway/pilots/*/*.sh"); len(scripts) > 0 {
			t.Errorf("scripts with secrets are written down: %v", scripts)
		}
	})
	t.Run("beside this machine", func(t *testing.T) { onSite(t, workflow, slurmSite, "cluster", "local") })
}

// queue is what Slurm has that has not ended.
func queue(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("squeue", "--noheader", "--states=PENDING,RUNNING", "--format=%j %T").CombinedOutput()
	if err != nil {
		t.Fatal(err, string(out))
	}
	return string(out)
}

// noSecrets looks for tokens in what others may read.
func noSecrets(t *testing.T, folder string) {
	t.Helper()
	scripts := below(folder, ".fairway/pilots/*/*.sh")
	if len(scripts) == 0 {
		t.Error("there is no script of a pilot")
	}
	for _, script := range scripts {
		text, _ := os.ReadFile(script)
		if bytes.Contains(text, []byte("token")) {
			t.Errorf("%s has a token:\n%s", script, text)
		}
	}
	left := below(folder, ".fairway/pilots/*/*.connect")
	if len(left) > 0 {
		t.Errorf("connection files are left: %v", left)
	}
}

func runsAtGridEngine(t *testing.T) {
	t.Helper()
	t.Run("sums", func(t *testing.T) { onSite(t, workflow, gridEngineSite, "farm") })
	examples(t, gridEngineSite, "farm")
}

// Several sites serve one run.
func slurmAndGridEngine(t *testing.T) {
	t.Helper()
	batchtest.Slurm(t)
	both := slurmSite + strings.TrimPrefix(gridEngineSite, "sites:\n")
	onSite(t, workflow, both, "cluster", "farm")
}

// slow is a workflow whose jobs a server does not outlive, if it is killed.
const slow = `workflow: slow
inputs:
  texts: {files: 'in/{n}.txt', as: 'in/{n}'}
steps:
  wait:
    each: in/{n}
    writes: out/{n}
    command: echo begun >> ${marks}/$n; sleep 1.5; cp "$in" "$out"
`

// A server that is killed leaves its pilots to the next one: they go on computing, no
// job runs twice, and the batch system never has more than max_pilots.
func slurmServerIsKilled(t *testing.T) {
	t.Helper()
	marks := t.TempDir()
	folder := folderWith(t, strings.ReplaceAll(slow, "${marks}", marks),
		strings.Replace(slurmSite, "max_pilots: 3", "max_pilots: 2", 1))
	most := countJobs(t)
	first := exec.CommandContext(t.Context(), fairway, "run", "--site", "cluster")
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
	run(t, folder, "run", "--site", "cluster")
	for name, text := range results(t, folder) {
		if want, _ := os.ReadFile(filepath.Join(folder, "in", filepath.Base(name)+".txt")); text != string(want) {
			t.Errorf("%s is not what was read", name)
		}
	}
	begun, _ := os.ReadFile(filepath.Join(marks, "0"))
	if n := strings.Count(string(begun), "begun"); n != 1 {
		t.Errorf("the job that ran when the server was killed began %d times\n%s", n, pilotLogs(folder))
	}
	if n := most(); n > 2 || n == 0 {
		t.Errorf("the batch system had %d pilots, of at most 2", n)
	}
}

// Pilots of a run that was cut short are known, where no server runs: their files are not removed under them,
// and a person can end them.
func slurmPilotsAreLeft(t *testing.T) {
	t.Helper()
	marks := t.TempDir()
	folder := folderWith(t, strings.NewReplacer("${marks}", marks, "sleep 1.5", "sleep 300").Replace(slow), slurmSite)
	first := exec.CommandContext(t.Context(), fairway, "run", "--site", "cluster")
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
	refused := func(code int, said string, arguments ...string) {
		t.Helper()
		cmd := command(t, folder, arguments...)
		out, _ := cmd.CombinedOutput()
		if got := cmd.ProcessState.ExitCode(); got != code || !strings.Contains(string(out), said) {
			t.Errorf("fairway %s: exit code %d, want %d and %q:\n%s", strings.Join(arguments, " "), got, code, said, out)
		}
	}
	refused(0, "at the site cluster; `fairway run` takes them over", "jobs")
	refused(4, "`fairway stop --now` ends them", "clean")
	refused(5, "`fairway stop --now` ends them", "stop")
	sites := files.Read(t, filepath.Join(folder, "sites.yaml"))
	files.Write(t, filepath.Join(folder, "sites.yaml"), strings.Replace(sites, "cluster:", "other:", 1))
	refused(4, "still compute at the site cluster is not known", "clean")
	files.Write(t, filepath.Join(folder, "sites.yaml"), sites)
	refused(0, "are ended", "stop", "--now")
	if left := strings.TrimSpace(queue(t)); left != "" {
		t.Errorf("the batch system has after they were ended: %s", left)
	}
	refused(5, "nothing runs", "stop", "--now")
	run(t, folder, "clean")
	if left, err := os.ReadDir(filepath.Join(folder, ".fairway")); err == nil {
		t.Errorf("left: %v", left)
	}
}

// countJobs asks Slurm again and again how many jobs it has, until the returned function
// tells the most.
func countJobs(t *testing.T) (most func() int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan int, 1)
	status := sched.NewStatus(sched.Default(), sched.StatusConfig[string, int]{
		Name: "squeue of " + t.Name(), Every: 100 * time.Millisecond,
		Query: func(ctx context.Context, keys []string) (map[string]int, error) {
			out, err := exec.CommandContext(ctx, "squeue", "--noheader", "--states=PENDING,RUNNING", "--format=%j").Output()
			return map[string]int{keys[0]: strings.Count(string(out), "fairway.")}, err
		},
	})
	go func() {
		n := 0
		_, _ = status.Wait(ctx, "jobs", func(a sched.Answer[int]) bool {
			n = max(n, a.Value)
			return false
		})
		done <- n
	}()
	return func() int {
		cancel()
		return <-done
	}
}

// whileWaiting runs a workflow that cannot go on at the site cluster, and repeats commands until
// what each of them prints is wanted.
func whileWaiting(t *testing.T, sites string, wanted func(said ...string) bool, commands ...[]string) {
	t.Helper()
	folder := folderWith(t, workflow, sites)
	waiting := exec.CommandContext(t.Context(), fairway, "run", "--site", "cluster", "--wait-anyway")
	waiting.Dir = folder
	if err := waiting.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = waiting.Process.Signal(os.Interrupt)
		_ = waiting.Wait()
	}()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	status := sched.NewStatus(sched.Default(), sched.StatusConfig[string, []string]{
		Name: t.Name(), Every: 300 * time.Millisecond, Failures: 1 << 20,
		Query: func(_ context.Context, keys []string) (map[string][]string, error) {
			var said []string
			for _, arguments := range commands {
				text, _ := command(t, folder, arguments...).CombinedOutput() // there may be no run yet
				said = append(said, string(text))
			}
			return map[string][]string{keys[0]: said}, nil
		},
	})
	answer, err := status.Wait(ctx, "why", func(a sched.Answer[[]string]) bool { return a.Known && wanted(a.Value...) })
	if err != nil {
		t.Errorf("%v: %s", err, answer.Value)
	}
}

// A person who asks why a job does not run must be told why its pilot waits, in the words
// of the batch system.
func slurmReasons(t *testing.T) {
	t.Helper()
	for name, test := range map[string]struct{ instead, want string }{
		"held":         {"partition: batch\n    options: [--hold]", "1 pilot queued for "},
		"no partition": {"partition: nowhere", "refused: sbatch: "},
	} {
		t.Run(name, func(t *testing.T) {
			whileWaiting(t, strings.NewReplacer("partition: batch", test.instead, "max_pilots: 3",
				"max_pilots: 1").Replace(slurmSite), func(said ...string) bool {
				return strings.Contains(said[0], "site cluster: "+test.want) &&
					strings.Contains(said[1], "site cluster: "+test.want) &&
					(name != "held" || strings.Contains(said[0], "JobHeldUser"))
			}, []string{"explain", "1"}, []string{"jobs"})
		})
	}
}

// A pilot on a node that shares nothing with this machine tells why it takes no jobs, where
// the person can read it.
func slurmPilotsTellWhyTheyDie(t *testing.T) {
	t.Helper()
	site := strings.Replace(slurmSite, "max_pilots: 3", "max_pilots: 1", 1) +
		"    shares: nothing\n    check: echo there is no licence >&2; false\n"
	whileWaiting(t, site, func(said ...string) bool {
		return strings.Contains(said[0], "there is no licence")
	}, []string{"logs", "--pilot", "last"})
}

// A batch system that takes no pilots must not end a run that others can serve, and the
// person must be told why.
func slurmRefusesPilots(t *testing.T) {
	t.Helper()
	local := folderWith(t, workflow, "")
	run(t, local, "run")
	folder := folderWith(t, workflow, strings.Replace(slurmSite, "partition: batch", "partition: nowhere", 1))
	said := run(t, folder, "run", "--site", "cluster", "--site", "local")
	mustEqual(t, results(t, folder), results(t, local))
	if strings.Count(said, "the site cluster can never start a pilot") != 1 ||
		!strings.Contains(said, "invalid partition") {
		t.Errorf("that the site refuses pilots was not told once:\n%s", said)
	}
}

// What could never start is an error at once, and not a wait. The last run tells why
// afterwards, too.
func slurmNeverStarts(t *testing.T) {
	t.Helper()
	slurm(t, "scontrol", "create", "PartitionName=short", "Nodes="+batchtest.NodeName(0), "MaxTime=1", "State=UP")
	for name, test := range map[string]struct{ with, said string }{
		"no such partition": {"partition: nowhere", "invalid partition"},
		"time":              {"partition: short", "PartitionTimeLimit"},
		"processors":        {"partition: batch\n    options: [--mincpus=64]", "node configuration is not available"},
		"feature":           {"partition: batch\n    options: [--constraint=avx9]", "Invalid feature"},
	} {
		t.Run(name, func(t *testing.T) {
			folder := folderWith(t, workflow, strings.Replace(slurmSite, "partition: batch", test.with, 1))
			for _, arguments := range [][]string{
				{"run", "--site", "cluster"}, {"explain", "upper/0"}, {"site", "test", "cluster"},
			} {
				out, err := command(t, folder, arguments...).CombinedOutput()
				if failed := err != nil; failed == (arguments[0] == "explain") || !strings.Contains(string(out), test.said) {
					t.Errorf("fairway %s: %v:\n%s", strings.Join(arguments, " "), err, out)
				}
			}
		})
	}
	if left := strings.TrimSpace(queue(t)); left != "" {
		t.Errorf("the batch system has after the runs: %s", left)
	}
}

func slurm(t *testing.T, argv ...string) {
	t.Helper()
	if out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %v: %s", argv, err, out)
	}
}

// asks is a workflow with a job that needs all that its pilot is described to have, and
// tells its environment.
const asks = `workflow: asks
steps:
  asks:
    writes: environment
    needs: {memory: 1GB, licence: 2}
    command: env > "$out"
`

// A job sees what the site hands over, and has the memory that the site names.
func slurmHandsOver(t *testing.T) {
	t.Helper()
	for name, value := range map[string]string{
		"FAMILIAR":              "f",
		"HIDDEN":                "h",
		"AWS_SECRET_ACCESS_KEY": "k",
		"SBATCH_EXPORT":         "ALL",
	} {
		t.Setenv(name, value)
	}
	site := strings.Replace(slurmSite, "cpus: 2", "memory: 1GB\n    has: [licence=2]", 1)
	for _, test := range []struct {
		with          string
		there, absent []string
	}{
		{"", []string{"PATH=", "HOME=", "SLURM_JOB_ID="}, []string{"FAMILIAR=", "HIDDEN=", "AWS_SECRET_ACCESS_KEY=", "LC_ALL="}},
		{"    environment: [FAMILIAR, AWS_SECRET_ACCESS_KEY]\n", []string{"FAMILIAR=f", "AWS_SECRET_ACCESS_KEY=k"}, []string{"HIDDEN="}},
		{"    environment: all\n", []string{"FAMILIAR=f", "HIDDEN=h", "AWS_SECRET_ACCESS_KEY=k"}, []string{"FAIRWAY_PILOT_CONFIG="}},
	} {
		folder := folderWith(t, asks, site+test.with)
		run(t, folder, "run", "--site", "cluster")
		got := "\n" + results(t, folder)["environment"]
		for _, entry := range test.there {
			if !strings.Contains(got, "\n"+entry) {
				t.Errorf("with %q there is no %s in\n%s", test.with, entry, got)
			}
		}
		for _, entry := range test.absent {
			if strings.Contains(got, "\n"+entry) {
				t.Errorf("with %q there is %s in\n%s", test.with, entry, got)
			}
		}
	}
}

// Grid Engine refuses at once what no host could take.
func gridEngineNeverStarts(t *testing.T) {
	t.Helper()
	for with, said := range map[string]string{
		"queue: nowhere.q": "unknown queue",
		"queue: all.q\n    options: ['-l hostname=nowhere']": "can't resolve hostname",
	} {
		folder := folderWith(t, workflow, strings.Replace(gridEngineSite, "queue: all.q", with, 1))
		out, err := command(t, folder, "run", "--site", "farm").CombinedOutput()
		if err == nil || !strings.Contains(string(out), "can never start a pilot") || !strings.Contains(string(out), said) {
			t.Errorf("%s: %v:\n%s", with, err, out)
		}
	}
}
