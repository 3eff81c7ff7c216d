package command_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fairway/internal/batch"
	"fairway/internal/batch/batchtest"
	"fairway/internal/batch/command"
)

// It takes no jobs of root, so root starts it and an ordinary user submits.
func TestHTCondor(t *testing.T) {
	if !batchtest.Again() {
		folder := batchtest.HTCondor(t, "STARTER_ALLOW_RUNAS_OWNER = True")
		batchtest.RunAs(t, batchtest.HTCondorUser, folder)
		return
	}
	t.Run("conforms", func(t *testing.T) {
		conforms(t, "htcondor", command.Request{
			CPUs: 1, Memory: 100 << 20, Time: time.Hour,
			Options: []string{`+Comment = "two words"`, "requirements = Cpus > 0"},
		})
	})
	for name, test := range map[string]func(*testing.T, *batchtest.Opened){
		"one cluster": condorOneCluster, "held": condorHeld, "evicted": condorEvicted,
		"held while it runs": condorHeldRunning, "cannot begin": condorCannotBegin,
	} {
		t.Run(name, func(t *testing.T) {
			folder := batchtest.OddFolder(t)
			o := &batchtest.Opened{Folder: folder, System: system(t, "htcondor", "0123456789abcdef", folder,
				command.Request{CPUs: batchtest.HTCondorCPUs, Memory: 100 << 20})}
			t.Cleanup(func() { // the next one finds a free node
				condor(t, "condor_rm", "-all")
				o.Until(t, "the queue is empty", func(found map[string]batch.Status) bool { return len(found) == 0 })
			})
			test(t, o)
		})
	}
	// Nobody may take silence for a queue without jobs.
	t.Run("no daemon", func(t *testing.T) {
		t.Setenv("_CONDOR_SCHEDD_HOST", "nowhere@127.0.0.1")
		s := system(t, "htcondor", "0123456789abcdef", t.TempDir(), command.Request{})
		if found, err := s.Status(t.Context()); err == nil {
			t.Error("status:", found)
		}
		if err := s.Submit(t.Context(), "l-4"); err == nil {
			t.Error("a submission that nobody took has succeeded")
		}
	})
}

