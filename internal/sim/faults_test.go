package sim

import (
	"context"
	"os"
	"testing"
)

// What must hold under faults is checked over a few seeds here, and over many
// with FAIRWAY_SOAK=1.
func TestUnderFaults(t *testing.T) {
	seeds := 200
	if os.Getenv("FAIRWAY_SOAK") != "" {
		seeds = 10_000
	}
	if err := UnderFaults(context.Background(), testSeed(t), seeds, nil); err != nil {
		t.Fatal(err)
	}
}
