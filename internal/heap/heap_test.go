package heap

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
)

func growth() uint64 {
	now := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(now)
	return now[0].Value.Uint64()
}

// await collects garbage until the growth is so, which the end of a collection sets.
func await(t *testing.T, so func(uint64) bool) {
	t.Helper()
	const most = 1000 // collections; two are needed
	for range most {
		if so(growth()) {
			return
		}
		runtime.GC()
		runtime.Gosched()
	}
	t.Fatalf("after %d collections the growth is %d", most, growth())
}

// After the first collection the growth is the usual one, also where that comes while a state is
// loaded; what another part has set stays.
func TestTheFirstCollectionIsLate(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(usualGrowth))
	CollectLate()
	await(t, func(now uint64) bool { return now == usualGrowth })
	debug.SetGCPercent(firstGrowth)
	end := GrowFreely()
	endFirst()
	end()
	if now := growth(); now != usualGrowth {
		t.Errorf("after a load it is %d", now)
	}
	debug.SetGCPercent(40)
	endFirst()
	if now := growth(); now != 40 {
		t.Errorf("what was set is %d", now)
	}
}

// A small heap may grow by the bytes, a large one by the percentage, and both may follow each other.
func TestGrowthFollowsTheHeap(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	const percent, bytes = 40, 64 << 20
	growBy(percent, bytes)
	await(t, func(now uint64) bool { return now > percent && now <= maxGrowth })
	large := make([]byte, 4*bytes)
	await(t, func(now uint64) bool { return now == percent })
	runtime.KeepAlive(large)
	await(t, func(now uint64) bool { return now > percent })
}
