// Package store keeps the records of dispatch and flow on disk.
//
// Guarantees:
//
//   - [Store.Apply] is one transaction: when it has returned nil, all its records
//     survive any crash of the process and of the machine. After an error or a crash
//     all of them are there or none; [Store.Load] tells.
//   - Transactions become durable in the order of the calls.
//   - One process at a time writes a store; a second one gets [ErrLocked].
//   - A store that a newer Fairway made is refused ([ErrNewer]), and so is one of an older
//     Fairway whose records were others ([ErrOlder]).
//
// Apply blocks until the disk has the data. The methods of a Store may be called
// from any goroutine; calls wait for each other.
package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"fairway/internal/taskqueue"
)

// Store keeps the latest body of each record, named by table, run and key. The
// conformance suite in storetest says what every implementation must do.
type Store interface {
	// Apply makes the records durable in one transaction, in order: a later
	// record replaces an earlier one of the same name, and a nil Body
	// deletes. A transaction that has begun is carried out even if ctx ends.
	Apply(ctx context.Context, records []taskqueue.Record) error
	// Load returns the records of a table in the order of their runs, and of their
	// keys, compared byte by byte.
	Load(ctx context.Context, table string) ([]taskqueue.Record, error)
	// Each calls a function with each record that Load would return, in that order, and
	// returns its first error. It reads ahead, in parts: what is applied meanwhile may be
	// among them or not. The body of a record is good until the function returns.
	Each(ctx context.Context, table string, take func(taskqueue.Record) error) error
	// LoadPart is Load for one run and its keys from one on and below another, and for
	// the first of them up to a number.
	LoadPart(ctx context.Context, table string, run taskqueue.RunID, from, below string,
		most int) ([]taskqueue.Record, error)
	// Close releases the store. What was applied is durable already.
	Close() error
}

// What a caller may decide on. All are wrapped in an error that names the file.
var (
	// ErrLocked: another process has the store open for writing.
	ErrLocked = errors.New("the store is in use by another process")
	// ErrNewer: the store was made by a newer Fairway.
	ErrNewer = errors.New("the store was made by a newer version of Fairway; use that version, or remove the store with `fairway clean`")
	// ErrOlder: the store was made by an older Fairway, whose records were others.
	ErrOlder = errors.New("the store was made by an older version of Fairway; end the run with that version, or remove the store with `fairway clean`")
	// ErrForeign: the file is a database, but not one of Fairway's.
	ErrForeign = errors.New("the file is not a store of Fairway")
	// ErrCorrupt: the file is damaged.
	ErrCorrupt = errors.New("the store is damaged; `fairway clean` removes the state and leaves results/")
	// ErrUnready: nothing is in the store yet. It is just being made, or whoever
	// began to make it was killed. It wraps fs.ErrNotExist.
	ErrUnready = fmt.Errorf("the store is still empty: %w", fs.ErrNotExist)
	// ErrPath: SQLite cannot open files of such a path.
	ErrPath = errors.New("the path is too long for a store: choose a folder with a shorter one, for the state alone with --dir")
	// ErrFull: no room on the disk. The transaction may be tried again when there
	// is room.
	ErrFull = errors.New("no room left on the disk of the store")
	// ErrFileSize: a file of the store has as many bytes as the limit of this process allows.
	ErrFileSize = errors.New("the limit for the size of files (`ulimit -f`) is too low for the store: raise it")
	// ErrReadOnlyDisk: the disk takes no changes, as one that was mounted so, or that has failed.
	ErrReadOnlyDisk = errors.New("the disk of the store is mounted read-only")
	// ErrReadOnly: Apply on a store that was opened with ReadOnly.
	ErrReadOnly = errors.New("the store was opened for reading only")
)
