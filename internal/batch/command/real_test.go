package command_test

import (
	"strings"
	"testing"
	"time"

	"fairway/internal/batch"
	"fairway/internal/batch/batchtest"
	"fairway/internal/batch/command"
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
		folder := t.TempDir()
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
