package storage

import (
	"crypto/sha256"
	"encoding/binary"
	"time"
)

// A tag tells the contents of a file from those that it has at another time, as
// far as that can be told without reading it. Its upper half stands for size and
// time of modification, which a copy keeps; the lower half for the name and the
// inode. The two highest bits tell it from the number of an attempt, and from
// one that says nothing of the state of a file.
const (
	tagOfInput = 1 << 63
	tagOfState = 1 << 62
	tagLower   = 1<<32 - 1
)

// TagOf is the tag of a file as it is now.
func TagOf(pfn string, now Info) uint64 {
	return tagOfInput | tagOfState | stateOf(now.Size, now.ModTime) | hashOf(pfn, now.Inode)&tagLower
}

// FixedTag is the tag of a file whose contents are known by a text, whatever its
// time.
func FixedTag(text string) uint64 {
	return (hashOf(text, 0) | tagOfInput) &^ tagOfState
}

// MayBe reports whether a copy that keeps the time of modification, or a link,
// may hold what the tag says: whether neither was changed.
func MayBe(tag uint64, size int64, modified time.Time) bool {
	return !TellsState(tag) || (tag&^tagLower) == tagOfInput|tagOfState|stateOf(size, modified)
}

// TellsState reports whether the tag came from the state of a file.
func TellsState(tag uint64) bool { return tag&(tagOfInput|tagOfState) == tagOfInput|tagOfState }

// Written stands for a time of modification, as a tag does together with the size: two times have
// the same with a probability of 2^-32. It is never 0.
func Written(modified time.Time) uint32 {
	instant := modified.UnixNano()
	return max(1, uint32(instant)^uint32(instant>>32))
}

func stateOf(size int64, modified time.Time) uint64 {
	instant := int64(0)
	if !modified.IsZero() {
		instant = modified.UnixNano()
	}
	var b [16]byte
	binary.LittleEndian.PutUint64(b[:], uint64(size))
	binary.LittleEndian.PutUint64(b[8:], uint64(instant))
	return hashed(b[:]) &^ (tagOfInput | tagOfState | tagLower)
}

func hashOf(text string, inode uint64) uint64 {
	return hashed(binary.LittleEndian.AppendUint64([]byte(text), inode))
}

func hashed(b []byte) uint64 {
	sum := sha256.Sum256(b)
	return binary.LittleEndian.Uint64(sum[:])
}
