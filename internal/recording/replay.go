package recording

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"fairway/internal/dispatch"
	"fairway/internal/flow"
	"fairway/internal/flow/workflow"
	"fairway/internal/taskqueue"
	"fairway/internal/wfformat"
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
	r, lines, line := new(replay), bufio.NewReaderSize(recording, 1<<16), 0
	for {
		text, err := lines.ReadBytes('\n')
		switch {
		case errors.Is(err, io.EOF) && r.Servers == 0:
			return r.Replayed, errors.New("this is no recording: it begins with no server")
		case errors.Is(err, io.EOF): // what is left is a line that was not finished
			return r.Replayed, nil
		case err != nil:
			return r.Replayed, fmt.Errorf("read the recording: %w", err)
		}
		line++
		err = r.next(text)
		if d, differs := errors.AsType[*Difference](err); differs {
			d.Line = line
			return r.Replayed, d
		}
		if err != nil {
			return r.Replayed, fmt.Errorf("line %d: %w", line, err)
		}
	}
}

// replay is a recording that is being replayed.
type replay struct {
	Replayed

	workflow *workflow.Workflow
	begin    *beginLine
	durable  []taskqueue.Record
	dispatch *dispatch.Core
	flow     *flow.Flow
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
		r.durable = append(r.durable, taskqueue.Record{
			Table: l.Durable.Table, Run: taskqueue.RunID(l.Durable.Run), Key: l.Durable.Key, Body: l.Durable.Body,
		})
		return nil
	case l.Load && r.begin != nil:
		return r.load(&l)
	case l.Dispatch != "" && r.dispatch != nil:
		r.Dispatch++
		return step(&l, "dispatch", dispatchInputs, l.Dispatch, r.dispatch.Step, encodeDispatch)
	case l.Flow != "" && r.flow != nil:
		r.Flow++
		return step(&l, "flow", flowInputs, l.Flow, r.flow.Step, encodeFlow)
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
		r.workflow, err = wfformat.Parse(b.File, b.Text, *b.Trace)
	} else {
		r.workflow, err = workflow.Parse(b.File, b.Text)
		if err == nil {
			r.workflow, err = r.workflow.With(b.Parameters)
		}
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
	if r.flow, err = flow.Load(r.workflow, durable); err != nil {
		return err
	}
	r.dispatch = core
	encoded, err := encodeDispatch(&effects)
	if err != nil {
		return err
	}
	return compare(l, "dispatch was loaded", encoded, nil)
}

// step gives a core the input of a line, and compares what it does.
func step[In, Effects any](
	l *line, core string, known []In, kind string, do func(time.Time, In) (Effects, error),
	encode func(*Effects) (json.RawMessage, error),
) error {
	in, err := decodeInput(known, kind, l.Input)
	if err != nil {
		return err
	}
	effects, refused := do(l.At, in)
	encoded, err := encode(&effects)
	if err != nil {
		return err
	}
	return compare(l, core+" was told "+describe(in), encoded, refused)
}

// compare returns a Difference unless a step had the recorded effects, or was
// refused as recorded.
func compare(l *line, when string, effects json.RawMessage, refused error) error {
	why := ""
	if refused != nil {
		why, effects = refused.Error(), nil
	}
	d := &Difference{When: when}
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
