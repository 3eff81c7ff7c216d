package archive

import (
	"bytes"
	"os"
)

const (
	page = 4096
	// holesBuffer is how much is written at a time: a multiple of page.
	holesBuffer = 256 << 10
)

var zeros [page]byte

// holes writes an empty file from its beginning, and leaves holes where there are
// whole pages of zeros.
type holes struct {
	file   *os.File
	buffer []byte
	at     int64 // of the buffer in the file
	size   int64 // of the file
}

func newHoles(file *os.File) *holes { return &holes{file: file, buffer: make([]byte, 0, holesBuffer)} }

func (h *holes) reset(file *os.File) { h.file, h.buffer, h.at, h.size = file, h.buffer[:0], 0, 0 }

func (h *holes) Write(b []byte) (int, error) {
	written := len(b)
	for len(b) > 0 {
		n := min(len(b), cap(h.buffer)-len(h.buffer))
		h.buffer, b = append(h.buffer, b[:n]...), b[n:]
		if len(h.buffer) == cap(h.buffer) {
			if err := h.flush(); err != nil {
				return 0, err
			}
		}
	}
	return written, nil
}

// flush writes stretches of pages that are not all zeros.
func (h *holes) flush() error {
	for from := 0; from < len(h.buffer); {
		to := from
		for to < len(h.buffer) && !zeroPage(h.buffer[to:]) {
			to = min(to+page, len(h.buffer))
		}
		if to > from {
			if _, err := h.file.WriteAt(h.buffer[from:to], h.at+int64(from)); err != nil {
				return err
			}
			h.size = h.at + int64(to)
		}
		for to < len(h.buffer) && zeroPage(h.buffer[to:]) {
			to += page
		}
		from = to
	}
	h.at += int64(len(h.buffer))
	h.buffer = h.buffer[:0]
	return nil
}

func zeroPage(b []byte) bool { return len(b) >= page && bytes.Equal(b[:page], zeros[:]) }

func (h *holes) end() error {
	if err := h.flush(); err != nil || h.size == h.at {
		return err
	}
	return h.file.Truncate(h.at)
}
