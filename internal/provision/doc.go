// Package provision makes the configuration of a server from what this machine has, the sites that a
// person names, and a workflow.
package provision

// Words of the command line of this program, for pilots.
const (
	PilotCommand   = "pilot"
	UntilStdinEnds = "until-stdin-ends" // a flag
)
