package provision

import (
	"maps"
	"slices"
	"testing"

	"fairway/internal/site"
	"fairway/internal/taskqueue"
)

// A site may name each rule of placement, and no other.
func TestSitesNameEachRuleOfPlacement(t *testing.T) {
	known := slices.Sorted(maps.Keys(taskqueue.Placements))
	if said := slices.Sorted(slices.Values(site.Placements)); !slices.Equal(said, known) {
		t.Errorf("a site names %q, and there are %q", said, known)
	}
}
