package orwl

import "hash/maphash"

// blockSize is the unit in which changes are found and sent.
const blockSize = 4096

// journal knows for each block of a location's data which version changed it
// last, so that a mirror gets only what it lacks. What a writer changed is
// found by comparing sums of 64 bits before and after, under a random seed.
type journal struct {
	seed    maphash.Seed
	sums    []uint64
	stamps  []uint64
	unknown bool // sums are not up to date
	skip    int  // commits that are not examined, because writers change everything
}

// examineEvery is how often the changes are looked for where writers have
// changed nearly everything before.
const examineEvery = 8

func newJournal(data []byte, version uint64) *journal {
	j := &journal{seed: maphash.MakeSeed(), unknown: true}
	j.grow(len(data), version)
	return j
}

func (j *journal) grow(size int, version uint64) {
	n := (size + blockSize - 1) / blockSize
	for len(j.stamps) < n {
		j.stamps = append(j.stamps, version)
		j.sums = append(j.sums, 0)
	}
	j.stamps, j.sums = j.stamps[:n], j.sums[:n]
}

func block(data []byte, i int) []byte {
	return data[i*blockSize : min((i+1)*blockSize, len(data))]
}

// commit notes what differs from the version before.
func (j *journal) commit(data []byte, version uint64) {
	resized := len(j.stamps) != (len(data)+blockSize-1)/blockSize
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

func (j *journal) stampAll(version uint64) {
	for i := range j.stamps {
		j.stamps[i] = version
	}
}

// wrote notes pieces that came from a remote writer.
func (j *journal) wrote(data []byte, pieces []extent, version uint64) {
	j.grow(len(data), version)
	for _, e := range pieces {
		for i := e.offset / blockSize; i*blockSize < e.offset+e.length; i++ {
			j.stamps[i] = version
			if !j.unknown {
				j.sums[i] = maphash.Bytes(j.seed, block(data, i))
			}
		}
	}
}

// since returns what a mirror of a version lacks.
func (j *journal) since(size int, version uint64) []extent {
	var pieces []extent
	for i, stamp := range j.stamps {
		if stamp <= version {
			continue
		}
		start, end := i*blockSize, min((i+1)*blockSize, size)
		pieces = appendPiece(pieces, start, end-start)
	}
	return bounded(pieces, size)
}

// appendPiece appends a piece that comes behind the others.
func appendPiece(pieces []extent, offset, length int) []extent {
	if n := len(pieces); n > 0 && pieces[n-1].offset+pieces[n-1].length == offset {
		pieces[n-1].length += length
		return pieces
	}
	return append(pieces, extent{offset, length})
}

// bounded makes one piece of too many.
func bounded(pieces []extent, size int) []extent {
	if len(pieces) > MaxExtents {
		return []extent{{0, size}}
	}
	return pieces
}
