//go:build linux

package access

import (
	"crypto/hmac"
	"crypto/sha256"
	"strings"

	"fairway/internal/storage"
	"fairway/internal/storage/served"
	"fairway/internal/wire"
)

// FileKey is that of the tickets for files. It is the same for all servers of the
// state.
func (a *Authority) FileKey() *served.Key {
	derive := hmac.New(sha256.New, a.key.Seed())
	derive.Write([]byte("fairway: tickets of files"))
	return (*served.Key)(derive.Sum(nil))
}

// GrantFiles puts tickets into an answer, with which the launch reads what it was
// assigned or told to prefetch, and writes the outputs of its attempts and what
// they print. Outputs have PFNs that begin with prefix.
func GrantFiles(key *served.Key, launch, prefix string, answer *wire.SyncAnswer) {
	read := func(files []*wire.InputFile) {
		for _, f := range files {
			switch pfn := f.GetPfn(); {
			case pfn == "":
			case strings.HasSuffix(f.GetFile().GetLfn(), "/") && f.GetAdler32() == 0 && f.GetWritten() == 0 &&
				storage.IsLocal(pfn):
				f.Ticket = key.Ticket(launch, served.Read, served.Packed(pfn)) // a folder from outside
			default:
				f.Ticket = key.Ticket(launch, served.Read, pfn)
			}
		}
	}
	read(answer.GetPrefetch())
	for _, a := range answer.GetRun() {
		read(a.GetInputs())
		for _, o := range a.GetOutputs() {
			o.Ticket = key.PatternTicket(launch, served.Write,
				served.OutputPattern(prefix, o.GetLfn(), o.GetPattern(), o.GetVersion(), a.GetAttempt()))
		}
		if c := a.GetCheckpoint(); c != nil {
			c.Ticket = key.PatternTicket(launch, served.Write,
				served.CheckpointPattern(prefix, c.GetLfn(), a.GetAttempt()))
		}
		a.LogTicket = key.PatternTicket(launch, served.Write, served.LogPattern(a.GetAttempt()))
	}
}
