package recording

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"fairway/internal/dispatch"
	"fairway/internal/flow"
)

// Replayed is what a replay went through.
type Replayed struct {
	Servers  int    `json:"servers"`  // that began
	Loads    int    `json:"loads"`    // of the cores from what was durable
	Dispatch int    `json:"dispatch"` // steps
	Flow     int    `json:"flow"`     // steps
	Cut      string `json:"cut,omitempty"`
}

// Replay steps new cores with the inputs of a recording, at the recorded
// instants, and compares the effects byte for byte. The first that differ are
// returned as a *[Difference]; another error means that this is no recording,
// or one of another version. Replayed tells how far it came.
func Replay(recording io.Reader) (Replayed, error) {
	r := &replay{lines: bufio.NewReaderSize(recording, 1<<16)}
	for {
		text, err := r.lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) { // what is left is a line that was not finished
			return r.Replayed, r.complete()
		}
		if err != nil {
			return r.Replayed, fmt.Errorf("read the recording: %w", err)
		}
		r.line++
		if err := r.next(text); err != nil {
			return r.Replayed, r.located(err)
		}
	}
}

// replay is a recording that is being replayed.
type replay struct {
	Replayed
	lines *bufio.Reader
	line  int

	workflow *flow.Workflow
	begin    *beginLine
	durable  []dispatch.Record
	dispatch *dispatch.Core
	flow     *flow.Flow
}

func (r *replay) complete() error {
	if r.Servers == 0 {
		return errors.New("this is no recording: it begins with no server")
	}
	return nil
}

func (r *replay) located(err error) error {
	if d, differs := errors.AsType[*Difference](err); differs {
		d.Line = r.line
		return d
	}
	return fmt.Errorf("line %d: %w", r.line, err)
}

func (r *replay) next(text []byte) error {
	var l line
	if err := decode(text, &l); err != nil {
		return err
	}
	switch {
	case l.Begin != nil:
		return r.beginServer(l.Begin)
	case l.Durable != nil:
		r.durable = append(r.durable, dispatch.Record{Table: l.Durable.Table, Run: dispatch.RunID(l.Durable.Run), Key: l.Durable.Key, Body: l.Durable.Body})
		return nil
	case l.Load && r.begin != nil:
		return r.load(&l)
	case l.Dispatch != "" && r.dispatch != nil:
		return r.stepDispatch(&l)
	case l.Flow != "" && r.flow != nil:
		return r.stepFlow(&l)
	case l.Cut != "":
		r.Cut = l.Cut
		return nil
	}
	return errors.New("it does not belong here, or says nothing that this version knows")
}

// beginServer makes the workflow of a server.
func (r *replay) beginServer(b *beginLine) error {
	if b.Format != format {
		return fmt.Errorf("the recording has form %d; this version knows %d", b.Format, format)
	}
	r.Servers++
	r.begin, r.durable, r.dispatch, r.flow = b, nil, nil, nil
	var err error
	if b.Trace != nil {
		r.workflow, err = flow.ParseTrace(b.File, b.Text, *b.Trace)
	} else {
		r.workflow, err = flow.Parse(b.File, b.Text)
	}
	return err
}

func (r *replay) load(l *line) error {
	r.Loads++
	durable := r.durable
	r.durable = nil
	core, effects, err := dispatch.Load(r.begin.Config, durable)
	if err != nil {
		return err
	}
	if r.flow, err = flow.Load(r.workflow, r.begin.Parameters, durable); err != nil {
		return err
	}
	r.dispatch = core
	encoded, err := encodeDispatch(&effects)
	if err != nil {
		return err
	}
	return compare(l, "dispatch was loaded", encoded, nil)
}

func (r *replay) stepDispatch(l *line) error {
	r.Dispatch++
	in, err := decodeInput(dispatchInputs, l.Dispatch, l.Input)
	if err != nil {
		return err
	}
	effects, refused := r.dispatch.Step(l.At, in)
	encoded, err := encodeDispatch(&effects)
	if err != nil {
		return err
	}
	return compare(l, "dispatch was told "+describe(in), encoded, refused)
}

func (r *replay) stepFlow(l *line) error {
	r.Flow++
	in, err := decodeInput(flowInputs, l.Flow, l.Input)
	if err != nil {
		return err
	}
	effects, refused := r.flow.Step(l.At, in)
	encoded, err := encodeFlow(&effects)
	if err != nil {
		return err
	}
	return compare(l, "flow was told "+describe(in), encoded, refused)
}

// compare returns a Difference unless a step had the recorded effects, or was
// refused as recorded.
func compare(l *line, when string, effects json.RawMessage, refused error) error {
	why := ""
	if refused != nil {
		why, effects = refused.Error(), nil
	}
	d := &Difference{When: when, At: l.At}
	switch {
	case why != l.Refused:
		d.Recorded, d.Replayed = refusal(l.Refused), refusal(why)
	case !bytes.Equal(effects, l.Effects):
		d.Path, d.Recorded, d.Replayed = firstDifference(l.Effects, effects)
	default:
		return nil
	}
	return d
}
