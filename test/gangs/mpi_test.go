package gangs

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"fairway/test/program"
)

// mpiWorkflow runs a program of MPI once over three tasks.
const mpiWorkflow = `workflow: mpi
inputs: {program: {files: ring}}
steps:
  ring:
    tasks: 3
    once: true
    reads: ring
    writes: said.txt
    command: |
      export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
      program=$(readlink -f ring)
      mpirun --mca btl self,tcp --mca btl_tcp_if_include lo --mca oob_tcp_if_include lo "$program" > said.txt
`

// mpirun finds the tasks by itself, and each rank runs within one of them.
func TestMPI(t *testing.T) {
	for _, needed := range []string{"mpirun", "mpicc"} {
		if _, err := exec.LookPath(needed); err != nil {
			t.Skip(err)
		}
	}
	folder := t.TempDir()
	compile := exec.Command("mpicc", "-o", filepath.Join(folder, "ring"), "testdata/ring.c")
	if out, err := compile.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	fairway, err := program.Build(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "workflow.yaml"), []byte(mpiWorkflow), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute) // also for the lease of a pilot
	defer cancel()
	run := exec.CommandContext(ctx, fairway, "run", filepath.Join(folder, "workflow.yaml"), "--pilots", "3")
	if out, err := run.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	said, err := os.ReadFile(filepath.Join(folder, "results/said.txt"))
	const want = `rank 0 of 3, task 0 on this node: 201
rank 1 of 3, task 1 on this node: 199
rank 2 of 3, task 2 on this node: 200
`
	if err != nil || string(said) != want {
		t.Errorf("it said %q, %v", said, err)
	}
}
