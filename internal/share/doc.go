// Package share moves cached files from pilot to pilot, so that the storage element
// need not be read again (docs/decisions/0071-caches.md).
//
// A [Server] is what a pilot opens where its site has a global cache. It listens at one
// address, over TLS 1.3, with a key and a certificate of its own, and it sends a file to
// whoever has a ticket of the TaskQueue for it. A [Client] is the other end. It knows
// the server by the pin that came with the ticket, and talks to nobody else.
//
// Guarantees:
//
//   - Nothing can be read without a ticket for that very file at this very pilot. A
//     ticket is good while the server has the key of its epoch ([Server.SetKeys]).
//   - What is arriving is passed on as it comes ([Arrivals]), so that a file goes through
//     a chain of pilots in little more time than to the first of them.
//   - What a client has got has the size that was asked for, and the hash that it was told or
//     that the origin of the file has found, which no other contents have. Otherwise nothing
//     of it is kept. So a client need not trust the pilot that serves, but trusts the pilot that
//     told the hash (docs/pilot.md).
//   - A server sends [MaxStreams] files at a time, and refuses more. Whoever has no ticket
//     cannot keep it from those that have one, by however many connections.
//   - Neither end keeps a file in memory. A server waits no longer than [StallTime] for a client to
//     take more, and a client no longer than that for each [StallBytes], or what is left.
package share

import (
	"net/http"
	"time"
)

// Limits.
const (
	// MaxStreams is how many files a pilot sends at a time. Who asks for more is refused,
	// and reads the storage element.
	MaxStreams = 16
	// BeginTime is how long a server waits for a file to begin to arrive that it was said
	// to be about to get.
	BeginTime = 2 * time.Second
	// StallTime is how long either end waits for the other one.
	StallTime = 10 * time.Second
	// StallBytes are the bytes that a client is to get in each StallTime: a pilot that sends less is slower
	// than a storage element would be, which is asked then.
	StallBytes = 640 << 10
	// DialTime is how long a client tries to reach a server.
	DialTime = 3 * time.Second

	// passTime is how long bytes that have come wait for more before they are passed on.
	passTime = 5 * time.Millisecond

	maxStrangers = 64       // connections over which no good ticket has come
	maxHeader    = 32 << 10 // of an answer
	piece        = 256 << 10
)

const filePath = "/fairway/cache"

// What stands in a request, and in an answer. Numbers are decimal, the tag and the hash
// hexadecimal, the permissions octal.
const (
	lfnKey     = "lfn"
	versionKey = "version"
	tagKey     = "tag"

	epochHeader  = "Fairway-Epoch"
	ticketHeader = "Fairway-Ticket" // base 64

	sizeHeader     = "Fairway-Size"
	hashHeader     = "Fairway-Blake3"
	modeHeader     = "Fairway-Mode"
	modifiedHeader = "Fairway-Modified" // nanoseconds since 1970
)

// trailers are what is known only when all of a file has been sent.
var trailers = []string{http.CanonicalHeaderKey(modeHeader), http.CanonicalHeaderKey(modifiedHeader)}
