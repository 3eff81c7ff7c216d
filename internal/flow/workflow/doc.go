// Package workflow reads workflow files, checks them, and describes workflows and the jobs that
// they make.
//
// Parse reads the file, with the types of parse_node.go. keys.go declares each key with what reads
// it: those of a step into a Step. parser.check (check.go) refuses what can be known to be wrong.
// routes.connect (route.go) tells each Maker of files which steps take them; package flow makes
// the jobs along these ways.
//
// The package is passive: no goroutine, no clock, no I/O, no random source. A [Workflow] is
// immutable once it was parsed: package flow reads the fields of its steps, and changes none.
package workflow
