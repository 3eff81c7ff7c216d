package logical

// Copies is a digest of a set of cached copies, in whatever order they are added. Two sides
// that keep such a set each find out by it whether they have the same. It is no protection
// from somebody who wants two sets to have one digest: who tells of a cache may say
// anything of it.
type Copies struct {
	Files uint64
	Sum   uint64
}

// Add adds a copy, which is not in the set yet.
func (c *Copies) Add(lfn string, version uint32, tag uint64) {
	const offset, prime = 14695981039346656037, 1099511628211 // of FNV-1a
	h := uint64(offset)
	for i := range len(lfn) {
		h = (h ^ uint64(lfn[i])) * prime
	}
	c.Files++
	c.Sum += mixed(mixed(h^uint64(version)) ^ tag)
}

// mixed spreads each bit over all bits, as in splitmix64: sums of what is left of FNV-1a
// would be alike for names that are alike.
func mixed(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
