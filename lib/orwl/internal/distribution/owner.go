package distribution

import (
	"context"

	"fairway/lib/fifo"
	"fairway/lib/orwl/internal/memory"
)

// Limits are what another process may have here by one connection.
type Limits struct {
	Requests, Mirrors int
	Size              int64 // in bytes, of a location to which it gives one
}

// Owner is a process that lets others request its locations. Any goroutine may call it.
type Owner interface {
	// Find returns a location by its name, or ErrUnknown.
	Find(name string) (Location, error)
	// Reserve inserts the requests and keeps those behind them back, until settle, which takes them out
	// again unless keep is set.
	Reserve(ctx context.Context, all []Wanted) (settle func(keep bool), err error)
}

// Wanted is a request of a reservation.
type Wanted struct {
	Request Request
	Mode    fifo.Mode
	Rank    int
}

// Location is what others see of a location. Equal ones are the same.
type Location interface {
	Name() string
	Number() uint64 // among those of the process
	Size() int      // in bytes
	// Mapped reports whether others on this host map the memory, and whether they write in place.
	Mapped() (shared, inPlace bool)
	// Refuse says in an error which location it is of.
	Refuse(err error) error
	// Request makes one for a task elsewhere, whose fate decided tells: it is granted or has failed.
	Request(task string, decided func()) Request
	// Lacked returns the data as it is under a grant that was just given, its version and its file, and
	// what a mirror lacks of it that has had a version, or none, or maps the memory.
	Lacked(had bool, hadVersion uint64, mapped bool) (
		data []byte, version uint64, file *memory.File, lacks []memory.Extent)
}

// Request is a place in the queue of a location for a task of another process. A session calls its
// methods in the order in which that process asks.
type Request interface {
	Insert(m fifo.Mode, rank int) error
	// Cycle posts next and then releases, which it does also when next is refused.
	Cycle(next Request) error
	Release() error
	// Withdraw takes it out of the queue unless it is granted already, and reports whether it did.
	Withdraw() bool

	Holds() bool
	Writes() bool
	Generation() uint64
	By() string // whose release led to the grant
	// Failure says why the request was lost, if it was.
	Failure() error

	// Overwrite makes the version that the release completes, under the lock: of a size, with pieces of
	// new data one after the other. It returns the number of that version.
	Overwrite(size int, pieces []memory.Extent, data []byte, inPlace bool) (version uint64, err error)
	// Lose releases a write whose process was lost.
	Lose(inPlace bool)
	// MissAtStart fails a location that waits for its first requests when this is one of them, and lost.
	// It must come before Withdraw.
	MissAtStart()
}
