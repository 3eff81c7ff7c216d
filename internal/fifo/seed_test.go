package fifo

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"
)

// seeded returns a random source and logs its seed; FAIRWAY_SEED repeats one.
func seeded(t *testing.T) *rand.Rand {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("FAIRWAY_SEED"); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatalf("FAIRWAY_SEED: %v", err)
		}
	}
	t.Logf("FAIRWAY_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}
