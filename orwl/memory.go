package orwl

import (
	"errors"
	"fmt"
	"sync"
	"unsafe"
)

// memory is the data of a location: on the heap, or in a file without a name
// that other processes and strict mode can map too. It is aligned for every
// type.
type memory struct {
	bytes []byte
	file  *memoryFile
}

func (m *memory) resize(size int) error {
	switch {
	case size == len(m.bytes):
		return nil
	case m.file != nil:
		return m.move(size)
	}
	b, err := aligned(size)
	if err != nil {
		return err
	}
	copy(b, m.bytes)
	m.bytes = b
	return nil
}

// move goes on in another file, since one keeps its size for life. Who still maps the old
// one may look at it, and writes where nobody looks any more.
func (m *memory) move(size int) error {
	fresh, err := newMemory(m.file.name, size)
	if err != nil {
		return err
	}
	copy(fresh.bytes, m.bytes)
	m.close()
	*m = fresh
	return nil
}

// close gives up memory with a file.
func (m *memory) close() {
	unmapMemory(m.bytes)
	m.file.close()
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
const maxMemory = 1 << 40

// checkSize says whether memory of this size can be had: the runtime of Go panics or
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

func (m *memory) size() int { return len(m.bytes) }

// pinned are the handles that have memory of a file mapped. The collector does not know
// of such memory: without this it could go while a task uses it, when the task does not
// need its handle any more.
var pinned struct {
	sync.Mutex
	handles map[*Handle]struct{}
}

func pin(h *Handle) {
	pinned.Lock()
	defer pinned.Unlock()
	if pinned.handles == nil {
		pinned.handles = make(map[*Handle]struct{})
	}
	pinned.handles[h] = struct{}{}
}

func unpin(h *Handle) {
	pinned.Lock()
	defer pinned.Unlock()
	delete(pinned.handles, h)
}
