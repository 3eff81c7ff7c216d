package look

import (
	"strings"
	"testing"

	"fairway/internal/cli/console"
	"fairway/internal/wire"
)

// A run that was cut off has told nothing.
func TestARunWithoutCountsOfCachesSaysSo(t *testing.T) {
	for want, live := range map[string]bool{
		"no caches\n": true,
		"nothing runs here, and the last run has told nothing of its caches\n": false,
	} {
		var text strings.Builder
		c := New(&console.Console{Out: &text, Err: &text})
		c.printCaches(&wire.ListCachesRequest{}, &wire.ListCachesResponse{Live: live})
		if got := text.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// A node tells what it has: one without a cache has no limit, and one whose pilots have gone
// has only counts.
func TestNodesOfEveryKindAreListed(t *testing.T) {
	var out strings.Builder
	c := New(&console.Console{Out: &out, Err: &out})
	c.printNodeCaches(&wire.ListCachesResponse{Live: true, Nodes: []*wire.NodeCache{
		{Host: "", Misses: 1, MissBytes: 10},
		{
			Host: "n1", Kinds: []string{"global", "pilot"}, Pilots: 2, LimitBytes: 2e9, Files: 3, Bytes: 1e9,
			PinnedFiles: 1, PinnedBytes: 5e8,
			Hits: 3, HitBytes: 3e9, Misses: 1, MissBytes: 1e9, HitRatio: 0.75, RemoteHits: 1, RemoteBytes: 1e9,
			PrefetchHits: 1, PrefetchHitBytes: 1e9, PrefetchedFiles: 2, PrefetchedBytes: 2e9, EvictedFiles: 4, EvictedBytes: 4e9,
		},
		{Host: "n2", Kinds: []string{"none"}, Pilots: 1},
	}})
	const want = `NODE         CACHE          USED              FILES  PINNED     HITS       MISSES     RATIO  FROM HOSTS  PREFETCHED        EVICTED
(not known)                                   0      0          0          1, 10 B    0 %    0           0                 0
n1           global, pilot  1.0 GB of 2.0 GB  3      1, 500 MB  3, 3.0 GB  1, 1.0 GB  75 %   1, 1.0 GB   2, 2.0 GB, 1 hit  4, 4.0 GB
n2           none                             0      0          0          0                 0           0                 0
`
	if got := out.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
