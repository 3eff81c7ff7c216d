// Package distribution carries locks to other processes, and their data: a Session has the requests of
// another process stand in the queues of this one, and a Replica is the data of a location of another
// process. What a lock is it does not know: that is what Owner, Location and Request are for.
package distribution
