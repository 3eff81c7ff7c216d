package command_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"fairway/internal/batch"
	"fairway/internal/batch/batchtest"
	"fairway/internal/batch/command"
	"fairway/lib/sched"
)

// system is a batch system by a template that comes with the program, for launches of
// batchtest.
func system(t *testing.T, template, state, folder string, request command.Request) batch.System {
	t.Helper()
	ready, err := command.Ready(template)
	if err != nil {
		t.Fatal(err)
	}
	s, err := command.New(command.Config{
		Template: ready, Request: request, State: state, Folder: folder,
		Script: func(launch string) (string, error) { return batchtest.Script(folder, launch), nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func conforms(t *testing.T, template string, request command.Request) {
	t.Helper()
	batchtest.Run(t, func(t *testing.T) batchtest.Opened {
		folder := batchtest.OddFolder(t)
		return batchtest.Opened{
			System: system(t, template, "0123456789abcdef", folder, request),
			Other:  system(t, template, "fedcba9876543210", folder, request),
			Folder: folder,
		}
	})
}

func TestSlurm(t *testing.T) {
	batchtest.Slurm(t)
	conforms(t, "slurm", command.Request{
		Partition: batchtest.SlurmPartition, CPUs: batchtest.SlurmCPUs, Memory: 100 << 20, Time: time.Hour,
		Options: []string{`--comment="two words"`},
	})
	t.Run("no such partition", func(t *testing.T) {
		s := system(t, "slurm", "0123456789abcdef", t.TempDir(), command.Request{Partition: "nowhere"})
		if err := s.Submit(t.Context(), "l-3"); err == nil || !strings.Contains(err.Error(), "invalid partition") {
			t.Error(err)
		}
	})
	// Nobody may take silence for a queue without jobs.
	t.Run("no daemon", func(t *testing.T) {
		text, err := os.ReadFile(os.Getenv("SLURM_CONF"))
		if err != nil {
			t.Fatal(err)
		}
		away := filepath.Join(t.TempDir(), "slurm.conf")
		text = regexp.MustCompile(`SlurmctldPort=\d+`).ReplaceAll(text, []byte("SlurmctldPort=1\nMessageTimeout=2"))
		if err := os.WriteFile(away, text, 0o644); err != nil {
			t.Fatal(err)
		}
		t.Setenv("SLURM_CONF", away)
		s := system(t, "slurm", "0123456789abcdef", t.TempDir(), command.Request{})
		if found, err := s.Status(t.Context()); err == nil {
			t.Error("status:", found)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if err := s.Submit(ctx, "l-4"); err == nil {
			t.Error("a submission that nobody took has succeeded")
		}
	})
}

// Scripts of sites that share nothing hold a secret. What the template says of Slurm must
// be so: another user finds it neither by asking nor in files.
func TestSlurmKeepsScriptsPrivate(t *testing.T) {
	batchtest.Slurm(t)
	ready, err := command.Ready("slurm")
	if err != nil || !ready.Private {
		t.Fatal("the template does not say so:", err)
	}
	folder := t.TempDir()
	s, err := command.New(command.Config{
		Template: ready, State: "0123456789abcdef", Folder: folder, Secret: true,
		Request: command.Request{Partition: batchtest.SlurmPartition},
		Script: func(string) (string, error) {
			return "# THE SECRET\ntouch " + folder + "/begun\nsleep 60\n", nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Submit(t.Context(), "l-1"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := sched.Default().WaitFile(
		ctx, sched.FileQuery{Path: folder + "/begun", Until: func(f sched.FileState) bool { return f.Info != nil }},
	); err != nil {
		t.Fatal(err)
	}
	look := `scontrol write batch_script 1 -; scontrol show job 1 -dd; ps -ef; grep -ras 'THE SECRET' "${SLURM_CONF%/*}"`
	own, _ := exec.Command("sh", "-c", look).CombinedOutput()
	if !strings.Contains(string(own), "THE SECRET") {
		t.Fatalf("root does not find it, so the test looks in the wrong places: %s", own)
	}
	other, _ := exec.Command("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "sh", "-c",
		look).CombinedOutput()
	if text := strings.ReplaceAll(string(other), look, ""); strings.Contains(text, "THE SECRET") ||
		!strings.Contains(text, "JobId=1") {
		t.Errorf("another user finds it:\n%s", text)
	}
}

// An element of ARC tells of changes up to a minute late.
func TestARC(t *testing.T) {
	element := batchtest.ARC(t)
	request := command.Request{Queue: batchtest.SlurmPartition, CPUs: 1, Memory: 100 << 20, Time: time.Hour,
		Options: []string{"--computing-element=" + element}}
	conforms(t, "arc", request)
	t.Run("no such queue", func(t *testing.T) {
		request := request
		request.Queue = "nowhere"
		s := system(t, "arc", "0123456789abcdef", t.TempDir(), request)
		if err := s.Submit(t.Context(), "l-3"); err == nil {
			t.Error("it was taken")
		}
	})
	t.Run("no element", func(t *testing.T) {
		s := system(t, "arc", "0123456789abcdef", t.TempDir(), command.Request{
			Options: []string{"--computing-element=https://localhost:1/arex"},
		})
		if err := s.Submit(t.Context(), "l-4"); err == nil {
			t.Error("a submission that nobody took has succeeded")
		}
	})
}

func TestGridEngine(t *testing.T) {
	batchtest.GridEngine(t)
	conforms(t, "gridengine", command.Request{
		Queue: batchtest.GridEngineQueue, CPUs: 2, ParallelEnvironment: batchtest.GridEngineShared, Time: time.Hour,
	})
	t.Run("no such queue", func(t *testing.T) {
		s := system(t, "gridengine", "0123456789abcdef", t.TempDir(), command.Request{Queue: "nowhere.q"})
		if err := s.Submit(t.Context(), "l-3"); err == nil || !strings.Contains(err.Error(), "nowhere.q") {
			t.Error(err)
		}
	})
}
