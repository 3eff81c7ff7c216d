package sites_test

import (
	"testing"

	"fairway/internal/batch/batchtest"
)

// A computing element of ARC runs jobs as a user of its own, on nodes that share nothing
// with this machine.
func TestARC(t *testing.T) {
	sites := "sites:\n  grid: {system: arc, queue: " + batchtest.SlurmPartition + ", max_pilots: 2, cpus: 2, time: 1h," +
		" scratch: /tmp, options: [--computing-element=" + batchtest.ARC(t) + "]}\n"
	for _, w := range []work{texts(workflow), lambda(t)} {
		folder := w.onSite(t, sites, "grid")
		if left := below(folder, ".fairway/pilots/*/*.sh"); len(left) > 0 {
			t.Error("scripts with secrets are left:", left)
		}
	}
}
