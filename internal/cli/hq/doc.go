// Package hq is the command of HyperQueue as far as Nextflow calls it: it submits jobs to an open run
// of Fairway.
package hq

import "fairway/internal/cli/console"

type commands struct{ *console.Console }
