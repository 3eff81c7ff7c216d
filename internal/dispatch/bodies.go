package dispatch

// bodies is memory for the bodies of records. They are kept by whoever writes
// them, so it is never reused.
type bodies struct{ block []byte }

const bodyBlock = 1 << 16

// keep copies b.
func (m *bodies) keep(b []byte) []byte {
	if len(b) > cap(m.block)-len(m.block) {
		m.block = make([]byte, 0, max(bodyBlock, len(b)))
	}
	start := len(m.block)
	m.block = append(m.block, b...)
	return m.block[start:len(m.block):len(m.block)]
}
