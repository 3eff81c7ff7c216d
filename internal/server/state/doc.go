// Package state is what is known of runs: of each its cores (dispatch is one for all), what
// is counted beside them (Tally), and the records that the server keeps of its own: of the
// run (Run), its inputs (Input), its attempts and hosts, and how results were made
// (Provenance).
//
// The store is the truth: Load makes the same cores from the same records. Nothing
// is decided by the records of attempts, hosts and provenance; they are for people.
package state
