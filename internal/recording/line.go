package recording

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"
	"unicode/utf8"

	"fairway/internal/flow"
	"fairway/internal/flow/workflow"
	"fairway/internal/taskqueue"
)

// format changes when older recordings can no longer be read.
const format = 2

// Beginning is what the cores of a server are made from.
type Beginning struct {
	Workflow *workflow.Workflow
	Dispatch taskqueue.Config
}

// line is one line of a recording; doc.go says which fields go together.
type line struct {
	Begin    *beginLine      `json:"begin,omitempty"`
	Durable  *record         `json:"durable,omitempty"`
	Load     bool            `json:"load,omitempty"`
	At       time.Time       `json:"at,omitzero"`
	Dispatch string          `json:"dispatch,omitempty"`
	Flow     string          `json:"flow,omitempty"`
	Input    json.RawMessage `json:"input,omitempty"`
	Effects  json.RawMessage `json:"effects,omitempty"`
	Refused  string          `json:"refused,omitempty"`
	Cut      string          `json:"cut,omitempty"`
}

type beginLine struct {
	Format     int               `json:"format"`
	File       string            `json:"file"`
	Text       content           `json:"text"`            // of the workflow file or the trace
	Trace      *workflow.Scales  `json:"trace,omitempty"` // of a trace
	Parameters map[string]string `json:"parameters,omitempty"`
	Config     taskqueue.Config  `json:"config"`
}

// record is a taskqueue.Record; without a body it deletes.
type record struct {
	Table string  `json:"table"`
	Run   uint32  `json:"run,omitempty"`
	Key   string  `json:"key"`
	Body  content `json:"body,omitzero"`
}

// content is bytes that are mostly text.
type content []byte

type encodedContent struct {
	Base64 []byte `json:"base64"`
}

func (c content) MarshalJSON() ([]byte, error) {
	if utf8.Valid(c) {
		return json.Marshal(string(c))
	}
	return json.Marshal(encodedContent{c})
}

func (c *content) UnmarshalJSON(data []byte) error {
	if bytes.HasPrefix(data, []byte("{")) {
		var e encodedContent
		err := json.Unmarshal(data, &e)
		*c = e.Base64
		return err
	}
	var text string
	err := json.Unmarshal(data, &text)
	*c = content(text)
	return err
}

func records(from []taskqueue.Record) []record {
	to := make([]record, len(from))
	for i, r := range from {
		to[i] = record{r.Table, uint32(r.Run), r.Key, r.Body}
	}
	return to
}

// dispatchEffects and flowEffects are the effects without what is empty.
type dispatchEffects struct {
	Persist []record               `json:",omitempty"`
	Replies []taskqueue.Reply      `json:",omitempty"`
	Start   []taskqueue.Start      `json:",omitempty"`
	Stop    []string               `json:",omitempty"`
	Publish []taskqueue.StoredFile `json:",omitempty"`
	Remove  []string               `json:",omitempty"`
	Events  []taskqueue.Event      `json:",omitempty"`
	WakeAt  time.Time              `json:",omitzero"`
}

type flowEffects struct {
	AddFiles []taskqueue.ExistingFile `json:",omitempty"`
	Submit   []workflow.NewJob        `json:",omitempty"`
	Known    []string                 `json:",omitempty"` // ReadersKnown
	Persist  []record                 `json:",omitempty"`
	Final    []string                 `json:",omitempty"`
	WakeAt   time.Time                `json:",omitzero"`
	Finished bool                     `json:",omitempty"`
	Notes    []string                 `json:",omitempty"`
}

func encodeDispatch(e *taskqueue.Effects) (json.RawMessage, error) {
	return json.Marshal(dispatchEffects{
		records(e.Persist), e.Replies, e.Start, e.Stop, e.Publish, e.Remove, e.Events, e.WakeAt,
	})
}

func encodeFlow(e *flow.Effects) (json.RawMessage, error) {
	return json.Marshal(flowEffects{
		e.AddFiles, e.Submit, e.ReadersKnown, records(e.Persist), e.Final, e.WakeAt, e.Finished, e.Notes,
	})
}

// decode refuses what this program does not know.
func decode(data []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("%w (is it a recording of this version?)", err)
	}
	return nil
}
