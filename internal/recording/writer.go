package recording

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"fairway/internal/flow"
	"fairway/internal/taskqueue"
)

// DefaultLimit is the size in bytes at which a recording ends, whatever the
// run does: about 10 kB go into it for each job.
const DefaultLimit = 4 << 30

// Writer appends to a recording. A nil Writer is legal and does nothing. One
// goroutine at a time may use it.
//
// A recording that cannot be written, or has reached its limit, ends; the run
// goes on, and Close says why.
type Writer struct {
	file   *os.File
	buffer *bufio.Writer
	left   int64 // bytes until the limit
	err    error // why nothing more is written
}

// Append opens a recording, or makes a new one, and notes that a server
// begins. An error says that the file cannot be written, or is there and holds
// something else.
func Append(path string, limit int64, b Beginning) (*Writer, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, fmt.Errorf("open the recording: %w", err)
	}
	w := &Writer{file: file, buffer: bufio.NewWriter(file)}
	size, err := w.seekEnd()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("recording into %s: %w", path, err), file.Close())
	}
	w.left = limit - size
	text, scales := b.Workflow.Source()
	w.line(&line{Begin: &beginLine{format, b.Workflow.File, text, scales, b.Workflow.Set(), b.Dispatch}})
	if w.Flush(); w.err != nil {
		return nil, errors.Join(w.err, file.Close())
	}
	return w, nil
}

// seekEnd goes to the end of what is there, and cuts off a line that was not
// finished.
func (w *Writer) seekEnd() (int64, error) {
	end, err := w.file.Seek(0, io.SeekEnd)
	if err != nil || end == 0 {
		return end, err
	}
	prefix := []byte(`{"begin":`)
	start := make([]byte, len(prefix))
	if _, err := w.file.ReadAt(start, 0); err != nil || !bytes.Equal(start, prefix) {
		return 0, errors.New("the file is there and is no recording; name another one, or remove it")
	}
	last := make([]byte, 1<<16)
	for {
		from := max(end-int64(len(last)), 0)
		n, err := w.file.ReadAt(last[:end-from], from)
		if err != nil {
			return 0, err
		}
		if i := bytes.LastIndexByte(last[:n], '\n'); i >= 0 || from == 0 {
			end = from + int64(i) + 1
			break
		}
		end = from
	}
	if err := w.file.Truncate(end); err != nil {
		return 0, err
	}
	return w.file.Seek(end, io.SeekStart)
}

// Load notes that the cores were loaded from records, with what dispatch wants
// done first.
func (w *Writer) Load(from []taskqueue.Record, effects *taskqueue.Effects) {
	if !w.open() {
		return
	}
	for _, r := range records(from) {
		w.line(&line{Durable: &r})
	}
	encoded, err := encodeDispatch(effects)
	w.fail(err)
	w.line(&line{Load: true, Effects: encoded})
}

// Dispatch notes a step of dispatch and what came of it.
func (w *Writer) Dispatch(at time.Time, in taskqueue.Input, effects *taskqueue.Effects, refused error) {
	if w.open() {
		w.step(&line{At: at, Dispatch: kindOf(in)}, in, refused,
			func() (json.RawMessage, error) { return encodeDispatch(effects) })
	}
}

// Flow notes a step of flow and what came of it.
func (w *Writer) Flow(at time.Time, in flow.Input, effects *flow.Effects, refused error) {
	if w.open() {
		w.step(&line{At: at, Flow: kindOf(in)}, in, refused, func() (json.RawMessage, error) { return encodeFlow(effects) })
	}
}

func (w *Writer) step(l *line, in any, refused error, effects func() (json.RawMessage, error)) {
	var err error
	if l.Input, err = json.Marshal(in); refused != nil {
		l.Refused = refused.Error()
	} else if err == nil {
		l.Effects, err = effects()
	}
	w.fail(err)
	w.line(l)
}

// Flush hands to the operating system what was noted.
func (w *Writer) Flush() {
	if w.open() {
		w.fail(w.buffer.Flush())
	}
}

// Close ends the recording, and says why it ended before, if it did.
func (w *Writer) Close() error {
	if w == nil {
		return nil
	}
	w.Flush()
	return errors.Join(w.err, w.file.Close())
}

func (w *Writer) open() bool { return w != nil && w.err == nil }

// cutRoom is kept for the line that says why a recording ends early.
const cutRoom = 1 << 10

func (w *Writer) line(l *line) {
	if w.err != nil {
		return
	}
	text, err := json.Marshal(l)
	if err != nil {
		w.fail(err)
		return
	}
	if w.left -= int64(len(text)) + 1; w.left < cutRoom && l.Cut == "" {
		w.line(&line{Cut: "it has reached its limit"})
		w.Flush()
		w.fail(errors.New("it has reached its limit"))
		return
	}
	_, err = w.buffer.Write(append(text, '\n'))
	w.fail(err)
}

// fail keeps the first error.
func (w *Writer) fail(err error) {
	if w.err == nil && err != nil {
		w.err = fmt.Errorf("the recording %s ends early: %w", w.file.Name(), err)
	}
}
