package flow

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"fairway/internal/flow/pattern"
	"fairway/internal/flow/workflow"
	"fairway/internal/logical"
	"fairway/internal/taskqueue"
)

// Reasons why an input of Step is refused.
var (
	ErrUnknownInput = errors.New("the workflow declares no such input")
	ErrInputClosed  = errors.New("the input is closed")
	// ErrInputChanged says that a file has another content than when it
	// arrived. To run what depends on it again, start a new Flow.
	ErrInputChanged = errors.New("the file changed after it arrived")
	// ErrTwice says that two inputs, or an input and a job, provide a file.
	ErrTwice = errors.New("the file exists already")
)

func (f *Flow) openInput(name string) (*inputState, error) {
	state := f.inputs[name]
	if state == nil {
		return nil, fmt.Errorf("input %q: %w", name, ErrUnknownInput)
	}
	return state, nil
}

func (f *Flow) arrived(now time.Time, in Arrived) (take func(), err error) {
	state, err := f.openInput(in.Input)
	if err != nil {
		return nil, err
	}
	fresh, err := f.newArrivals(state, in.Files)
	if err != nil {
		return nil, err
	}
	return func() {
		for part := range slices.Chunk(fresh, maxFilesPerRecord) {
			f.persist(logEntry{Kind: logArrived, Name: in.Input, At: now, Files: part})
		}
		for _, file := range fresh {
			state.arrived[file.LFN] = file.Identity
			f.effects.AddFiles = append(f.effects.AddFiles, file.ExistingFile)
		}
		f.take(func() {
			for _, file := range fresh {
				f.arrive(now, state, file)
			}
			if len(fresh) > 0 {
				f.touchAll()
			}
		})
	}, nil
}

// newArrivals leaves out what arrived before, and changes nothing.
func (f *Flow) newArrivals(state *inputState, files []InputFile) ([]InputFile, error) {
	var fresh []InputFile
	seen := map[string]bool{}
	for _, file := range files {
		before, ok := state.arrived[file.LFN]
		switch {
		case ok && before != file.Identity:
			return nil, fmt.Errorf("input %q: %s: %w", state.in.Name, file.LFN, ErrInputChanged)
		case ok, seen[file.LFN]:
			continue
		case state.closing:
			return nil, fmt.Errorf("input %q: %s: %w", state.in.Name, file.LFN, ErrInputClosed)
		case f.names.isMade(file.LFN):
			return nil, fmt.Errorf("input %q: %s: %w: %s makes it", state.in.Name, file.LFN, ErrTwice,
				f.names.Find(file.LFN).maker)
		case logical.WhyNot(file.LFN) != "":
			return nil, fmt.Errorf("input %q: %q is no name of a file, it %s", state.in.Name, file.LFN, logical.WhyNot(file.LFN))
		}
		if _, _, err := state.in.Values(file.LFN, file.Path); err != nil {
			return nil, fmt.Errorf("input %q: %w", state.in.Name, err)
		}
		seen[file.LFN] = true
		fresh = append(fresh, file)
	}
	return fresh, nil
}

func (f *Flow) arrive(now time.Time, state *inputState, existing InputFile) {
	f.wave++
	if f.names.isMade(existing.LFN) { // by a job that became known after the file was taken
		f.refuse(nil, "input %s: %s", state.in.Name, taskqueue.TwoWriters(existing.LFN,
			f.names.Find(existing.LFN).maker, "the input "+state.in.Name))
		return
	}
	made := &file{lfn: existing.LFN, wave: f.wave, first: f.wave, there: true, size: existing.Size,
		unsized: existing.Unsized, since: now, access: state.in.Access}
	if why := f.inTheWay(existing.LFN); why != "" {
		f.refuse(nil, "input %s: %s", state.in.Name, why)
		return
	}
	f.know(made, "the input "+state.in.Name)
	f.occupy(existing.LFN)
	f.makeAvailable(existing.LFN)
	if m, values, _ := state.in.Values(existing.LFN, existing.Path); m != nil {
		made.values = values
		f.deliver(m, made)
	}
}

func (f *Flow) closed(in Closed) (take func(), err error) {
	state, err := f.openInput(in.Input)
	if err != nil {
		return nil, err
	}
	return func() {
		if state.closing {
			return
		}
		state.closing = true
		if !state.in.Submitted { // whoever loads an open workflow opens it again
			f.persist(logEntry{Kind: logClosed, Name: in.Input})
		}
		f.take(func() {
			f.wave++
			state.closed, state.ended = true, f.wave
			f.emptyInput(state)
			f.startRecorded()
			f.touchAll()
		})
	}, nil
}

// know records a file whose name became known, and which nobody else makes, and
// completes the pending jobs that wait for it.
func (f *Flow) know(made *file, maker string) {
	n := f.name(made.lfn)
	n.file, n.maker = made, maker
	pending := n.pending
	n.pending = nil
	for _, d := range pending {
		if d.aside {
			d.pendingJob.aside--
		} else {
			d.wave = max(d.wave, made.wave)
			d.unknown--
		}
		f.place(d.pendingJob)
	}
}

func (f *Flow) name(lfn string) *name { return f.names.Get(lfn) }

func (f *Flow) deliver(m *workflow.Maker, made *file) {
	f.made[m]++
	for _, c := range m.Consumers {
		values, second := c.Taking.Read(made.lfn, made.values)
		if values == nil {
			continue
		}
		st := f.steps[c.Step.Order-1]
		st.took[c.Source]++
		if second != nil {
			f.refuse(st, "step %s cannot take %s", c.Step.Name, pattern.TwoReadings(made.lfn, c.Taking.Taker, values, second))
			continue
		}
		if st.merging != nil {
			f.gather(st, made, values)
			continue
		}
		f.join(st, c.Source, made, values)
	}
}

func (f *Flow) notify(format string, args ...any) {
	f.effects.Notes = append(f.effects.Notes, fmt.Sprintf(format, args...))
}
