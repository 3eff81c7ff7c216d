package orwl

import (
	"fmt"
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
	case size < 0:
		return fmt.Errorf("%d is no size", size)
	case m.file != nil:
		b, err := m.file.resize(m.bytes, size)
		m.bytes = b
		return err
	}
	b := aligned(size)
	copy(b, m.bytes)
	m.bytes = b
	return nil
}

// renew moves the data to another file. Who still maps the old one writes where nobody looks
// any more.
func (m *memory) renew(name string) error {
	file, err := newMemoryFile(name)
	if err != nil {
		return err
	}
	fresh := memory{file: file}
	if err := fresh.resize(m.size()); err != nil {
		file.close()
		return err
	}
	if err := m.file.read(fresh.bytes); err != nil {
		fresh.close()
		return err
	}
	m.close()
	*m = fresh
	return nil
}

// close gives up memory with a file.
func (m *memory) close() {
	unmapMemory(m.bytes)
	m.file.close()
}

// remap follows a change of size that another process made to the file.
func (m *memory) remap(size, protection int) error {
	b, err := m.file.mmap(size, protection)
	if err != nil {
		return err
	}
	unmapMemory(m.bytes)
	m.bytes = b
	return nil
}

func aligned(size int) []byte {
	if size == 0 {
		return nil
	}
	words := make([]uint64, (size+7)/8)
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), size)
}

func (m *memory) size() int { return len(m.bytes) }
