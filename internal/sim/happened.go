package sim

// Fault is a kind of thing that goes wrong in a run. A new one has four places: its keys in
// FaultSpec, BatchSpec or StorageSpec of package experiment (and in examples/sim/all-keys.yaml); its name here;
// where it happens, a line that counts it in run.faced; and how often it does, in Experiment of
// package faults.
type Fault int

// What FaultSpec, BatchSpec and StorageSpec make go wrong.
const (
	MessageLost       Fault = iota // between a pilot and the server
	MessageRepeated                // between a pilot and the server
	PilotDied                      // without a farewell
	ServerDied                     // between two steps
	ServerDiedInStep               // when the records of a step were durable and nothing had been told
	WriteFailed                    // of the records of a step, none of which is durable
	PilotForgotten                 // by its batch system, before it started
	AnsweredLate                   // by the batch system, whose pilot had started or left before
	ReadFailed                     // of an input
	StoreFailed                    // of an output
	StorageFull                    // for an output
	StoredLost                     // an output that was stored is not there any more
	StoredCut                      // it is shorter
	StoredChanged                  // it holds other bytes
	CachedChanged                  // a cached file does
	LineCut                        // between a host and the server
	HostFrozen                     // with all its pilots and their jobs
	PilotFrozen                    // with its jobs
	ServerFrozen                   // and what comes waits for it
	SubmissionRefused              // by a batch system, and repeated
	StatusLost                     // of a pilot that had ended
	RunningForgotten               // by its batch system, while the pilot runs on
	StartedTwice                   // by its batch system
	faultKinds
)

var faultNames = [faultKinds]string{
	MessageLost:       "messages lost",
	MessageRepeated:   "messages repeated",
	PilotDied:         "pilots died",
	ServerDied:        "server died",
	ServerDiedInStep:  "server died within a step",
	WriteFailed:       "records not written",
	PilotForgotten:    "pilots forgotten by batch systems",
	AnsweredLate:      "batch systems answered late",
	ReadFailed:        "reads failed",
	StoreFailed:       "writes failed",
	StorageFull:       "storage was full",
	StoredLost:        "stored files lost",
	StoredCut:         "stored files cut",
	StoredChanged:     "stored files changed",
	CachedChanged:     "cached files changed",
	LineCut:           "lines cut",
	HostFrozen:        "hosts frozen",
	PilotFrozen:       "pilots frozen",
	ServerFrozen:      "server frozen",
	SubmissionRefused: "submissions refused",
	StatusLost:        "batch systems silent",
	RunningForgotten:  "running pilots forgotten",
	StartedTwice:      "pilots started twice",
}

// String is the name of the kind for a person.
func (f Fault) String() string { return faultNames[f] }

// Happened counts, by Fault, how often each kind happened.
type Happened [faultKinds]int

// ByName returns the counts by the names of the kinds.
func (h *Happened) ByName() map[string]int {
	named := make(map[string]int, len(h))
	for f, times := range h {
		named[Fault(f).String()] = times
	}
	return named
}
