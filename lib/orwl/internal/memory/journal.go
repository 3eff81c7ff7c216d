package memory

import "hash/maphash"

// BlockSize is the unit in which changes are found and sent.
const BlockSize = 4096

// Extent is a piece of data, in bytes.
type Extent struct{ Offset, Length int }

// MaxExtents bounds the pieces of data in a frame; data in more pieces is
// sent whole.
const MaxExtents = 1 << 16

// Journal knows for each block of a location's data which version changed it
// last, so that a mirror gets only what it lacks. What a writer changed is
// found by comparing sums of 64 bits before and after, under a random seed.
//
// The owner of a location has one from the first grant to another host on; a mirror has one
// while its tasks write. Who holds the write lock notes each version, by Commit or by Wrote,
// before anybody calls Since with a version before it.
type Journal struct {
	seed    maphash.Seed
	sums    []uint64 // by block, of the version noted last, unless unknown
	stamps  []uint64 // by block, the version that changed it last
	unknown bool
	skip    int // commits that are not examined, because writers change everything
}

// examineEvery is how often the changes are looked for where writers have
// changed nearly everything before.
const examineEvery = 8

// NewJournal returns the journal of data that has no history before version.
func NewJournal(data []byte, version uint64) *Journal {
	j := &Journal{seed: maphash.MakeSeed(), unknown: true}
	j.grow(len(data), version)
	return j
}

// WorthAJournal reports whether less than all of the data may ever be sent.
func WorthAJournal(data []byte) bool { return len(data) > BlockSize }

// Before makes sums of the data as it is, which a writer is about to change, unless they are
// there or writers change everything.
func (j *Journal) Before(data []byte, version uint64) {
	if j.unknown && j.skip == 0 {
		j.Commit(data, version)
	}
}

func (j *Journal) grow(size int, version uint64) {
	n := (size + BlockSize - 1) / BlockSize
	for len(j.stamps) < n {
		j.stamps = append(j.stamps, version)
		j.sums = append(j.sums, 0)
	}
	j.stamps, j.sums = j.stamps[:n], j.sums[:n]
}

func block(data []byte, i int) []byte {
	return data[i*BlockSize : min((i+1)*BlockSize, len(data))]
}

// Commit notes what differs from the version before.
func (j *Journal) Commit(data []byte, version uint64) {
	resized := len(j.stamps) != (len(data)+BlockSize-1)/BlockSize
	j.grow(len(data), version)
	if j.skip > 0 {
		j.skip--
		j.unknown = true
		j.stampAll(version)
		return
	}
	changed := 0
	for i := range j.stamps {
		sum := maphash.Bytes(j.seed, block(data, i))
		if sum != j.sums[i] || j.unknown {
			j.sums[i], j.stamps[i] = sum, version
			changed++
		}
	}
	if !j.unknown && !resized && changed > 16 && changed*4 > len(j.stamps)*3 {
		j.skip = examineEvery
	}
	j.unknown = false
}

func (j *Journal) stampAll(version uint64) {
	for i := range j.stamps {
		j.stamps[i] = version
	}
}

// Wrote notes pieces that came from a remote writer.
func (j *Journal) Wrote(data []byte, pieces []Extent, version uint64) {
	j.grow(len(data), version)
	for _, e := range pieces {
		for i := e.Offset / BlockSize; i*BlockSize < e.Offset+e.Length; i++ {
			j.stamps[i] = version
			if !j.unknown {
				j.sums[i] = maphash.Bytes(j.seed, block(data, i))
			}
		}
	}
}

// Since returns what a mirror of a version lacks.
func (j *Journal) Since(size int, version uint64) []Extent {
	var pieces []Extent
	for i, stamp := range j.stamps {
		if stamp <= version {
			continue
		}
		start, end := i*BlockSize, min((i+1)*BlockSize, size)
		pieces = appendPiece(pieces, start, end-start)
	}
	return bounded(pieces, size)
}

// appendPiece appends a piece that comes behind the others.
func appendPiece(pieces []Extent, offset, length int) []Extent {
	if n := len(pieces); n > 0 && pieces[n-1].Offset+pieces[n-1].Length == offset {
		pieces[n-1].Length += length
		return pieces
	}
	return append(pieces, Extent{offset, length})
}

// bounded makes one piece of too many.
func bounded(pieces []Extent, size int) []Extent {
	if len(pieces) > MaxExtents {
		return []Extent{{0, size}}
	}
	return pieces
}
