package sched

import (
	"fmt"
	"math/bits"
	"sync/atomic"
	"time"
)

// buckets of a histogram: bucket i counts durations below 2^i microseconds, the
// last one all others (from 8 s).
const buckets = 25

// histogram counts durations by powers of two. It may be written and read at the
// same time; what is read then may be some events apart.
type histogram struct {
	counts [buckets]atomic.Uint64
	sum    atomic.Int64 // ns
}

func (h *histogram) observe(d time.Duration) {
	d = max(d, 0)
	h.counts[min(bits.Len64(uint64(d/time.Microsecond)), buckets-1)].Add(1)
	h.sum.Add(int64(d))
}

func (h *histogram) add(o *histogram) {
	for i := range h.counts {
		h.counts[i].Add(o.counts[i].Load())
	}
	h.sum.Add(o.sum.Load())
}

func bound(i int) time.Duration { return time.Microsecond << i }

func (h *histogram) total() (n uint64) {
	for i := range h.counts {
		n += h.counts[i].Load()
	}
	return n
}

func (h *histogram) mean() time.Duration {
	n := h.total()
	if n == 0 {
		return 0
	}
	return time.Duration(h.sum.Load() / int64(n))
}

// quantile is an upper bound of the q-quantile.
func (h *histogram) quantile(q float64) time.Duration {
	rest := uint64(q * float64(h.total()))
	for i := range h.counts {
		n := h.counts[i].Load()
		if rest < n {
			return bound(i)
		}
		rest -= n
	}
	return 0
}

func (h *histogram) String() string {
	return fmt.Sprintf("%v mean, %v p99", h.mean().Round(100*time.Nanosecond), h.quantile(0.99))
}
