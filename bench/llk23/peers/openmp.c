/* The same sweep with OpenMP tasks: one task for each block and iteration,
 * ordered by depend clauses. Arguments: n, iterations, rows, columns of blocks. */
#include "initial.h"

int main(int argc, char **argv) {
  if (argc != 5)
    return 2;
  size_t n = strtoul(argv[1], 0, 10), iterations = strtoul(argv[2], 0, 10);
  size_t rows = strtoul(argv[3], 0, 10), columns = strtoul(argv[4], 0, 10);
  double(*data)[n] = (void *)allocate(n * n), (*zb)[n] = (void *)allocate(n * n), (*zv)[n] = (void *)allocate(n * n),
  (*zu)[n] = (void *)allocate(n * n), (*zr)[n] = (void *)allocate(n * n), (*zz)[n] = (void *)allocate(n * n);
  fill(*zb, n, 1, 0.25), fill(*zv, n, 2, 0.25), fill(*zu, n, 3, 0.25), fill(*zr, n, 4, 0.25), fill(*zz, n, 5, 0.1);
  /* One byte for each block stands for its data; the frame is for neighbours outside. */
  char(*block)[columns + 2] = calloc(rows + 2, columns + 2);
  while (next_run()) {
    fill(*data, n, 0, 1);
    double start = now_ns();
#pragma omp parallel
#pragma omp single
    for (size_t k = 0; k < iterations; k++)
      for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < columns; c++) {
          size_t top = 1 + r * (n - 2) / rows, bottom = 1 + (r + 1) * (n - 2) / rows;
          size_t left = 1 + c * (n - 2) / columns, right = 1 + (c + 1) * (n - 2) / columns;
#pragma omp task depend(inout : block[r + 1][c + 1]) depend(in : block[r][c + 1], block[r + 1][c], block[r + 2][c + 1], block[r + 1][c + 2]) firstprivate(top, bottom, left, right)
          for (size_t i = top; i < bottom; ++i)
            for (size_t j = left; j < right; ++j) {
              double q = data[i - 1][j] * zb[i][j] + data[i][j - 1] * zv[i][j] + data[i][j + 1] * zu[i][j] +
                         data[i + 1][j] * zr[i][j] + zz[i][j] - data[i][j];
              data[i][j] += 0.175 * q;
            }
        }
    double took = now_ns() - start;
    answer(took / ((double)(n - 2) * (double)(n - 2) * (double)iterations), hash(*data, n * n));
  }
}
