package state

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io/fs"
	"iter"
	"math"
	"slices"
	"strconv"
	"syscall"
	"time"

	"fairway/internal/server/convert"
	"fairway/internal/taskqueue"
)

// The server's own tables.
const (
	RunTable   = "server_run"   // one record: Run
	InputTable = "server_input" // by input and LFN: Input
)

// RunKey is the key of the one record of a run in RunTable.
const RunKey = "run"

// Status says how a run stands.
type Status string

// How a run stands.
const (
	Underway  Status = "underway"  // or the server was killed
	Stopped   Status = "stopped"   // by a person or a failure of the server's own
	Failed    Status = "failed"    // something that it needs has failed
	Succeeded Status = "succeeded" // all that it was to make is there
)

// Form is that of runs whose results are what they say. Those of form 0 may
// have been made from other contents of an input, and those of form 1 with
// other values of placeholders.
const Form = 2

// Run is what is durable of a run as a whole.
type Run struct {
	ID         taskqueue.RunID   `json:"-"` // that of its record; 0: nothing was run
	Form       int               `json:"form,omitempty"`
	Workflow   string            `json:"workflow"` // its name
	File       string            `json:"file"`
	Source     string            `json:"source,omitempty"` // the file, from the folder of the state
	Digest     string            `json:"digest"`           // of the workflow with its parameters
	Steps      []string          `json:"steps"`
	Target     string            `json:"target,omitempty"` // that it was run up to; empty: to its end
	Parameters map[string]string `json:"parameters,omitempty"`
	State      Status            `json:"state"`
	Started    time.Time         `json:"started"`
	Ended      time.Time         `json:"ended,omitzero"`     // of a run of a lasting server
	Key        string            `json:"key,omitempty"`      // the same: of its submission
	Meaning    map[string]string `json:"meaning,omitempty"`  // the same, where it has a key: hashes of what was submitted
	Own        string            `json:"own,omitempty"`      // the same: the name of its folders in the state
	Account    taskqueue.Account `json:"account,omitzero"`   // the same: who has submitted it
	Closed     bool              `json:"closed,omitempty"`   // the same, of an open run: no more jobs are submitted
	NoReuse    bool              `json:"no_reuse,omitempty"` // it takes no results of earlier runs
	Archived   bool              `json:"archived,omitempty"` // the same: its records are in a store of their own
	Stored     int64             `json:"stored,omitempty"`   // the same, of an archived one: bytes of its outputs
	Seconds    float64           `json:"seconds"`            // that servers ran, up to the last end
	Waiting    float64           `json:"waiting"`            // seconds that jobs waited for pilots, summed
	Pilots     int64             `json:"pilots"`             // that registered
	// Temporary files that servers removed, up to the last end.
	Removed      int64      `json:"removed,omitempty"`
	BytesRemoved int64      `json:"bytes_removed,omitempty"`
	Problems     []string   `json:"problems,omitempty"`
	Notes        []string   `json:"notes,omitempty"`
	Refused      bool       `json:"refused,omitempty"` // it could not have made all jobs, however long it went on
	Deferred     []Deferred `json:"wishes,omitempty"`
	Results      string     `json:"results,omitempty"`     // the PFN beneath which they are published; empty: the results folder
	InputsGone   bool       `json:"inputs_gone,omitempty"` // files of open inputs, when it began
	// Totals are those of the steps at the end; nil where that was not recorded.
	Totals []taskqueue.StepTotals `json:"totals,omitempty"`
}

// OwnName is the name of the folders of a run in the state of a lasting server: that of earlier
// versions was the number.
func (r *Run) OwnName() string { return cmp.Or(r.Own, strconv.FormatUint(uint64(r.ID), 10)) }

// Record is the one record of the run in RunTable.
func (r *Run) Record() (taskqueue.Record, error) { return NewRecord(RunTable, r.ID, RunKey, r) }

