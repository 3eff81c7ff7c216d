package stage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"fairway/internal/beneath"
	"fairway/internal/cache"
	"fairway/internal/storage"
	"fairway/internal/storage/elements"
	"fairway/internal/wire"
	"fairway/lib/sched"
)

// Area is where the attempts of a pilot work: their sandboxes, and the ways on which
// files come there and leave.
type Area struct {
	// What the pilot has, set before the first attempt. cache is nil where there is none,
	// and reach where the server is on this machine.
	Sched   *sched.Scheduler
	Log     *slog.Logger
	Roots   storage.Roots
	Storage storage.Element
	URLs    *elements.URLs // for commands that read files themselves
	// Catalog leads to files from outside where the pilot stands; nil: they are where the run found them.
	Catalog *SiteCatalog
	Reach   *Reach
	Cache   *cache.Cache
	// Spared has the cache hold no file of which a sandbox can be given a link to where it is
	// stored. It is for pilots that read what they see in place.
	Spared bool
	// Unsummed has large outputs known by size and time of modification, where they are stored by
	// a link that only this machine reads: to sum them up takes as long as to copy them.
	Unsummed bool
	Sharing  *Sharing // nil unless files come from caches of other hosts, and go there
	// Hashed has the hash of each file found by which others know a copy of it: pilots of other
	// hosts, or of other users of this one.
	Hashed bool

	Folder   string          // the pilot's own, in which the sandboxes are
	Dir      *beneath.Folder // the same, taken before any attempt ran
	Prefix   string          // of the PFNs of outputs
	LogDir   string          // keeps what attempts print
	LogBytes int64           // how much of each stream

	// Waits tells what attempts wait for.
	Waits Waits

	remembered

	// Wake is called when the attempt begins to store ManyOutputs or more, so that
	// Storing is told from then on.
	Wake func()

	// A slot is in slots, or belongs to one attempt; made counts all that ever were, and
	// names them. stored of toStore outputs are stored, of the attempts that count in
	// Storing.
	mu              sync.Mutex // guards what follows
	slots           []*Slot
	made            int
	stored, toStore int64
}

// remembered is what was found out of files, for the attempts that are still to come.
type remembered struct {
	mount      mount
	folders    folders
	proven     proven
	identified proven // copies of what no job made
	prefetched prefetched
}

// Close removes the sandboxes. No attempt runs any more.
func (ar *Area) Close() {
	for _, s := range ar.slots {
		s.Close()
	}
}

// Execution is what staging knows of an attempt.
type Execution struct {
	*wire.Assignment
	Payload *wire.Payload   // that of the assignment, decoded
	Ctx     context.Context // ends when the attempt is to end
	Result  *wire.Result
	Slot    *Slot   // the sandbox, nil before there is one
	In      *Inputs // nil before its inputs are looked for
}

// Note adds a line for a person to the result.
func (a *Execution) Note(line string) { a.Result.Notes = append(a.Result.Notes, line) }

// PathOf returns where in the sandbox a job sees a file, relative to it.
func (a *Execution) PathOf(lfn string) (string, error) {
	path := strings.TrimLeft(lfn, "/")
	if !filepath.IsLocal(path) || path == "." {
		return "", fmt.Errorf("%q is not usable as a name in the sandbox", path)
	}
	return filepath.Clean(path), nil
}

// OutcomeOf says which outcome an error of staging means, otherwise if no other; and the
// file that is lost, if one is.
func OutcomeOf(err error, otherwise wire.Outcome) (wire.Outcome, *wire.LostFile) {
	var missing *missingOutput
	var changed *changedError
	var lost *lostError
	switch {
	case errors.As(err, &lost):
		return wire.Outcome_OUTCOME_INPUT_LOST, lost.file
	case errors.As(err, &changed):
		return wire.Outcome_OUTCOME_INPUT_CHANGED, nil
	case outOfDisk(err):
		return wire.Outcome_OUTCOME_OUT_OF_DISK, nil
	case errors.As(err, &missing):
		return wire.Outcome_OUTCOME_MISSING_OUTPUT, nil
	}
	return otherwise, nil
}

func outOfDisk(err error) bool {
	return errors.Is(err, storage.ErrNoSpace) || errors.Is(err, cache.ErrNoSpace) || errors.Is(err, syscall.ENOSPC) ||
		errors.Is(err, syscall.EDQUOT)
}

func isMissing(err error) bool { return errors.Is(err, fs.ErrNotExist) }
