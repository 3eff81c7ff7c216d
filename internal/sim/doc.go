// Package sim runs the TaskQueue of internal/dispatch under virtual time,
// surrounded by modelled pilots, batch systems, networks and storage elements
// (paper 3, section V). The policies that it measures are those of the
// product: it holds no copy of one.
//
// Guarantees:
//
//   - A run depends on its experiment and its seed alone. Every modelled
//     thing draws from a random stream of its own, named by what it is, so a
//     change in one does not move the draws of another, and two variants of an
//     experiment meet the same run times and failures where they make the same
//     choices.
//   - A run uses one goroutine. [Sweep] runs many side by side; its results
//     come in the order of the experiment, whatever the number of processors.
//   - Nothing reads a real clock or sleeps.
//
// What an experiment assumes stands in its file, each assumption with its
// reason; [Parse] refuses a reason for something that is not there.
package sim
