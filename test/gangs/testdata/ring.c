// Passes a number around all ranks, each of which adds its own, and says on which task of the job each
// rank runs.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
	MPI_Init(&argc, &argv);
	int rank, size, sum = 0;
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	const char *named = getenv("FAIRWAY_TASK");
	int task = named == NULL ? -1 : atoi(named);
	for (int round = 0; round < 100; round++) {
		int mine = sum + rank + 1, next = (rank + 1) % size, previous = (rank + size - 1) % size;
		MPI_Sendrecv_replace(&mine, 1, MPI_INT, next, 0, previous, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		sum = mine % 1000003;
	}
	char node[64] = "", nodes[size][64];
	const char *on = getenv("SLURMD_NODENAME");
	snprintf(node, sizeof node, "%s", on == NULL ? "this node" : on);
	MPI_Gather(node, sizeof node, MPI_CHAR, nodes, sizeof node, MPI_CHAR, 0, MPI_COMM_WORLD);
	int tasks[size], sums[size];
	MPI_Gather(&task, 1, MPI_INT, tasks, 1, MPI_INT, 0, MPI_COMM_WORLD);
	MPI_Gather(&sum, 1, MPI_INT, sums, 1, MPI_INT, 0, MPI_COMM_WORLD);
	for (int i = 0; rank == 0 && i < size; i++) {
		printf("rank %d of %d, task %d on %s: %d\n", i, size, tasks[i], nodes[i], sums[i]);
	}
	MPI_Finalize();
	return 0;
}
