package access

import "time"

// Limits of calls over a network, on both sides.
const (
	// MaxMessage is the largest message of a pilot, in bytes. One that has more to say says it
	// in several. Several at a time are bounded by [Bodies].
	MaxMessage = 32 << 20
	// MaxRequest is the largest request of a person's command, in bytes: it may name a
	// million jobs.
	MaxRequest = 16 << 20
	// MaxAnswer is the largest answer to one, and to a pilot, in bytes: a job may have very
	// many files.
	MaxAnswer = 512 << 20
	// HeaderTime is how long a caller may take to say what it wants, from the
	// begin of its connection.
	HeaderTime = 10 * time.Second
	// BodyTime is how long a message may take on its way to the server, and an
	// answer on its way back. How long an answer is held comes on top of that.
	BodyTime = 2 * time.Minute
	// CallTime is how long a call of a person's command may take in all, and StorageTime one
	// that looks for stored files on their servers.
	CallTime    = time.Minute
	StorageTime = 5 * time.Minute
	// KeepAlive is how often a server says something in a stream that has no news. Who
	// follows it gives up after SilentTime without anything.
	KeepAlive  = 30 * time.Second
	SilentTime = 2 * time.Minute
	// ReaderTime is how long a server waits for who reads a stream to take a piece of it:
	// a person may look at a page of it.
	ReaderTime = time.Hour
	// IdleTime is how long a connection without calls stays open.
	IdleTime = 3 * time.Minute

	maxHeader = 64 << 10
)
