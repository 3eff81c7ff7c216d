package access

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"hash"
)

// ticketSize, in bytes, is out of reach for guesses.
const ticketSize = 16

// Ticket proves that an attempt was given to who has it: it goes with the
// assignment, and comes back with what is reported of the attempt. It outlives
// the server, which keeps nothing of it.
func (a *Authority) Ticket(job, attempt uint64) []byte {
	var text [16]byte
	binary.BigEndian.PutUint64(text[:8], job)
	binary.BigEndian.PutUint64(text[8:], attempt)
	code, ok := a.codes.Get().(hash.Hash)
	if !ok {
		code = hmac.New(sha256.New, a.tickets[:])
	}
	defer a.codes.Put(code)
	code.Reset() // which spares the key's part from the second time on
	code.Write(text[:])
	return code.Sum(nil)[:ticketSize]
}

// Gave reports whether a ticket is that of an attempt.
func (a *Authority) Gave(job, attempt uint64, ticket []byte) bool {
	return hmac.Equal(ticket, a.Ticket(job, attempt))
}
