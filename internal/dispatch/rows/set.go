package rows

// Set is a set of numbers, with one bit for each. Its zero value is empty.
type Set []uint64

// Grow makes room for the numbers below n.
func (s *Set) Grow(n uint32) {
	for uint32(len(*s))*64 < n {
		*s = append(*s, 0)
	}
}

// Add puts a number in. Like the other methods it panics when there is no room for
// the number.
func (s Set) Add(row uint32) { s[row/64] |= 1 << (row % 64) }

// Remove takes a number out.
func (s Set) Remove(row uint32) { s[row/64] &^= 1 << (row % 64) }

// Has reports whether a number is in.
func (s Set) Has(row uint32) bool { return s[row/64]&(1<<(row%64)) != 0 }
