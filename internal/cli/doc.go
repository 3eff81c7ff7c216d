// Package cli is the command line. Commands that belong together share a file, and all have code
// in common: where a workflow's folder is, how to reach the server that
// runs it (or its records, when no server runs), how to print.
//
// With --json a command prints exactly one object on standard output, also
// when it fails; the keys are the field names of internal/wire/api.proto and
// stay as they are. Without it, results go to standard output, and progress
// and errors to standard error. Exit codes are those of console/exit.go; an error says
// what is wrong, where, and what to do.
package cli
