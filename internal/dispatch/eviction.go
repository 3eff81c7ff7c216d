package dispatch

import "slices"

// NextUseOrder puts the files of one cache in the order in which they may go
// when the future is known: first those that nobody will read, the largest
// first; then the one whose next reader stands farthest behind in the
// expected order. next returns the rank of the next job that reads the file,
// and whether there is one. Files of equal standing go in the order of their
// names, so that the result does not depend on the order of the argument,
// which is sorted in place.
func NextUseOrder(files []CachedFile, next func(FileRef) (rank uint64, read bool)) {
	type standing struct {
		rank uint64
		read bool
	}
	at := make(map[FileRef]standing, len(files))
	for _, f := range files {
		rank, read := next(f.File)
		at[f.File] = standing{rank, read}
	}
	slices.SortFunc(files, func(a, b CachedFile) int {
		x, y := at[a.File], at[b.File]
		switch {
		case x.read != y.read && y.read:
			return -1
		case x.read != y.read:
			return 1
		case x.read && x.rank != y.rank:
			return compare(y.rank, x.rank)
		case a.Size != b.Size:
			return compare(b.Size, a.Size)
		case a.File.LFN != b.File.LFN:
			return compare(a.File.LFN, b.File.LFN)
		}
		return compare(a.File.Version, b.File.Version)
	})
}

func compare[T uint64 | int64 | string | Version](a, b T) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}
