package server

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"fairway/internal/dispatch"
)

// The server's own tables.
const (
	runTable   = "server_run"   // one record: runRecord
	inputTable = "server_input" // by input and number: inputRecord
)

const runKey = "run"

// runState says how a run stands.
type runState string

const (
	runUnderway  runState = "underway" // or the server was killed
	runStopped   runState = "stopped"  // by a person or a failure of the server's own
	runFailed    runState = "failed"
	runSucceeded runState = "succeeded"
)

// runForm is that of runs whose results are what they say. Those of form 0 may
// have been made from other contents of an input, and those of form 1 with
// other values of placeholders.
const runForm = 2

// runRecord is what is durable of a run as a whole.
type runRecord struct {
	Form       int               `json:"form,omitempty"`
	Workflow   string            `json:"workflow"` // its name
	File       string            `json:"file"`
	Source     string            `json:"source,omitempty"` // the file, from the folder of the state
	Digest     string            `json:"digest"`           // of the workflow with its parameters
	Steps      []string          `json:"steps"`
	Target     string            `json:"target,omitempty"` // that it was run up to; empty: to its end
	Parameters map[string]string `json:"parameters,omitempty"`
	State      runState          `json:"state"`
	Started    time.Time         `json:"started"`
	Seconds    float64           `json:"seconds"` // that servers ran, up to the last end
	Waiting    float64           `json:"waiting"` // seconds that jobs waited for pilots, summed
	Pilots     int64             `json:"pilots"`  // that registered
	Problems   []string          `json:"problems,omitempty"`
	Notes      []string          `json:"notes,omitempty"`
	Refused    bool              `json:"refused,omitempty"` // it could not have made all jobs, however long it went on
	Wishes     []wish            `json:"wishes,omitempty"`
	InputsGone bool              `json:"inputs_gone,omitempty"` // files of open inputs, when it began
	// Totals are those of the steps at the end; nil where that was not recorded.
	Totals []dispatch.StepTotals `json:"totals,omitempty"`
}

func (r *runRecord) record() (dispatch.Record, error) { return recordOf(runTable, runKey, r) }

// inputRecord is a file that was fed to the workflow.
type inputRecord struct {
	Input    string `json:"input"`
	LFN      string `json:"lfn"`
	PFN      string `json:"pfn"`
	Identity string `json:"identity"`
	// What a local file was when it was taken; nil for others.
	Stamp *stamp `json:"stamp,omitempty"`
}

func recordOf(table, key string, body any) (dispatch.Record, error) {
	bytes, err := json.Marshal(body)
	if err != nil {
		return dispatch.Record{}, fmt.Errorf("record %s %s: %w", table, key, err)
	}
	return dispatch.Record{Table: table, Key: key, Body: bytes}, nil
}

// loadRun returns nil if nothing was run in this folder yet.
func loadRun(ctx context.Context, s recordSource) (*runRecord, error) {
	records, err := s.Load(ctx, runTable)
	if err != nil || len(records) == 0 {
		return nil, err
	}
	run := new(runRecord)
	if err := json.Unmarshal(records[0].Body, run); err != nil {
		return nil, fmt.Errorf("record %s %s: %w", runTable, records[0].Key, err)
	}
	return run, nil
}

func loadInputs(ctx context.Context, s recordSource) ([]inputRecord, error) {
	records, err := s.Load(ctx, inputTable)
	if err != nil {
		return nil, err
	}
	inputs := make([]inputRecord, len(records))
	for i, r := range records {
		if err := json.Unmarshal(r.Body, &inputs[i]); err != nil {
			return nil, fmt.Errorf("record %s %s: %w", inputTable, r.Key, err)
		}
	}
	return inputs, nil
}

// recordSource is what records are loaded from.
type recordSource interface {
	Load(ctx context.Context, table string) ([]dispatch.Record, error)
}

// loadTables returns the records of several tables.
func loadTables(ctx context.Context, s recordSource, tables []string) ([]dispatch.Record, error) {
	var all []dispatch.Record
	for _, table := range tables {
		records, err := s.Load(ctx, table)
		if err != nil {
			return nil, err
		}
		all = append(all, records...)
	}
	return all, nil
}
