/* Listing 8 as it stands: the yardstick. Arguments: n, iterations. */
#include "initial.h"

int main(int argc, char **argv) {
  if (argc != 3)
    return 2;
  size_t n = strtoul(argv[1], 0, 10), iterations = strtoul(argv[2], 0, 10);
  double(*data)[n] = (void *)allocate(n * n), (*zb)[n] = (void *)allocate(n * n), (*zv)[n] = (void *)allocate(n * n),
  (*zu)[n] = (void *)allocate(n * n), (*zr)[n] = (void *)allocate(n * n), (*zz)[n] = (void *)allocate(n * n);
  fill(*zb, n, 1, 0.25), fill(*zv, n, 2, 0.25), fill(*zu, n, 3, 0.25), fill(*zr, n, 4, 0.25), fill(*zz, n, 5, 0.1);
  while (next_run()) {
    fill(*data, n, 0, 1);
    double start = now_ns();
    for (size_t k = 0; k < iterations; k++)
      for (size_t i = 1; i < n - 1; ++i)
        for (size_t j = 1; j < n - 1; ++j) {
          double q = data[i - 1][j] * zb[i][j] + data[i][j - 1] * zv[i][j] + data[i][j + 1] * zu[i][j] +
                     data[i + 1][j] * zr[i][j] + zz[i][j] - data[i][j];
          data[i][j] += 0.175 * q;
        }
    double took = now_ns() - start;
    answer(took / ((double)(n - 2) * (double)(n - 2) * (double)iterations), hash(*data, n * n));
  }
}
