package sites_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"fairway/internal/batch/batchtest"
)

// mpi runs a program of MPI over tasks of which each is a pilot of its own.
const mpi = `workflow: mpi
inputs: {program: {files: ring}}
steps:
  ring:
    tasks: 2
    once: true
    needs: {cpus: 2}
    reads: ring
    writes: said.txt
    command: |
      export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
      program=$(readlink -f ring)
      mpirun --mca btl self,tcp --mca btl_tcp_if_include lo --mca oob_tcp_if_include lo \
        -npernode 1 "$program" > said.txt
`

// A program of MPI runs over two nodes of Slurm, in two of its jobs.
func TestSlurmMPI(t *testing.T) {
	for _, needed := range []string{"mpirun", "mpicc"} {
		if _, err := exec.LookPath(needed); err != nil {
			t.Skip(err)
		}
	}
	batchtest.Slurm(t)
	folder := folderWith(t, mpi, slurmSite)
	compile := exec.Command("mpicc", "-o", filepath.Join(folder, "ring"), "../gangs/testdata/ring.c")
	if out, err := compile.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	run(t, folder, "run", "--site", "cluster")
	said, err := os.ReadFile(filepath.Join(folder, "results/said.txt"))
	want := regexp.MustCompile(`^rank 0 of 2, task 0 on (n\d): 150\nrank 1 of 2, task 1 on (n\d): 150\n$`)
	m := want.FindSubmatch(said)
	if err != nil || m == nil || string(m[1]) == string(m[2]) {
		t.Errorf("it said %q, %v", said, err)
	}
}
