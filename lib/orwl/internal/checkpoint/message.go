package checkpoint

import (
	"encoding/binary"
	"fmt"
)

// Kinds of messages between a task and the vault.
const (
	AskState  uint64 = iota + 1 // from which checkpoint does the gang go on?
	AskPiece                    // what is at an offset of my part of it?
	GivePiece                   // this is at an offset of my part of a new one
	GavePart                    // my part is complete, with this size and sum
	Refused                     // the answer is an error, as text
)

// Message is a question or an answer.
type Message struct {
	Number, Kind, Iteration, Offset uint64
	Size, Sum                       uint64 // of a part
	Data                            []byte
}

// numbers are what a message begins with, as it stands in the location.
func (m *Message) numbers() []*uint64 {
	return []*uint64{&m.Number, &m.Kind, &m.Iteration, &m.Offset, &m.Size, &m.Sum}
}

const messageHead = 6 * 8 // bytes

// SetPart says which part it is about.
func (m *Message) SetPart(s Sum) { m.Size, m.Sum = uint64(s.Size), uint64(s.CRC32C) }

// Part is the part that it is about.
func (m *Message) Part() Sum { return Sum{int64(min(m.Size, 1<<62)), uint32(m.Sum)} }

// Put writes it to memory of its Length.
func (m *Message) Put(b []byte) {
	for i, n := range m.numbers() {
		binary.LittleEndian.PutUint64(b[8*i:], *n)
	}
	copy(b[messageHead:], m.Data)
}

// Length is how many bytes it takes.
func (m *Message) Length() int { return messageHead + len(m.Data) }

// ParseMessage reads one that stands in memory, which its data is part of.
func ParseMessage(b []byte) (m Message, err error) {
	if len(b) < messageHead || len(b) > messageHead+PieceSize {
		return m, fmt.Errorf("a message has %d bytes", len(b))
	}
	for i, n := range m.numbers() {
		*n = binary.LittleEndian.Uint64(b[8*i:])
	}
	m.Data = b[messageHead:]
	return m, nil
}
