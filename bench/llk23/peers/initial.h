/* The initial values of package sweep, and what all peers share: they read
 * "run" lines from standard input, and answer each with nanoseconds per element
 * and a hash of the matrix. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double at(uint64_t i, uint64_t j, uint64_t salt) {
  uint64_t x = i * 0x9e3779b97f4a7c15ull + j * 0xc2b2ae3d27d4eb4full + salt * 0x165667b19e3779f9ull;
  x ^= x >> 29;
  x *= 0xbf58476d1ce4e5b9ull;
  x ^= x >> 32;
  return (double)(x >> 11) / 9007199254740992.0;
}

static double now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

/* FNV-1a over the words of the matrix. */
static uint64_t hash(const double *d, size_t n) {
  uint64_t h = 0xcbf29ce484222325ull;
  for (size_t k = 0; k < n; k++) {
    uint64_t w;
    memcpy(&w, &d[k], 8);
    h = (h ^ w) * 0x100000001b3ull;
  }
  return h;
}

static int next_run(void) {
  char line[64];
  return fgets(line, sizeof line, stdin) != NULL;
}

static void answer(double ns, uint64_t h) {
  printf("%.4f %016llx\n", ns, (unsigned long long)h);
  fflush(stdout);
}

typedef double *matrix;

static matrix allocate(size_t n) {
  void *p = aligned_alloc(64, (n * sizeof(double) + 63) / 64 * 64);
  if (!p) {
    perror("memory");
    exit(1);
  }
  return p;
}

static void fill(matrix m, size_t n, uint64_t salt, double scale) {
  for (size_t i = 0; i < n; i++)
    for (size_t j = 0; j < n; j++)
      m[i * n + j] = scale * at(i, j, salt);
}