// Deferred is a request of a person to a run that was not under way: to retry or
// cancel jobs, or to change their priority. It is durable, shown as if it were done, and the first thing that the
// next run does.
type Deferred struct {
	Retry  []taskqueue.JobID `json:"retry,omitempty"`
	Cancel []taskqueue.JobID `json:"cancel,omitempty"`

	Lost []taskqueue.LostFile `json:"lost,omitempty"` // noticed with a retry, which it comes before

	Priority *priority `json:"priority,omitempty"`
}

// priority is that of jobs, or of none what is added to that of all.
type priority struct {
	Of   []taskqueue.JobID `json:"of,omitempty"`
	Is   int               `json:"is"`
	From taskqueue.RunID   `json:"-"` // the run
}

// Defer makes a deferred request of an input.
func Defer(in taskqueue.Input) Deferred {
	switch in := in.(type) {
	case taskqueue.RetryJobs:
		return Deferred{Retry: in.Jobs}
	case taskqueue.Cancel:
		return Deferred{Cancel: in.Jobs}
	case taskqueue.LoseFiles:
		return Deferred{Lost: in.Files}
	case taskqueue.Prioritize:
		return Deferred{Priority: &priority{in.Jobs, in.Priority, in.Run}}
	}
	return Deferred{}
}

func (d Deferred) input() taskqueue.Input {
	switch {
	case d.Cancel != nil:
		return taskqueue.Cancel{Jobs: d.Cancel}
	case d.Lost != nil:
		return taskqueue.LoseFiles{Files: d.Lost}
	case d.Priority != nil:
		return taskqueue.Prioritize{Run: d.Priority.From, Jobs: d.Priority.Of, Priority: d.Priority.Is}
	}
	return taskqueue.RetryJobs{Jobs: d.Retry}
}

// DeferredInputs are those that the next run begins with.
func (r *Run) DeferredInputs() []taskqueue.Input { return convert.Each(r.Deferred, Deferred.input) }

// RetryDeferred reports whether a job is to be retried by a deferred request.
func (r *Run) RetryDeferred(job taskqueue.JobID) bool {
	return slices.ContainsFunc(r.Deferred, func(d Deferred) bool { return slices.Contains(d.Retry, job) })
}

// Input is a file that was fed to the workflow.
type Input struct {
	Input    string `json:"input"`
	LFN      string `json:"lfn"`
	PFN      string `json:"pfn"`
	Identity string `json:"identity"`
	// What a local file was when it was taken; nil for others.
	Stamp *Stamp `json:"stamp,omitempty"`
	// Part says that the files of its input came in pieces, and that this was not the last one.
	Part bool `json:"part,omitempty"`
}

// Stamp tells a file from what somebody has put in its place or written into it.
type Stamp struct {
	Size     int64  `json:"size"`
	Modified int64  `json:"modified"` // nanoseconds
	Changed  int64  `json:"changed"`  // of the inode, nanoseconds; of a folder: stands for those of its files
	Inode    uint64 `json:"inode"`
	Tree     uint64 `json:"tree,omitempty"` // of a folder: all that is in it
}

// StampOf makes the stamp of a file as it is.
func StampOf(info fs.FileInfo) Stamp {
	s := Stamp{Size: info.Size(), Modified: info.ModTime().UnixNano()}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		s.Inode, s.Changed = st.Ino, st.Ctim.Nano()
	}
	return s
}

// StampOfFolder makes the stamp of a folder of a state and size, as a text tells it, with some files.
func StampOfFolder(text string, size int64, files iter.Seq[fs.FileInfo]) Stamp {
	tree, changed := sha256.Sum256([]byte(text)), sha256.New()
	for info := range files {
		of := StampOf(info)
		_ = binary.Write(changed, binary.LittleEndian, [2]uint64{of.Inode, uint64(of.Changed)})
	}
	return Stamp{
		Size: size, Changed: int64(binary.LittleEndian.Uint64(changed.Sum(nil))), Tree: binary.LittleEndian.Uint64(tree[:]),
	}
}

// Like reports whether it may be the same contents: that the inode changed may come
// from another link to it.
func (s Stamp) Like(other Stamp) bool {
	s.Changed, other.Changed = 0, 0
	return s == other
}

