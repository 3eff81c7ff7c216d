// Package rows holds what the TaskQueue keeps of millions of jobs and files:
// tables whose rows have numbers of 32 bits, and sets, heaps, queues and an
// index of names over such numbers. So a queue of a million jobs is a few
// thousand objects for the garbage collector, an index of it has no pointers,
// and every line of the processor's cache that is read holds what is asked for.
//
// The package has no goroutine, no clock and no I/O. Nothing in it is safe for
// concurrent use.
package rows
