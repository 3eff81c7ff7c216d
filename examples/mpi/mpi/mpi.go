// Package mpi is the little of MPI that its requests need to be waited for through package sched:
// point-to-point messages of bytes in the world of all processes. It is built with CC=mpicc and
// was tried with Open MPI 4.1.
//
// Any goroutine may call it once Init has returned, since MPI is asked for MPI_THREAD_MULTIPLE. An
// error of MPI ends the program, as MPI has it by default.
package mpi

/*
#include <mpi.h>
#include <stdlib.h>

// The constants of MPI are macros, which cgo cannot all read.
static MPI_Comm world(void) { return MPI_COMM_WORLD; }
static int start(void) {
	int provided;
	MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided);
	return provided == MPI_THREAD_MULTIPLE;
}
static MPI_Request send(void *b, int n, int to, int tag) {
	MPI_Request r;
	MPI_Isend(b, n, MPI_BYTE, to, tag, MPI_COMM_WORLD, &r);
	return r;
}
static MPI_Request receive(void *b, int n, int from, int tag) {
	MPI_Request r;
	MPI_Irecv(b, n, MPI_BYTE, from, tag, MPI_COMM_WORLD, &r);
	return r;
}
static MPI_Request barrier(void) {
	MPI_Request r;
	MPI_Ibarrier(MPI_COMM_WORLD, &r);
	return r;
}
static int test(MPI_Request *r) {
	int done;
	MPI_Test(r, &done, MPI_STATUS_IGNORE);
	return done;
}
static void wait_for(MPI_Request *r) { MPI_Wait(r, MPI_STATUS_IGNORE); }
*/
import "C"

import (
	"errors"
	"unsafe"
)

// Init starts MPI. It is called once, before all else.
func Init() error {
	if C.start() == 0 {
		return errors.New("this MPI does not let several threads call it")
	}
	return nil
}

// Finalize ends MPI, when all requests are complete.
func Finalize() { C.MPI_Finalize() }

// Rank is the number of this process, from 0.
func Rank() int {
	var rank C.int
	C.MPI_Comm_rank(C.world(), &rank)
	return int(rank)
}

// Size is the number of processes.
func Size() int {
	var size C.int
	C.MPI_Comm_size(C.world(), &size)
	return int(size)
}

// Barrier begins to wait for all processes to call it.
func Barrier() *Request { return &Request{C.barrier()} }

// NewBuffer returns n bytes that MPI may keep while Go's garbage collector runs. They last as long
// as the process.
func NewBuffer(n int) []byte { return unsafe.Slice((*byte)(C.calloc(1, C.size_t(max(1, n)))), n) }

// Request is a send or a receive under way.
type Request struct{ r C.MPI_Request }

// Send begins to send b, which is of NewBuffer and must not change before the request is complete.
func Send(b []byte, to, tag int) *Request {
	return &Request{C.send(unsafe.Pointer(unsafe.SliceData(b)), C.int(len(b)), C.int(to), C.int(tag))}
}

// Receive begins to receive into b, which is of NewBuffer and must be large enough.
func Receive(b []byte, from, tag int) *Request {
	return &Request{C.receive(unsafe.Pointer(unsafe.SliceData(b)), C.int(len(b)), C.int(from), C.int(tag))}
}

// Test reports whether the request is complete.
func (r *Request) Test() bool { return C.test(&r.r) != 0 }

// Wait waits in MPI_Wait, which keeps its thread and takes a processor meanwhile.
func (r *Request) Wait() { C.wait_for(&r.r) }
