// Package shelltext tells what a shell command does from its text alone: which
// variables it expects, which programs of a pipe may stop early, and which
// interpreter its first line names.
//
// It reads the grammar of bash. For text that it cannot read it reports
// nothing: a text that is not bash has no variables and no pipes. It is passive.
package shelltext
