package sim

import (
	"math/rand/v2"
)

// Stream returns the random stream of one entity of a run: the same seed and
// the same names always give the same draws, and different names independent
// ones.
func Stream(seed uint64, kind string, id ...uint64) *rand.Rand {
	h := mix(seed ^ 0x9e3779b97f4a7c15)
	for i := range len(kind) {
		h = mix(h ^ uint64(kind[i]))
	}
	for _, n := range id {
		h = mix(h ^ n)
	}
	return rand.New(rand.NewPCG(h, mix(h+1)))
}

// named folds a name into a number for Stream.
func named(name string) uint64 {
	h := uint64(len(name))
	for i := range len(name) {
		h = mix(h ^ uint64(name[i]))
	}
	return h
}

// mix is the finalizer of SplitMix64: a bijection that spreads every bit.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
