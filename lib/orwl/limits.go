package orwl

import (
	"time"

	"fairway/lib/orwl/internal/transport"
)

// What is unlimited elsewhere has a limit here, since a mistake in one process must not end
// another one. Those called Default hold unless somebody says otherwise.
const (
	// MaxName limits the name of a location, and that of a handle whose request goes to another
	// process, in bytes.
	MaxName = 255
	// DefaultMaxRequests is the limit of a location's queue unless MaxRequests
	// says otherwise. A request beyond it is refused with ErrFull.
	DefaultMaxRequests = 1 << 20
	// DefaultMaxRemote is the limit of the requests that one connection may have
	// queued in all locations of a Server.
	DefaultMaxRemote = 1 << 20
	// DefaultMaxMirrors is the limit of the mirrors that one connection may have open.
	DefaultMaxMirrors = 1 << 16
	// DefaultMaxConnections is the limit of the connections that a Server has at the same time.
	DefaultMaxConnections = 1024
	// DefaultMaxSize is the limit of the size in bytes of what comes from another
	// process.
	DefaultMaxSize = 4 << 30
	// DefaultLease is how long the other end of a connection may be silent before
	// it counts as lost.
	DefaultLease = 10 * time.Second
)

// Limits of a connection. An end that goes beyond them loses it.
const (
	// MinLease is the shortest lease, so that no peer can have this process send pings all the
	// time. A shorter one counts as this.
	MinLease = transport.MinLease
	// MaxHeader bounds a frame without the data that follows it, in bytes.
	MaxHeader = transport.MaxHeader
	// MaxExtents bounds the pieces of data in a frame; data in more pieces is sent whole.
	MaxExtents = transport.MaxExtents
	// MaxText bounds a message in a frame, in bytes; longer ones are cut.
	MaxText = transport.MaxText
	// MaxUnread bounds the answers that the other end has asked for and does not read, in bytes.
	// Beyond it nothing more that it asks is looked at, so that its connection ends with the
	// lease.
	MaxUnread = transport.MaxUnread
	// MaxDescriptors bounds the descriptors that came and were not taken yet.
	MaxDescriptors = transport.MaxDescriptors
)
