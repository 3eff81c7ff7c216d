// Package wfformat reads and writes runs in WfFormat 1.5 and 1.6, the format of WfCommons: [Parse]
// makes a workflow of a recorded run, which replays it, and [Export] records a run of Fairway. It
// is passive: it has no goroutine, no clock and no I/O of its own.
package wfformat
