// Package fifo is the ordered queue of read and write requests on one
// resource (Gustedt and Jeanvoine, Ordered Read-Write Locks, section 2), as a
// pure data structure.
//
// A write is a group of its own; a maximal run of adjacent reads is one group.
// The group at the head is granted, and nothing else is. So:
//
//   - the granted requests are a prefix of the queue: one write, or some reads;
//   - requests are granted in the order of their insertion, and a request
//     overtakes no other that it conflicts with;
//   - a read that is inserted at the tail of a granted run of reads joins it;
//   - removing a write joins the runs of reads on both its sides, and where
//     the run before it is granted, the one after it is granted too.
//
// Insert, Release and Cancel take constant time apart from the requests that
// they grant, and each request is granted once. None of them allocates: a
// Request is embedded in what waits (a handle, a job) and linked in place.
//
// The package has no lock, goroutine or clock. The caller keeps calls on one
// Queue and its requests from running at the same time.
package fifo
