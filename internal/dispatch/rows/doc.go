// Package rows holds the TaskQueue's data on millions of jobs and files: tables
// whose rows have numbers of 32 bits, and sets, heaps, queues and an index of
// names over such numbers. So a queue of a million jobs is a few thousand objects
// for the garbage collector, an index of it has no pointers, and a read brings
// little into the processor's cache that nobody asked for.
//
// The package has no goroutine, no clock and no I/O. Nothing in it is safe for
// concurrent use.
package rows
