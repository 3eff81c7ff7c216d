package sim

import (
	"os"
	"strconv"
	"testing"
	"time"
)

// testSeed returns a seed and logs it; FAIRWAY_SEED repeats one.
func testSeed(t *testing.T) uint64 {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("FAIRWAY_SEED"); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatalf("FAIRWAY_SEED: %v", err)
		}
	}
	t.Logf("FAIRWAY_SEED=%d", seed)
	return seed
}
