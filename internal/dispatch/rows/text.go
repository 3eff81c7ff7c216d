package rows

import "unsafe"

// Text holds short texts that live about as long as each other: many stand in one piece of memory,
// which lives as long as one of them is in use. So a million names are a few hundred objects for the
// garbage collector, and none is rounded up. Who keeps one for much longer copies it. Its zero value
// is ready.
type Text struct {
	free []byte
	size int // of the last piece
}

// Pieces of a Text grow from the first to the last size, in bytes.
const (
	firstPiece = 256
	lastPiece  = 32 << 10
)

// Take returns so many zero bytes.
func (t *Text) Take(n int) []byte {
	if n > len(t.free) {
		t.size = max(firstPiece, min(2*t.size, lastPiece))
		t.free = make([]byte, max(n, t.size))
	}
	taken := t.free[:n:n]
	t.free = t.free[n:]
	return taken
}

// Bytes returns a copy; nil of what is empty.
func (t *Text) Bytes(b []byte) []byte {
	if len(b) == 0 {
		return nil
	}
	kept := t.Take(len(b))
	copy(kept, b)
	return kept
}

// String returns a copy.
func (t *Text) String(s string) string {
	kept := t.Take(len(s))
	copy(kept, s)
	return unsafe.String(unsafe.SliceData(kept), len(kept)) // nobody writes there again
}

// StringOf returns a copy as a string.
func (t *Text) StringOf(b []byte) string {
	kept := t.Take(len(b))
	copy(kept, b)
	return unsafe.String(unsafe.SliceData(kept), len(kept))
}
