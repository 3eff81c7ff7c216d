package rows

import "hash/maphash"

// Names finds the number of a row by its name. The names themselves stay in
// the rows: an entry is half of a hash, and the number. It is divided into shards,
// so that growing is never long.
type Names struct {
	seed   maphash.Seed
	shards [nameShards]nameShard
}

const (
	nameShards = 64
	firstSlots = 8
)

// nameShard is a hash table with open addressing. A slot holds the hash in its
// upper half and the number, plus 1, in its lower half; 0 is a free slot.
type nameShard struct {
	slots []uint64
	used  int
}

// NewNames returns an empty index.
func NewNames() Names { return Names{seed: maphash.MakeSeed()} }

// Hash of a name, for the other methods. It is of this Names alone, and only as
// long as the process runs.
func (x *Names) Hash(name string) uint64 { return maphash.String(x.seed, name) }

func (x *Names) shard(hash uint64) *nameShard { return &x.shards[hash>>58] }

// Find returns the row with this hash for which is holds, and whether there is
// one.
func (x *Names) Find(hash uint64, is func(row uint32) bool) (uint32, bool) {
	s := x.shard(hash)
	if s.used == 0 {
		return 0, false
	}
	mask := uint32(len(s.slots) - 1)
	for i := uint32(hash) & mask; s.slots[i] != 0; i = (i + 1) & mask {
		if slot := s.slots[i]; uint32(slot>>32) == uint32(hash) && is(uint32(slot)-1) {
			return uint32(slot) - 1, true
		}
	}
	return 0, false
}

// Add enters a row that Find does not find.
func (x *Names) Add(hash uint64, row uint32) {
	s := x.shard(hash)
	if s.used >= len(s.slots)/4*3 {
		s.grow()
	}
	s.used++
	s.put(hash<<32 | uint64(row+1))
}

func (s *nameShard) put(slot uint64) {
	mask := uint32(len(s.slots) - 1)
	i := uint32(slot>>32) & mask
	for s.slots[i] != 0 {
		i = (i + 1) & mask
	}
	s.slots[i] = slot
}

func (s *nameShard) grow() {
	old := s.slots
	s.slots = make([]uint64, max(2*len(old), firstSlots))
	for _, slot := range old {
		if slot != 0 {
			s.put(slot)
		}
	}
}

// Remove takes a row out again that was added with this hash. What stands
// behind it without a gap is entered anew, as it may have been displaced.
func (x *Names) Remove(hash uint64, row uint32) {
	s := x.shard(hash)
	mask := uint32(len(s.slots) - 1)
	i := uint32(hash) & mask
	for s.slots[i] != hash<<32|uint64(row+1) {
		i = (i + 1) & mask
	}
	s.slots[i] = 0
	s.used--
	for i = (i + 1) & mask; s.slots[i] != 0; i = (i + 1) & mask {
		slot := s.slots[i]
		s.slots[i] = 0
		s.put(slot)
	}
}

// Named is a table of rows that are found by their names.
type Named[T any] struct {
	Table[T]
	index Names
	name  func(*T) *string
}

// NewNamed returns an empty table; name says where in a row its name stands, which only Get
// sets.
func NewNamed[T any](name func(*T) *string) Named[T] { return Named[T]{index: NewNames(), name: name} }

// Find returns the row of that name, or nil.
func (t *Named[T]) Find(name string) *T {
	row, ok := t.index.Find(t.index.Hash(name), func(row uint32) bool { return *t.name(t.At(row)) == name })
	if !ok {
		return nil
	}
	return t.At(row)
}

// Get returns the row of that name. If there is none it adds one, which has its name only.
func (t *Named[T]) Get(name string) *T {
	row := t.Find(name)
	if row == nil {
		t.index.Add(t.index.Hash(name), t.Len())
		row = t.Add()
		*t.name(row) = name
	}
	return row
}
