// Package records is what the TaskQueue makes durable: the tables, the bodies of their records, how
// these are written and read, and what is known from them alone, without a Core. It decides nothing
// of jobs that run.
package records

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"

	"fairway/internal/taskqueue"
)

// The tables of durable records. Bodies are JSON objects; "v" is the version
// of their form.
const (
	TableMeta      = "meta"      // incarnation, number of the last run
	TableRun       = "run"       // of a run: what it is, and where it stands
	TableFile      = "file"      // of a run: files that existed before: LFN#version
	TableJob       = "job"       // of a run: submitted jobs: number
	TableCommit    = "commit"    // of a run: which attempt of a job was committed: number
	TableFate      = "fate"      // of a run: failures, cancellations: number
	TableResult    = "result"    // outputs of an earlier run under the key of their job
	TablePublished = "published" // of a run: up to which version nothing is to be published any more: LFN
	TableRemove    = "remove"    // physical files to be removed: PFN
	TablePilot     = "pilot"     // registered pilots
	TableLaunch    = "launch"    // pilots that batch systems have accepted
	TableShares    = "shares"    // what SetShares said
	TableUsage     = "usage"     // what users have used: account
)

// tables are in the order in which they are loaded: what was committed and what went
// wrong comes before the jobs that it is of.
var tables = []string{
	TableMeta, TableShares, TableUsage, TableRun, TableResult, TableFile, TableCommit, TableFate, TableJob,
	TablePublished, TableRemove, TablePilot, TableLaunch,
}

// Tables lists all tables, in the order in which they are loaded.
func Tables() []string { return slices.Clone(tables) }

// The keys of tables that have one record, or one of each run.
const (
	MetaKey   = "incarnation"
	RunKey    = "run"
	SharesKey = "shares"
)

// JobKey is the key of a job's records in the tables of its run that have one for each
// job. Keys sort as the numbers do.
func JobKey(id taskqueue.JobID) string {
	b := [10]byte{}
	n := id.Number()
	for i := len(b) - 1; i >= 0; i-- {
		b[i] = byte('0' + n%10)
		n /= 10
	}
	return string(b[:])
}

// ParseJobKey is the way back.
func ParseJobKey(run taskqueue.RunID, key string) (taskqueue.JobID, error) {
	n, err := strconv.ParseUint(key, 10, 32)
	return taskqueue.NewJobID(run, uint32(n)), err
}

// FileKey is the key of a file in TableFile.
func FileKey(r taskqueue.FileRef) string {
	return r.LFN + "#" + strconv.FormatUint(uint64(r.Version), 10)
}

// Identity stands for the content of a version, and is the key of a result. Of a committed output it is
// derived from the job that made it, not from the bytes.
type Identity [16]byte

// ParseIdentity is the way back from Hex.
func ParseIdentity(s string) (id Identity, err error) {
	b, err := hex.DecodeString(s)
	if err != nil || len(b) != len(id) {
		return id, fmt.Errorf("%q is not a key of a result", s)
	}
	copy(id[:], b)
	return id, nil
}

// Hex is the identity as keys of records have it.
func (id Identity) Hex() string {
	var buffer [2 * len(id)]byte
	return string(hex.AppendEncode(buffer[:0], id[:]))
}

// Mark is the identity cut to what tells a person whether it changed.
func (id Identity) Mark() Mark { return Mark(id[:len(Mark{})]) }

// Mark tells contents apart, for a person.
type Mark [3]byte

// Hex is the mark as people see it.
func (m Mark) Hex() string { return hex.EncodeToString(m[:]) }
