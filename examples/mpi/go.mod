module fairway/examples/mpi

go 1.26.8

require fairway/lib v0.0.0

require golang.org/x/sys v0.49.0 // indirect

replace fairway/lib => ../../lib
