/* The same sweep with MPI, one rank for each block. Arguments: n, iterations,
 * rows, columns of blocks. In each iteration a rank waits for the new edges of
 * the blocks above and to the left, and has got the old ones of the others. */
#include "initial.h"
#include <mpi.h>

enum { NORTH, SOUTH, WEST, EAST };

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  if (argc != 5)
    MPI_Abort(MPI_COMM_WORLD, 2);
  size_t n = strtoul(argv[1], 0, 10), iterations = strtoul(argv[2], 0, 10);
  int rows = atoi(argv[3]), columns = atoi(argv[4]), rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size != rows * columns)
    MPI_Abort(MPI_COMM_WORLD, 3);
  int r = rank / columns, c = rank % columns;
  size_t top = 1 + r * (n - 2) / rows, bottom = 1 + (r + 1) * (n - 2) / rows;
  size_t left = 1 + c * (n - 2) / columns, right = 1 + (c + 1) * (n - 2) / columns;
  size_t h = bottom - top, w = right - left, stride = w + 2;
  int north = r ? rank - columns : MPI_PROC_NULL, south = r < rows - 1 ? rank + columns : MPI_PROC_NULL;
  int west = c ? rank - 1 : MPI_PROC_NULL, east = c < columns - 1 ? rank + 1 : MPI_PROC_NULL;
  double(*data)[stride] = (void *)allocate((h + 2) * stride), (*f)[stride][5] = (void *)allocate((h + 2) * stride * 5);
  double *column = allocate(h), *out_west = allocate(h), *out_east = allocate(h), *out_north = allocate(w);
  for (size_t i = 0; i < h + 2; i++)
    for (size_t j = 0; j < stride; j++)
      for (int k = 0; k < 5; k++)
        f[i][j][k] = (k < 4 ? 0.25 : 0.1) * at(top - 1 + i, left - 1 + j, k + 1);
  for (;;) {
    int more = rank ? 0 : next_run();
    MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (!more)
      break;
    for (size_t i = 0; i < h + 2; i++)
      for (size_t j = 0; j < stride; j++)
        data[i][j] = at(top - 1 + i, left - 1 + j, 0);
    MPI_Barrier(MPI_COMM_WORLD);
    double start = now_ns();
    MPI_Request backward[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    for (size_t k = 0; k < iterations; k++) {
      MPI_Recv(&data[0][1], w, MPI_DOUBLE, north, SOUTH, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Recv(column, h, MPI_DOUBLE, west, EAST, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      if (west != MPI_PROC_NULL)
        for (size_t i = 0; i < h; i++)
          data[i + 1][0] = column[i];
      if (k) {
        MPI_Recv(&data[h + 1][1], w, MPI_DOUBLE, south, NORTH, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Recv(column, h, MPI_DOUBLE, east, WEST, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (east != MPI_PROC_NULL)
          for (size_t i = 0; i < h; i++)
            data[i + 1][w + 1] = column[i];
      }
      for (size_t i = 1; i <= h; ++i)
        for (size_t j = 1; j <= w; ++j) {
          double q = data[i - 1][j] * f[i][j][0] + data[i][j - 1] * f[i][j][1] + data[i][j + 1] * f[i][j][2] +
                     data[i + 1][j] * f[i][j][3] + f[i][j][4] - data[i][j];
          data[i][j] += 0.175 * q;
        }
      MPI_Waitall(2, backward, MPI_STATUSES_IGNORE);
      for (size_t i = 0; i < h; i++) {
        out_east[i] = data[i + 1][w];
        out_west[i] = data[i + 1][1];
      }
      memcpy(out_north, &data[1][1], w * sizeof(double));
      MPI_Send(&data[h][1], w, MPI_DOUBLE, south, SOUTH, MPI_COMM_WORLD);
      MPI_Send(out_east, h, MPI_DOUBLE, east, EAST, MPI_COMM_WORLD);
      if (k + 1 < iterations) {
        MPI_Isend(out_north, w, MPI_DOUBLE, north, NORTH, MPI_COMM_WORLD, &backward[0]);
        MPI_Isend(out_west, h, MPI_DOUBLE, west, WEST, MPI_COMM_WORLD, &backward[1]);
      }
    }
    MPI_Waitall(2, backward, MPI_STATUSES_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    double took = now_ns() - start;
    /* Rank 0 gathers the matrix, row by row of each block, for its hash. */
    if (rank) {
      for (size_t i = 1; i <= h; i++)
        MPI_Send(&data[i][1], w, MPI_DOUBLE, 0, 9, MPI_COMM_WORLD);
      continue;
    }
    double *all = allocate(n * n);
    fill(all, n, 0, 1);
    for (int q = 0; q < size; q++) {
      size_t t = 1 + (q / columns) * (n - 2) / rows, b = 1 + (q / columns + 1) * (n - 2) / rows;
      size_t l = 1 + (q % columns) * (n - 2) / columns, e = 1 + (q % columns + 1) * (n - 2) / columns;
      for (size_t i = t; i < b; i++)
        if (q)
          MPI_Recv(&all[i * n + l], e - l, MPI_DOUBLE, q, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        else
          memcpy(&all[i * n + l], &data[i - t + 1][1], (e - l) * sizeof(double));
    }
    answer(took / ((double)(n - 2) * (double)(n - 2) * (double)iterations), hash(all, n * n));
    free(all);
  }
  MPI_Finalize();
}
