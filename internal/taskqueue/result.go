package taskqueue

import (
	"fmt"
	"slices"
	"time"
)

// Outcome is how an attempt ended.
type Outcome uint8

// Outcomes of an attempt, as the pilot saw it.
const (
	Succeeded      Outcome = iota
	Exited                 // a non-zero exit code
	Signalled              // by a signal that the pilot did not send
	OutOfMemory            // over its memory limit
	OutOfTime              // over its time limit
	OutOfDisk              // no room in sandbox or cache
	MissingOutput          // exit 0 without an output that it promised
	StageInFailed          // an input could not be had
	StageOutFailed         // an output could not be stored
	Ended                  // because the TaskQueue said so
	Lost                   // its pilot is gone
	InputChanged           // it wrote to an input in place, or an input is no longer the one that was added
	InputLost              // the copy of an input that a job made was lost, or somebody wrote to it; it is not known to be this one
)

var outcomeNames = [...]string{
	Succeeded: "succeeded", Exited: "exited", Signalled: "signalled", OutOfMemory: "out of memory",
	OutOfTime: "out of time", OutOfDisk: "out of disk", MissingOutput: "missing output",
	StageInFailed: "stage-in failed", StageOutFailed: "stage-out failed", Ended: "ended", Lost: "lost",
	InputChanged: "input changed", InputLost: "input lost",
}

// String returns the outcome in words.
func (o Outcome) String() string { return nameOf(outcomeNames[:], int(o)) }

// Result is the end of an attempt.
type Result struct {
	Job      JobID
	Attempt  AttemptID
	Outcome  Outcome
	ExitCode int
	Signal   int
	Message  string        // one line for a person
	Notes    []string      // one line each for a person; they decide nothing
	Outputs  []WrittenFile // of one that did not succeed: its checkpoint only
	Usage    Usage
	Lost     []LostFile // inputs that it found lost, or damaged meanwhile; others do not count
	GangPlace
}

// WrittenFile is an output of an attempt, stored but not yet visible.
type WrittenFile struct {
	LFN     string
	Version Version // as assigned; of a pattern's files: that of the pattern
	PFN     string  // unique to version and attempt; empty if in caches only
	Size    int64
	Adler32 uint32 // of the contents; 0: the pilot has not read them, and tells Written
	Hash    string // BLAKE3 of the contents, in hexadecimal; empty: the pilot does not serve its cache
	Records int64  // as the job reported, 0 if it did not
	// Written stands for the time of modification of the stored file (storage.Written). By it and the
	// size a file without sums is known again, to which nobody may write; 0: it has sums.
	Written uint32
}

// Usage is what an attempt took. Instants are the pilot's clock.
type Usage struct {
	StageInStart time.Time
	Start        time.Time
	End          time.Time
	StageOutEnd  time.Time
	StagedAhead  time.Duration // of its stage-in, before StageInStart
	CPU          time.Duration
	MaxRSS       int64 // bytes; 0 where it was less than the pilot itself had
	BytesStaged  int64 // read from storage
	BytesCached  int64 // read from caches
	BytesWritten int64
	CacheHits    int // neither counts what is streamed
	CacheMisses  int

	// Of the hits, those from caches of other hosts, and those that had been prefetched
	// and were read for the first time. None is both.
	RemoteHits, PrefetchHits     int
	BytesRemote, BytesPrefetched int64 // of BytesCached
}

// Took is how long the attempt kept its pilot; 0 if the pilot does not say.
func (u *Usage) Took() time.Duration {
	if u.StageInStart.IsZero() {
		return 0
	}
	last := u.StageOutEnd
	if last.IsZero() {
		last = u.End
	}
	return max(0, last.Sub(u.StageInStart))
}

// LostFile is a stored file that is lost. Of a result of an earlier run the PFN says it
// all. Without a PFN, which only a Result has, the pilot has found no copy in the caches
// that it shares.
type LostFile struct {
	File FileRef
	PFN  string
	Why  string // for a person: is not there, has 3 bytes and should have 7
}

// ByLFN returns what finds the outputs of a result by their names, the first of each.
func (r *Result) ByLFN() func(lfn string) *WrittenFile {
	if len(r.Outputs) <= few {
		return func(lfn string) *WrittenFile {
			for i := range r.Outputs {
				if r.Outputs[i].LFN == lfn {
					return &r.Outputs[i]
				}
			}
			return nil
		}
	}
	named := make(map[string]*WrittenFile, len(r.Outputs))
	for i := range slices.Backward(r.Outputs) {
		named[r.Outputs[i].LFN] = &r.Outputs[i]
	}
	return func(lfn string) *WrittenFile { return named[lfn] }
}

// Describe says in one line how an attempt ended, and where if that is said.
func (r *Result) Describe(where string) string {
	var how string
	switch r.Outcome {
	case Exited:
		how = fmt.Sprintf("exit code %d", r.ExitCode)
	case Signalled:
		how = fmt.Sprintf("signal %d", r.Signal)
	default:
		how = r.Outcome.String()
	}
	how += where
	if r.Message != "" {
		how += ": " + r.Message
	}
	if r.Leader != 0 {
		how = fmt.Sprintf("task %d: %s", r.Task, how)
	}
	return how
}
