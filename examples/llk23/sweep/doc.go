// Package sweep computes Livermore kernel 23 in place (Gustedt and Jeanvoine,
// section 4.1, Listing 8) on blocks, with package orwl alone for order and
// exchange. The result is bit for bit that of the sequential sweep, for every
// number of blocks, tasks and processes.
//
// # Blocks
//
// Each block has a main task, which computes it in strips, one after the other.
// Each strip has memory of its own, a location. Two frontier tasks carry its edges
// to its neighbours: one carries the edges that go forward, to the right and down,
// the other the edges that go backward. Each reads one strip and writes the other.
// Corners go over the neighbour at the side. Between processes a frontier has a
// location of its own, which the neighbour's process reads.
//
// Four blocks and more have one strip each. Two blocks alone would take turns, since
// each needs what the other has computed; with strips the second starts when the first has done
// a part, and both go on all the time ([orwl.Order.Period] predicts it).
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
// make them: strip after strip, for each of them the main task and then its frontiers.
package sweep
