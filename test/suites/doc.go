// Package suites runs tests that others have written, against Fairway: those of CPython for executors,
// of joblib, of Dask and of Snakemake. Each suite comes from where its people publish it
// (requirements.txt, and Debian's libpython3.11-testsuite); none of its text is here. The files
// left_out_*.txt name the tests that are left out, and say why; left_out.py holds them to it. Those of
// Snakemake are run twice, and compared (snakemake_compared.py).
package suites
