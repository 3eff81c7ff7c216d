// Package orwl has ordered read-write locks (Gustedt and Jeanvoine, Relaxed
// Synchronization with Ordered Read-Write Locks): a Location is memory with
// one queue of requests, and a task sees the memory only while its request is
// granted.
//
// # Order
//
// The queue of a Location is strictly first in, first out. A write has the
// Location alone. Reads that stand side by side share it, also when the ones
// before are granted already. There are no priorities, and nobody overtakes
// somebody it conflicts with. So conflicting tasks that use a Pair never
// differ by more than one iteration, and what a program computes does not
// depend on timing.
//
// # Request, acquire, release
//
// A request takes the place in the queue and does not wait. Acquire waits
// until the request is granted. Release gives the Location to those next in the
// queue. A Pair posts its next request before it releases the current one; the
// vector forms Handles and Pairs post all next requests before any release.
//
// A Handle is used by one task at a time. Another goroutine ends a wait by
// ending the context of Acquire; the request then leaves the queue at once,
// wherever it stands.
//
// # Liveness
//
// Tasks that insert all their requests with Insert cannot deadlock: all
// locations then agree with one order of the tasks. A Gate holds back every
// grant until all tasks have inserted, sorts them by rank and refuses an order
// that can deadlock. Order.Check does the same for a hand-made order and names
// the cycle; Order.Period predicts the steady rate.
//
// # What blocks
//
// Only Acquire, Insert and the functions that dial or serve wait. A
// goroutine waits on a channel; a task of package sched gives back its slot.
//
// # The way through the package
//
//   - A request of this process: Handle (handle.go) asks its Resource. Location
//     (location.go) is one, and queue.go says when it grants: Location.insert takes
//     the place, Location.release and cycle grant the next ones, wakeList.up wakes
//     their tasks. Which requests share the head, lib/fifo decides.
//   - A request of another process: Mirror (mirror.go) is the Resource there, Peer
//     (peer.go) its connection, session (session.go) what it has here. The comment of
//     session lists the way of a release.
//   - Several requests at once: insertion.go within a process, reservation.go between
//     processes, gate.go and check.go for an order of all tasks.
package orwl
