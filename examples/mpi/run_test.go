package mpiexample

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// mpi skips the test where there is no MPI.
func mpi(t *testing.T) {
	t.Helper()
	for _, program := range []string{"mpicc", "mpirun"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(program + " is missing: make test-mpi installs Open MPI")
		}
	}
}

func command(t *testing.T, name string, arguments ...string) []byte {
	t.Helper()
	c := exec.CommandContext(t.Context(), name, arguments...)
	c.Env = append(os.Environ(), "CC=mpicc", "OMPI_MCA_rmaps_base_oversubscribe=1")
	if os.Geteuid() == 0 {
		c.Env = append(c.Env, "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1")
	}
	var said bytes.Buffer
	c.Stderr = &said
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s%s", c.Args, err, out, said.Bytes())
	}
	return out
}

// All rows are there, and each has seen messages of a real MPI.
func TestPingPongUnderMpirun(t *testing.T) {
	mpi(t)
	program := filepath.Join(t.TempDir(), "pingpong")
	command(t, "go", "build", "-o", program, "./pingpong")
	out := command(t, "mpirun", "-n", "2", "--bind-to", "none", program, "-quick", "-json")
	var result struct {
		Reactions []struct {
			Way      string
			Messages int
		}
		Waiting []struct {
			Way      string
			Waiters  int
			TaskMS   float64 `json:"task_ms"`
			Messages int
		}
	}
	if err := json.Unmarshal(out, &result); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if len(result.Reactions) != 8 || len(result.Waiting) != 6 {
		t.Errorf("%d and %d rows", len(result.Reactions), len(result.Waiting))
	}
	for _, r := range result.Reactions {
		if r.Messages == 0 {
			t.Errorf("%s: no messages", r.Way)
		}
	}
	for _, w := range result.Waiting {
		if w.Messages == 0 || w.TaskMS <= 0 {
			t.Errorf("%s: %d messages, %v ms", w.Way, w.Messages, w.TaskMS)
		}
	}
}

func TestProgramSaysHowManyProcessesItTakes(t *testing.T) {
	mpi(t)
	program := filepath.Join(t.TempDir(), "pingpong")
	command(t, "go", "build", "-o", program, "./pingpong")
	c := exec.CommandContext(t.Context(), program, "-quick")
	out, err := c.CombinedOutput()
	if err == nil || !bytes.Contains(out, []byte("mpirun -n 2")) {
		t.Errorf("%v: %s", err, out)
	}
}
