package sim

import (
	"context"
	"os"
	"testing"
)

// What must hold under faults is checked over a few seeds here, always the
// same ones, and over many with FAIRWAY_SOAK=1.
func TestUnderFaults(t *testing.T) {
	first, seeds := uint64(1), 60
	if os.Getenv("FAIRWAY_SOAK") != "" {
		first, seeds = testSeed(t), 10_000
	}
	if err := UnderFaults(context.Background(), first, seeds, nil); err != nil {
		t.Fatal(err)
	}
}
