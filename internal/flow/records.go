package flow

import (
	"encoding/json"
	"fmt"
	"time"

	"fairway/internal/taskqueue"
)

// Tables of durable records. flow_run has one record, which names the
// workflow; flow_log has what happened, in order: only what decides which
// jobs there are. A Flow is loaded by letting it happen again.
const (
	TableRun = "flow_run"
	TableLog = "flow_log"
)

// logFormat changes when an older log would lead to other jobs.
const logFormat = 3

// maxFilesPerRecord bounds one record of arrivals.
const maxFilesPerRecord = 256

type runRecord struct {
	Format   int    `json:"format"`
	Workflow string `json:"workflow"`
	Digest   string `json:"digest"`
}

type logKind string

const (
	logArrived   logKind = "arrived"
	logClosed    logKind = "closed"
	logCommitted logKind = "committed"
	logAged      logKind = "aged"
	logLetOut    logKind = "let_out"
)

// logEntry is one thing that happened. Name is the input, job or step.
type logEntry struct {
	Kind      logKind         `json:"kind"`
	Name      string          `json:"name"`
	At        time.Time       `json:"at,omitzero"`
	Files     []InputFile     `json:"files,omitempty"`
	Committed []committedFile `json:"committed,omitempty"`
	Group     string          `json:"group,omitempty"`
	LFNs      []string        `json:"lfns,omitempty"`
	Jobs      uint64          `json:"jobs,omitempty"` // that were let out, since the run began
	More      bool            `json:"more,omitempty"` // are left of what came before this entry
}

// committedFile is what matters of a taskqueue.CommittedFile.
type committedFile struct {
	LFN     string `json:"lfn"`
	Pattern string `json:"pattern,omitempty"`
	Size    int64  `json:"size,omitempty"`
	Records int64  `json:"records,omitempty"`
}

func committedFiles(files []taskqueue.CommittedFile) []committedFile {
	var all []committedFile
	for _, c := range files {
		all = append(all, committedFile{c.File.LFN, c.Pattern, c.Size, c.Records})
	}
	return all
}

func (e logEntry) event() taskqueue.Event {
	event := taskqueue.Event{Kind: taskqueue.JobCommitted, Name: e.Name, At: e.At}
	for _, c := range e.Committed {
		event.Files = append(event.Files, taskqueue.CommittedFile{
			File: taskqueue.FileRef{LFN: c.LFN}, Pattern: c.Pattern, Size: c.Size, Records: c.Records,
		})
	}
	return event
}

func (f *Flow) persist(e logEntry) {
	f.record(TableLog, fmt.Sprintf("%016x", f.entries), e)
	f.entries++
}

func (f *Flow) record(table, key string, body any) {
	if f.replaying {
		return
	}
	data, err := json.Marshal(body)
	if err != nil {
		panic(fmt.Sprintf("flow: encode %T: %v", body, err)) // the types above always encode
	}
	f.effects.Persist = append(f.effects.Persist, taskqueue.Record{Table: table, Key: key, Body: data})
}
