package eviction

import (
	"cmp"
	"slices"
)

// NextRead is when a file of a cache is read next, for [NextUseOrder].
type NextRead[F any] struct {
	File F
	Size int64
	Read bool   // some job will read it
	Rank uint64 // of the first job that does, in the expected order
	Last bool   // and its cache could get it from no other
}

// NextUseOrder puts the files of one cache in the order in which they may go
// when the future is known: first those that nobody will read, the largest
// first; then the one whose next reader stands farthest behind in the
// expected order. Last copies come behind all others. Files of equal standing go
// in the order of their names, so that the result does not depend on the order
// of the argument, which is sorted in place.
func NextUseOrder[F interface{ Compare(F) int }](files []NextRead[F]) {
	slices.SortFunc(files, func(a, b NextRead[F]) int {
		switch {
		case a.Last != b.Last:
			return after(a.Last)
		case a.Read != b.Read:
			return after(a.Read)
		case a.Read && a.Rank != b.Rank:
			return cmp.Compare(b.Rank, a.Rank)
		case a.Size != b.Size:
			return cmp.Compare(b.Size, a.Size)
		}
		return a.File.Compare(b.File)
	})
}

// after is the order of two of which the first goes later, or else the second does.
func after(first bool) int {
	if first {
		return 1
	}
	return -1
}
