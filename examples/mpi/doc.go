// Package mpiexample tests the program in pingpong under mpirun. It needs no MPI to be built, so
// that the tests can say what is missing.
package mpiexample
