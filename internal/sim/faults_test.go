package sim

import (
	"context"
	"os"
	"slices"
	"testing"
)

// What must hold under faults is checked over a few seeds here, always the
// same ones and none with pilots that tell their end or outputs that stay in
// caches, and over 10,000 of all
// kinds with FAIRWAY_SOAK=1.
func TestUnderFaults(t *testing.T) {
	if os.Getenv("FAIRWAY_SOAK") != "" {
		if err := UnderFaults(context.Background(), testSeed(t), 10_000, nil); err != nil {
			t.Fatal(err)
		}
		return
	}
	for seed := uint64(1); seed <= 40; seed++ {
		exp := Faulty(seed)
		if exp.Workflow.Cached > 0 || slices.ContainsFunc(exp.Sites, func(s SiteSpec) bool { return s.SaysLife }) {
			continue
		}
		if err := underFaults(seed); err != nil {
			t.Error(err)
		}
	}
}
