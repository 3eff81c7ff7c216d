package access

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"time"

	"fairway/internal/wire"
)

// ShareEpoch is how long tickets for files in the caches of pilots are made with one
// key. A pilot knows the keys of this epoch and of the next, and forgets the older one
// when it is told of another, so a ticket is good for two of them at most. Only the
// server's clock matters: an epoch is a number to everybody else.
const ShareEpoch = 5 * time.Minute

// ShareKey is the key of the tickets for the files of one pilot, in one epoch. Who has
// it can read what that pilot holds, and nothing else.
type ShareKey [sha256.Size]byte

// ShareTicket lets who has it read one file at one pilot.
func (k *ShareKey) ShareTicket(lfn string, version uint32, tag uint64) []byte {
	var number [8]byte
	h := hmac.New(sha256.New, k[:])
	for _, n := range []uint64{uint64(version), tag} {
		binary.BigEndian.PutUint64(number[:], n)
		h.Write(number[:])
	}
	h.Write([]byte(lfn))
	return h.Sum(nil)[:ticketSize]
}

// Allows reports whether a ticket is that of a file. It takes the same time whatever
// the ticket is.
func (k *ShareKey) Allows(lfn string, version uint32, tag uint64, ticket []byte) bool {
	return hmac.Equal(k.ShareTicket(lfn, version, tag), ticket)
}

func (a *Authority) shareKey(pilot string, epoch uint64) *ShareKey {
	var number [8]byte
	binary.BigEndian.PutUint64(number[:], epoch)
	h := hmac.New(sha256.New, a.shares[:])
	h.Write(number[:])
	h.Write([]byte(pilot))
	return (*ShareKey)(h.Sum(nil))
}

// GrantSources puts tickets into an answer, with which a pilot reads from the caches of
// others what it was told to read there, and the keys by which it knows the tickets of
// those that read from it.
func (a *Authority) GrantSources(pilot string, now time.Time, answer *wire.SyncAnswer) {
	epoch := uint64(now.Unix()) / uint64(ShareEpoch/time.Second)
	for _, e := range []uint64{epoch, epoch + 1} {
		answer.ShareKeys = append(answer.ShareKeys, &wire.ShareKey{Epoch: e, Key: a.shareKey(pilot, e)[:]})
	}
	grant := func(files []*wire.InputFile) {
		for _, f := range files {
			for s := f.GetSource(); s != nil; s = s.GetOrigin() {
				s.Epoch = epoch
				s.Ticket = a.shareKey(s.GetPilot(), epoch).ShareTicket(f.GetFile().GetLfn(), f.GetFile().GetVersion(),
					f.GetFile().GetTag())
			}
		}
	}
	grant(answer.GetPrefetch())
	for _, run := range answer.GetRun() {
		grant(run.GetInputs())
	}
}
