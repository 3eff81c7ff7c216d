// Package sim runs the TaskQueue of internal/dispatch under virtual time,
// surrounded by modelled pilots, batch systems, networks and storage elements
// (paper 3, section V). The policies that it measures are those of the
// product, and its caches give up files by the code of a node's (package eviction).
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
//   - A run ends with an error at the first breach of what must hold, whatever
//     goes wrong in it: no job is lost or committed twice, what is done is
//     stored, what a job is told to read is there, no cache grows beyond its
//     limit (promise.go).
//
// The rules are those of the product because the code is: server.step (server.go) calls
// Core.Step of package dispatch, and unfolding.step (unfold.go) calls Flow.Step of package
// flow, as Loop.stepDispatch and Loop.stepFlow of internal/server/loop do. The loop itself
// is modelled, not shared. pilot.go, attempt.go
// and space.go stand for the pilot and its cache, site.go and batch.go for batch
// systems, storage.go and link.go for storage and networks; engine.go is the clock.
//
// This is the model alone. Package experiment below it says what to run; above
// it, compare, faults and paper run what they are named after, and report writes
// the results.
package sim
