// Package sweep computes Livermore kernel 23 in place (Gustedt and Jeanvoine,
// section 4.1, Listing 8) on blocks, with package orwl alone for order and
// exchange. The result is bit for bit that of the sequential sweep, for every
// number of blocks, tasks and processes.
//
// # Blocks
//
// Each block has memory of its own, the location of its main task, and for
// each neighbour an export task that copies the frontier, an edge or a corner,
// into a location of its own, which the neighbour's main task reads.
//
// # Several sweeps at once
//
// In one iteration a main task does several sweeps: in sweep t its rows and
// columns are shifted by t towards the first ones. Element (i, j) of sweep t
// needs (i-1, j) and (i, j-1) of the same sweep and (i, j), (i+1, j) and
// (i, j+1) of the sweep before; shifted, all of them lie in the same block or
// in those above, to the left and diagonally between. So an iteration depends on
// these three (forward), and on what the other three had in the iteration before
// (backward), and the frontiers are as wide as there are sweeps.
//
// # Order
//
// The requests stand in each location's queue as the sequential program would
// make them: block after block, in each block the main task and then the
// export tasks.
package sweep
