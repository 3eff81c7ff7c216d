package main

import (
	"sync/atomic"
)

// counter counts units of work on a cache line of its own.
type counter struct {
	n atomic.Uint64
	_ [56]byte
}

// unit is about a microsecond of computing.
func unit(x uint64) uint64 {
	for range 400 {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
	}
	return x
}

// compute works until stop is set and calls between after every unit.
func (c *counter) compute(stop *atomic.Bool, between func()) {
	x := uint64(88172645463325252)
	for !stop.Load() {
		x = unit(x)
		if x == 0 {
			panic("xorshift reached zero")
		}
		c.n.Add(1)
		between()
	}
}

func total(counters []counter) (n uint64) {
	for i := range counters {
		n += counters[i].n.Load()
	}
	return n
}
