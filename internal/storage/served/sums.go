package served

import (
	"encoding/binary"
	"encoding/hex"
	"hash"
	"io"

	"github.com/zeebo/blake3"

	"fairway/internal/storage"
	"hash/adler32"
)

// sums are the checksums of a whole file: the one that storage elements of grids
// tell, and one that no other contents have.
type sums struct {
	adler32 [4]byte
	blake3  [32]byte
}

// check says what is wrong with what was transferred, given what the other end has.
func (s sums) check(told sums, pfn string) error {
	switch {
	case s.blake3 != told.blake3:
		return &storage.ChecksumError{PFN: storage.Shown(pfn), Kind: "BLAKE3", Has: hex.EncodeToString(s.blake3[:]),
			Told: hex.EncodeToString(told.blake3[:])}
	case s.adler32 != told.adler32:
		return &storage.ChecksumError{PFN: storage.Shown(pfn), Kind: "adler32", Has: hex.EncodeToString(s.adler32[:]),
			Told: hex.EncodeToString(told.adler32[:])}
	}
	return nil
}

type summing struct {
	adler32 hash.Hash32
	blake3  *blake3.Hasher
}

func newSumming() *summing { return &summing{adler32.New(), blake3.New()} }

// Write is part of io.Writer. It never fails.
func (s *summing) Write(p []byte) (int, error) {
	_, _ = s.adler32.Write(p)
	return s.blake3.Write(p)
}

func (s *summing) sums() (sum sums) {
	binary.BigEndian.PutUint32(sum.adler32[:], s.adler32.Sum32())
	s.blake3.Sum(sum.blake3[:0])
	return sum
}

func sumsOf(r io.Reader) (sums, error) {
	s := newSumming()
	_, err := io.CopyBuffer(s, struct{ io.Reader }{r}, make([]byte, piece))
	return s.sums(), err
}
