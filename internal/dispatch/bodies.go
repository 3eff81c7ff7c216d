package dispatch

// bodies is memory for the bodies of records, which are made where they stay.
// They are kept by whoever writes them, so it is never reused.
type bodies struct{ block []byte }

// A block has room for many bodies; a new one is begun when less than bodyRoom
// is left. A body that outgrows its room moves to memory of its own.
const (
	bodyBlock = 1 << 16
	bodyRoom  = 1 << 10
)

// next returns room to append a body to.
func (m *bodies) next() []byte {
	if cap(m.block)-len(m.block) < bodyRoom {
		m.block = make([]byte, 0, bodyBlock)
	}
	return m.block[len(m.block):]
}

// keep returns the body, which was made by appending to next.
func (m *bodies) keep(b []byte) []byte {
	if cap(b) == cap(m.block)-len(m.block) {
		m.block = m.block[:len(m.block)+len(b)]
	}
	return b[:len(b):len(b)]
}
