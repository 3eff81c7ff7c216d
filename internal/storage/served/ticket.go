package served

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"

	"fairway/internal/logical"
)

// Right is what somebody may do with a file.
type Right string

// The rights.
const (
	Read  Right = "read"
	Write Right = "write"
)

// Authority decides who may do what. Any goroutine may ask it.
type Authority interface {
	// Allows reports whether this ticket gives a launch a right to all PFNs that match
	// a pattern of package logical.
	Allows(launch string, right Right, pattern string, ticket []byte) bool
}

// Key makes tickets and knows them again. Who has the key may read all that the
// server may read.
//
// A ticket is a keyed hash (HMAC-SHA-256, cut to 16 bytes) of launch, right and
// pattern, so that the server need not remember which ones it gave. It lasts as
// long as its launch is let in at all: to whom a file was assigned may read that
// file again, and the name of an output holds the number of its attempt.
type Key [sha256.Size]byte

// ticketSize is enough that nobody guesses one.
const ticketSize = 16

// Ticket is a ticket for one PFN, whatever characters it has.
func (k *Key) Ticket(launch string, right Right, pfn string) []byte {
	return k.PatternTicket(launch, right, logical.Escape(pfn))
}

// PatternTicket is a ticket for all PFNs that match a pattern of package logical.
func (k *Key) PatternTicket(launch string, right Right, pattern string) []byte {
	h := hmac.New(sha256.New, k[:])
	for _, part := range []string{launch, string(right), pattern} {
		var length [8]byte
		binary.LittleEndian.PutUint64(length[:], uint64(len(part)))
		h.Write(length[:])
		h.Write([]byte(part))
	}
	return h.Sum(nil)[:ticketSize]
}

// Allows is part of Authority. It takes the same time whatever the ticket is.
func (k *Key) Allows(launch string, right Right, pattern string, ticket []byte) bool {
	return hmac.Equal(k.PatternTicket(launch, right, pattern), ticket)
}