// NewRecord makes a record whose body is JSON.
func NewRecord(table string, run taskqueue.RunID, key string, body any) (taskqueue.Record, error) {
	bytes, err := json.Marshal(body)
	if err != nil {
		return taskqueue.Record{}, fmt.Errorf("record %s %s: %w", table, key, err)
	}
	return taskqueue.Record{Table: table, Run: run, Key: key, Body: bytes}, nil
}

// LoadRun returns the last run, or nil if nothing was run in this folder yet.
func LoadRun(ctx context.Context, s Source) (*Run, error) {
	records, err := s.Load(ctx, RunTable)
	if err != nil || len(records) == 0 {
		return nil, err
	}
	return runOf(records[len(records)-1])
}

// LoadRuns returns all runs of a lasting server, in the order of their numbers.
func LoadRuns(ctx context.Context, s Source) ([]*Run, error) {
	records, err := s.Load(ctx, RunTable)
	if err != nil {
		return nil, err
	}
	runs := make([]*Run, len(records))
	for i, r := range records {
		if runs[i], err = runOf(r); err != nil {
			return nil, err
		}
	}
	return runs, nil
}

// LoadRunOf returns a run of a lasting server by its number; nil if there is none.
func LoadRunOf(ctx context.Context, s PartSource, id taskqueue.RunID) (*Run, error) {
	records, err := s.LoadPart(ctx, RunTable, id, RunKey, LastKey, 1)
	if err != nil || len(records) == 0 {
		return nil, err
	}
	return runOf(records[0])
}

func runOf(r taskqueue.Record) (*Run, error) {
	run := &Run{ID: r.Run}
	if err := json.Unmarshal(r.Body, run); err != nil {
		return nil, fmt.Errorf("record %s %d: %w", RunTable, r.Run, err)
	}
	for i := range run.Deferred {
		run.Deferred[i].bear(run.ID)
	}
	return run, nil
}

// bear gives what is named the run, where it has none: earlier versions knew one only.
func (d *Deferred) bear(run taskqueue.RunID) {
	for _, list := range [][]taskqueue.JobID{d.Retry, d.Cancel} {
		for i, id := range list {
			list[i] = taskqueue.NewJobID(run, id.Number())
		}
	}
	for i := range d.Lost {
		d.Lost[i].File.Run = run
	}
	if d.Priority != nil {
		d.Priority.From = run
	}
}

// LoadAll reads the records of a table, in the order of their keys, whose bodies NewRecord
// has made.
func LoadAll[T any](ctx context.Context, s Source, table string) ([]T, error) {
	records, err := s.Load(ctx, table)
	if err != nil {
		return nil, err
	}
	return decodeAll[T](records)
}

// LoadOf is LoadAll for the records of one run. Those of others are not read.
func LoadOf[T any](ctx context.Context, s PartSource, table string, run taskqueue.RunID) ([]T, error) {
	records, err := s.LoadPart(ctx, table, run, "", LastKey, math.MaxInt32)
	if err != nil {
		return nil, err
	}
	return decodeAll[T](records)
}

// LastKey is above the keys of all records, which are UTF-8.
const LastKey = "\xff"

func decodeAll[T any](records []taskqueue.Record) ([]T, error) {
	all := make([]T, len(records))
	for i, r := range records {
		if err := json.Unmarshal(r.Body, &all[i]); err != nil {
			return nil, fmt.Errorf("record %s %q: %w", r.Table, r.Key, err)
		}
	}
	return all, nil
}

// Source is what records are loaded from, as package store says.
type Source interface {
	Load(ctx context.Context, table string) ([]taskqueue.Record, error)
	Each(ctx context.Context, table string, take func(taskqueue.Record) error) error
}

// LoadTables returns the records of several tables.
func LoadTables(ctx context.Context, s Source, tables []string) ([]taskqueue.Record, error) {
	var all []taskqueue.Record
	for _, table := range tables {
		records, err := s.Load(ctx, table)
		if err != nil {
			return nil, err
		}
		all = append(all, records...)
	}
	return all, nil
}
