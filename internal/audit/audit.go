// Package audit keeps what people have done at a server: who, what, when, from where, and how it came
// out, a line of JSON each, in files that only the user of the server may read.
//
// Guarantees:
//
//   - What is written is only appended to; when a file is full another one begins, and the oldest
//     goes. All files together are bounded by Files times FileSize.
//   - An entry that [Log.Append] has taken is with the system: it survives a crash of the process, and
//     not a loss of power.
//   - What was refused or failed cannot push out what was done: of what comes faster than Refusals in a
//     minute, only the number is written.
//   - No text in it is a secret: who appends sees to that. A text is cut after MaxText bytes.
//
// Any goroutine may use a [Log].
package audit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Limits.
const (
	// FileSize is when a file is full, in bytes, and Files how many are kept.
	FileSize = 8 << 20
	Files    = 8
	// Refusals is how many entries about what was refused or failed are written down in a minute.
	Refusals = 60
	// MaxText bounds a text of an entry, in bytes.
	MaxText = 300
)

// Entry is something that somebody has done, or was refused.
type Entry struct {
	At       time.Time `json:"at"`
	User     string    `json:"user,omitempty"` // empty: nobody has proved a name
	Role     string    `json:"role,omitempty"`
	Proof    string    `json:"proof,omitempty"`
	Token    string    `json:"token,omitempty"` // its number
	From     string    `json:"from,omitempty"`
	Call     string    `json:"call"`
	Run      uint32    `json:"run,omitempty"`
	About    string    `json:"about,omitempty"`
	Outcome  string    `json:"outcome"` // [Done], or the code of an error
	Repeated int64     `json:"repeated,omitempty"`
	// Refused says that it is one of those of which only some are written down.
	Refused bool `json:"refused,omitempty"`
}

// Done is the outcome of what was done.
const Done = "ok"

// Log is an open log.
type Log struct {
	path  string
	size  int64 // when a file is full
	files int

	mu      sync.Mutex // guards what follows
	file    *os.File
	written int64
	minute  time.Time // of the refusals that were written last
	refused int       // in it
	left    Entry     // the last refusal that was not written; its Repeated is how many were not
}

// Open opens the log whose newest file is at a path.
func Open(path string) (*Log, error) { return open(path, FileSize, Files) }

func open(path string, size int64, files int) (*Log, error) {
	l := &Log{path: path, size: size, files: files}
	return l, l.begin()
}

// begin opens the newest file. The caller holds the mutex, or has the log alone.
func (l *Log) begin() error {
	file, err := os.OpenFile(l.path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("audit log: %w", err)
	}
	end, err := file.Seek(0, io.SeekEnd)
	last := []byte{'\n'}
	if err == nil && end > 0 {
		_, err = file.ReadAt(last, end-1)
	}
	if err == nil && last[0] != '\n' { // what wrote it was killed
		_, err = file.Write([]byte{'\n'})
		end++
	}
	if err != nil {
		_ = file.Close()
		return fmt.Errorf("audit log: %w", err)
	}
	l.file, l.written = file, end
	return nil
}

// Append writes an entry down.
func (l *Log) Append(e Entry) error {
	for _, text := range []*string{&e.User, &e.Role, &e.Proof, &e.Token, &e.From, &e.Call, &e.About, &e.Outcome} {
		*text = cut(*text)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if e.Refused {
		if e.At.Sub(l.minute) >= time.Minute || e.At.Before(l.minute) {
			l.minute, l.refused = e.At, 0
			if err := l.writeLeft(); err != nil {
				return err
			}
		}
		if l.refused++; l.refused > Refusals {
			e.Repeated = l.left.Repeated + 1
			l.left = e
			return nil
		}
	}
	return l.write(e)
}

func (l *Log) writeLeft() error {
	left := l.left
	l.left = Entry{}
	if left.Repeated == 0 {
		return nil
	}
	left.Repeated--
	return l.write(left)
}

func (l *Log) write(e Entry) error {
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	line = append(line, '\n')
	if l.file == nil {
		return fmt.Errorf("audit log: %w", os.ErrClosed)
	}
	if l.written > 0 && l.written+int64(len(line)) > l.size {
		if err := l.turn(); err != nil {
			return err
		}
	}
	n, err := l.file.Write(line)
	l.written += int64(n)
	if err != nil {
		err = fmt.Errorf("audit log: %w", err)
		if n > 0 { // the next entry begins a line
			_, _ = l.file.Write([]byte{'\n'})
		}
	}
	return err
}

func (l *Log) turn() error {
	err := errors.Join(l.file.Sync(), l.file.Close())
	l.file = nil
	for i := l.files - 1; i > 0 && err == nil; i-- {
		if failed := os.Rename(l.name(i-1), l.name(i)); !errors.Is(failed, fs.ErrNotExist) {
			err = failed
		}
	}
	if err != nil {
		err = fmt.Errorf("audit log: %w", err)
	}
	return errors.Join(err, l.begin())
}

// name is that of a file; 0: the newest.
func (l *Log) name(i int) string {
	if i == 0 {
		return l.path
	}
	return l.path + "." + strconv.Itoa(i)
}

// Close writes what is left, and closes the log.
func (l *Log) Close() error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return nil
	}
	err := errors.Join(l.writeLeft(), l.file.Sync(), l.file.Close())
	l.file = nil
	return err
}

// Read returns the newest entries that are wanted, the newest first, at most so many. more says that
// there are others. Lines that cannot be read are passed over.
func (l *Log) Read(most int, wanted func(*Entry) bool) (entries []Entry, more bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.files {
		text, err := os.ReadFile(l.name(i))
		if errors.Is(err, fs.ErrNotExist) {
			break
		}
		if err != nil {
			return nil, false, fmt.Errorf("audit log: %w", err)
		}
		for len(text) > 0 {
			at := bytes.LastIndexByte(text[:len(text)-1], '\n') + 1
			line := text[at:]
			text = text[:at]
			e, ok := decode(line)
			if !ok || !wanted(&e) {
				continue
			}
			if len(entries) == most {
				return entries, true, nil
			}
			entries = append(entries, e)
		}
	}
	return entries, false, nil
}

func decode(line []byte) (e Entry, ok bool) {
	if json.Unmarshal(line, &e) != nil || e.Call == "" {
		return Entry{}, false
	}
	return e, true
}

func cut(text string) string {
	if len(text) <= MaxText {
		return text
	}
	return strings.ToValidUTF8(text[:MaxText], "") + "…"
}
