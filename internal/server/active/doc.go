// Package active says which of the servers of a state is the active one. Where servers are batch jobs a
// file says so (package term), where they stand by for each other the database of their records
// (store.Member).
package active
