package access

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
)

// ticketSize, in bytes, is out of reach for guesses.
const ticketSize = 16

// Ticket proves that an attempt was given to who has it: it goes with the
// assignment, and comes back with what is reported of the attempt. It outlives
// the server, which keeps nothing of it.
func (a *Authority) Ticket(run, job uint32, attempt uint64) []byte {
	ticket := a.ticket(run, job, attempt)
	return ticket[:]
}

// Gave reports whether a ticket is that of an attempt.
func (a *Authority) Gave(run, job uint32, attempt uint64, ticket []byte) bool {
	own := a.ticket(run, job, attempt)
	return subtle.ConstantTimeCompare(ticket, own[:]) == 1
}

// ticket is the beginning of a hash that the key goes into first. HMAC hashes twice,
// so that nobody who knows the code of one text can tell that of a longer one.
// These texts all have one length, and half of the hash stays secret. Each job asks
// for several tickets.
func (a *Authority) ticket(run, job uint32, attempt uint64) [ticketSize]byte {
	var text [sha256.Size + 16]byte
	copy(text[:], a.tickets[:])
	binary.BigEndian.PutUint32(text[sha256.Size:], run)
	binary.BigEndian.PutUint32(text[sha256.Size+4:], job)
	binary.BigEndian.PutUint64(text[sha256.Size+8:], attempt)
	code := sha256.Sum256(text[:])
	return [ticketSize]byte(code[:])
}
