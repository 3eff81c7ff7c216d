package state

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
)

// A small heap may grow by the bytes, a large one by the percentage, and both may follow each other.
func TestGrowthFollowsTheHeap(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	const percent, bytes = 40, 64 << 20
	growth := func() uint64 {
		now := []metrics.Sample{{Name: "/gc/gogc:percent"}}
		metrics.Read(now)
		return now[0].Value.Uint64()
	}
	await := func(so func(uint64) bool) {
		for !so(growth()) {
			runtime.GC()
			runtime.Gosched()
		}
	}
	growBy(percent, bytes)
	await(func(now uint64) bool { return now > percent && now <= maxGrowth })
	large := make([]byte, 4*bytes)
	await(func(now uint64) bool { return now == percent })
	runtime.KeepAlive(large)
	await(func(now uint64) bool { return now > percent })
}