// condor calls a program of HTCondor, which may have nothing to do.
func condor(t *testing.T, argv ...string) string {
	t.Helper()
	out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput()
	if err != nil && argv[0] != "condor_rm" {
		t.Fatalf("%s: %v: %s", strings.Join(argv, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// jobOf is the number of the job of a launch.
func jobOf(t *testing.T, launch string) string {
	t.Helper()
	return condor(t, "condor_q", "-constraint", fmt.Sprintf(`JobBatchName == "fairway.0123456789ab.%s"`, launch), "-af:j", "ProcId")
}

func submitted(t *testing.T, o *batchtest.Opened, launches ...string) {
	t.Helper()
	if err := o.System.(batch.Batcher).SubmitAll(t.Context(), launches); err != nil {
		t.Fatal(err)
	}
}

// number is the first word of the line about a job.
func number(line string) string { return strings.Fields(line + " none")[0] }

// Many pilots are one submission, and jobs of one cluster.
func condorOneCluster(t *testing.T, o *batchtest.Opened) {
	submitted(t, o, "l-1", "l-2", "l-3")
	clusters := map[string]bool{}
	for _, launch := range []string{"l-1", "l-2", "l-3"} {
		cluster, _, _ := strings.Cut(number(jobOf(t, launch)), ".")
		clusters[cluster] = true
	}
	if len(clusters) != 1 || clusters["none"] {
		t.Error("the clusters of three launches that were submitted at once:", clusters)
	}
	found, err := o.System.Status(t.Context())
	if err != nil || len(found) != 3 {
		t.Error(found, err)
	}
}

// What a person holds waits, and says by whom; it starts when it is released.
func condorHeld(t *testing.T, o *batchtest.Opened) {
	submitted(t, o, "l-1", "l-2", "l-3") // of which each takes the whole node
	o.Await(t, "l-1.began")
	condor(t, "condor_hold", number(jobOf(t, "l-2")))
	o.Until(t, "l-2 says that it is held", func(found map[string]batch.Status) bool {
		return found["l-2"].State == batch.Queued && strings.Contains(found["l-2"].Reason, batchtest.HTCondorUser)
	})
	recordAnswer(t)
	if err := o.System.Withdraw(t.Context(), "l-1", "l-3"); err != nil {
		t.Fatal(err)
	}
	o.Gone(t, "l-1")
	condor(t, "condor_release", number(jobOf(t, "l-2")))
	o.Await(t, "l-2.began")
}

// Whoever was evicted has said farewell, and does not begin again.
func condorEvicted(t *testing.T, o *batchtest.Opened) {
	submitted(t, o, "l-1")
	before := began(t, o, "l-1")
	condor(t, "condor_vacate_job", number(jobOf(t, "l-1")))
	o.Await(t, "l-1.ended")
	o.Gone(t, "l-1")
	submitted(t, o, "l-2") // and the node is free for the next
	o.Await(t, "l-2.began")
	if after := began(t, o, "l-1"); after != before {
		t.Errorf("it was started again: %q, then %q", before, after)
	}
}

func condorHeldRunning(t *testing.T, o *batchtest.Opened) {
	submitted(t, o, "l-1")
	o.Await(t, "l-1.began")
	condor(t, "condor_hold", number(jobOf(t, "l-1")))
	o.Await(t, "l-1.ended")
	o.Gone(t, "l-1")
}

// A job that HTCondor holds because it cannot begin would wait for ever.
func condorCannotBegin(t *testing.T, o *batchtest.Opened) {
	o.System = system(t, "htcondor", "0123456789abcdef", o.Folder,
		command.Request{Options: []string{"transfer_input_files = /proc/nothing"}})
	if err := o.System.Submit(t.Context(), "l-1"); err != nil {
		return // it was refused at once
	}
	o.Gone(t, "l-1")
}

func began(t *testing.T, o *batchtest.Opened, launch string) string {
	t.Helper()
	text, err := os.ReadFile(o.Await(t, launch+".began"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// recordAnswer writes what condor_q says now, for testdata, where RECORD names a file.
func recordAnswer(t *testing.T) {
	t.Helper()
	file := os.Getenv("RECORD")
	if file == "" {
		return
	}
	ready, err := command.Ready("htcondor")
	if err != nil {
		t.Fatal(err)
	}
	answer, err := exec.Command(ready.Status[0], ready.Status[1:]...).Output()
	if err == nil {
		err = os.WriteFile(file, answer, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Scripts of sites that share nothing hold a secret. What the template says of HTCondor must be so:
// another user finds it neither by asking nor in files.
func TestHTCondorKeepsScriptsPrivate(t *testing.T) {
	d := batchtest.HTCondor(t)
	uid, gid := batchtest.Account(t, batchtest.HTCondorUser)
	folder := filepath.Join(d, "own")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	ready, err := command.Ready("htcondor")
	if err != nil || !ready.Carries() {
		t.Fatal("the template does not say so:", err)
	}
	// Only who has submitted them is told of jobs.
	ready.Status = append([]string{"setpriv", fmt.Sprint("--reuid=", uid), fmt.Sprint("--regid=", gid), "--clear-groups"},
		ready.Status...)
	s, err := command.New(command.Config{
		Template: ready, State: "0123456789abcdef", Folder: folder,
		Script: func(string) (string, error) { return "# THE SECRET\nsleep 60\n", nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	script, input, err := s.Text("l-1")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(folder, "l-1.sh")
	for _, err := range []error{
		os.WriteFile(file, []byte(script), 0o700), os.Chown(file, int(uid), int(gid)), os.Chown(folder, int(uid), int(gid)),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	as := func(number uint32, script string) string {
		cmd := exec.Command("setpriv", fmt.Sprint("--reuid=", number), fmt.Sprint("--regid=", number), "--clear-groups", "sh",
			"-c", script)
		cmd.Dir, cmd.Stdin = d, strings.NewReader(input)
		out, _ := cmd.CombinedOutput()
		return string(out)
	}
	said := as(uid, "ln -s . own/scripts && cd own && exec condor_submit -spool -terse -")
	if err := os.Remove(file); err != nil { // as a submission does
		t.Fatal(err)
	}
	o := &batchtest.Opened{System: s}
	o.Until(t, "it runs: "+said, func(found map[string]batch.Status) bool { return found["l-1"].State == batch.Running })
	look := `condor_q -allusers -l; condor_status -l; ps -ef; grep -ras 'THE SECRET' ` + d
	own, _ := exec.Command("sh", "-c", look).CombinedOutput()
	if !strings.Contains(string(own), "# THE SECRET") {
		t.Fatalf("root does not find it, so the test looks in the wrong places: %s", own)
	}
	const other = 2 // another user than that of the daemons, of the submission and of the job
	if text := strings.ReplaceAll(as(other, look), look, ""); strings.Contains(text, "# THE SECRET") ||
		!strings.Contains(text, "JobBatchName") {
		t.Errorf("another user finds it:\n%s", text)
	}
}
