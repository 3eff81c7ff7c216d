// Package launch has the batch systems of a run's sites start and end pilots, and
// tells dispatch what became of them. It also takes over launches that an earlier
// server started.
//
// A launch is durable before it is submitted (package loop names it), and the roster
// of its site (package batch) does the rest. While a launch is wanted and has not
// ended, None is false.
package launch
