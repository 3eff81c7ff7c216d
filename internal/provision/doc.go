// Package provision makes the configuration of a server from what this machine has, the sites that a
// person names, and a workflow.
package provision
