package wfformat

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// maxTraceSize bounds a trace; a larger one is refused.
const maxTraceSize = 512 << 20

// traceRecord is what WfFormat 1.5 and 1.6 have in common, as far as it
// matters here. (WfCommons: WfFormat.)
type traceRecord struct {
	Name          string `json:"name"`
	Description   string `json:"description"`
	SchemaVersion string `json:"schemaVersion"`
	Workflow      struct {
		Specification struct {
			Tasks []*taskRecord `json:"tasks"`
			Files []fileRecord  `json:"files"`
		} `json:"specification"`
		Execution *executionPart `json:"execution"`
	} `json:"workflow"`
}

type systemInfo struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

type taskRecord struct {
	Name     string   `json:"name"`
	ID       string   `json:"id"`
	Parents  []string `json:"parents"`
	Children []string `json:"children"`
	Inputs   []string `json:"inputFiles"`
	Outputs  []string `json:"outputFiles"`
}

type fileRecord struct {
	ID   string  `json:"id"`
	Size float64 `json:"sizeInBytes"`
}

type executionPart struct {
	Tasks []*executionRecord `json:"tasks"`
}

type executionRecord struct {
	ID      string        `json:"id"`
	Runtime float64       `json:"runtimeInSeconds"`
	Command commandRecord `json:"command"`
}

type commandRecord struct {
	Program string `json:"program"`
}

func decodeTrace(data []byte) (*traceRecord, error) {
	if len(data) > maxTraceSize {
		return nil, fmt.Errorf("the trace has %d bytes, the limit is %d", len(data), maxTraceSize)
	}
	var r traceRecord
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, traceSyntax(data, err)
	}
	if v := r.SchemaVersion; v != "1.5" && v != "1.6" {
		return nil,
			fmt.Errorf("the trace is WfFormat %q; 1.5 and 1.6 are understood (the tools of WfCommons convert older ones)", v)
	}
	if len(r.Workflow.Specification.Tasks) == 0 {
		return nil, errors.New("the trace has no tasks under workflow, specification")
	}
	return &r, nil
}

// traceSyntax adds the line to an error of the JSON decoder.
func traceSyntax(data []byte, err error) error {
	at := int64(-1)
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		at = syntax.Offset
	} else if kind, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		at = kind.Offset
	}
	if at < 0 || at > int64(len(data)) {
		return fmt.Errorf("read the trace: %w", err)
	}
	return fmt.Errorf("line %d: this is no WfFormat: %w", 1+bytes.Count(data[:at], []byte("\n")), err)
}
