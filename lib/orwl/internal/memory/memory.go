// Package memory has the data of a location: on the heap, or in a file that other processes
// of this host can map. A Draft is where a process writes to memory of another one, and a
// Journal knows which blocks changed in which version. The package knows no locks: who holds
// the lock of a location calls it, so nobody else looks at the same time.
package memory

import (
	"errors"
	"fmt"
	"math"
	"unsafe"
)

// Region is the data of a location. Without a File it is on the heap, and the collector
// frees it. With one it is in a file without a name that others can map too, and lasts until
// Close, or until Resize and Move replace it. It is aligned for every type. Who has the
// write lock of the location, or makes it, may call methods that change it.
type Region struct {
	Bytes []byte
	File  *File
}

// Resize gives the data a size. What was there stays, up to that size; what is new is zero.
// After an error the data is as it was.
func (m *Region) Resize(size int) error {
	switch {
	case size == len(m.Bytes):
		return nil
	case m.File != nil:
		return m.Move(size)
	}
	b, err := aligned(size)
	if err != nil {
		return err
	}
	copy(b, m.Bytes)
	m.Bytes = b
	return nil
}

// Move goes on in another file, since one keeps its size for life. Who still maps the old
// one may look at it, and writes where nobody looks any more.
func (m *Region) Move(size int) error {
	fresh, err := NewInFile(m.File.name, size)
	if err != nil {
		return err
	}
	copy(fresh.Bytes, m.Bytes)
	m.Close()
	*m = fresh
	return nil
}

// Close gives up memory with a file. Nobody may touch Bytes from then on.
func (m *Region) Close() {
	unmapMemory(m.Bytes)
	m.File.close()
}

// aligned returns memory of the heap.
func aligned(size int) ([]byte, error) {
	if err := checkSize(size); err != nil || size == 0 {
		return nil, err
	}
	words := make([]uint64, (size+7)/8)
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), size), nil
}

// largeSize is the size in bytes from which checkSize asks the system. Below it the
// asking would cost more than it can save.
const largeSize = 256 << 20

// maxMemory bounds the size in bytes where the system cannot be asked.
const maxMemory = min(1<<40, math.MaxInt)

// checkSize reports whether memory of this size can be had: the runtime of Go panics or
// ends the process where it cannot.
func checkSize(size int) error {
	switch {
	case size < 0:
		return fmt.Errorf("%d bytes are no size", size)
	case size < largeSize:
		return nil
	case size > maxMemory:
		return fmt.Errorf("%d bytes: %w", size, errMemory)
	}
	return askForMemory(size)
}

var errMemory = errors.New("the machine does not give so much memory")

// Size returns the size of the data in bytes.
func (m *Region) Size() int { return len(m.Bytes) }
