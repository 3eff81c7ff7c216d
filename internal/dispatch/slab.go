package dispatch

// slab hands out values that live as long as the Core, many from one
// allocation: a queue of a million jobs is then a few thousand objects. They are
// so large that each begins a page, and with it a line of the processor's cache.
type slab[T any] struct{ free []T }

const slabSize = 512

// take returns n zero values.
func (s *slab[T]) take(n int) []T {
	if n > len(s.free) {
		s.free = make([]T, max(n, slabSize))
	}
	taken := s.free[:n:n]
	s.free = s.free[n:]
	return taken
}

func (s *slab[T]) one() *T { return &s.take(1)[0] }

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
