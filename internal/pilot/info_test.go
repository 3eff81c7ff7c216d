package pilot

import (
	"strings"
	"testing"

	"fairway/internal/catalog"
	"fairway/internal/wire"
)

// A program that looks its input up in the catalogue reads the cached file, and
// where there is no cache the stored one.
func TestCatalogOfACommand(t *testing.T) {
	for _, mode := range []CacheMode{CacheHost, CacheNone} {
		t.Run(string(mode), func(t *testing.T) {
			q := newTaskQueue(t)
			cfg := q.config("p1")
			if mode != CacheNone {
				cfg.Cache = CacheConfig{Mode: mode, Dir: q.folder + "/cache"}
			}
			q.start(cfg)
			stored := writeFile(t, "text")
			a := shell(`cat "$FAIRWAY_CATALOG"`, reads("store/x y.root", 1, 4, stored))
			expect(t, q.run("p1", a), wire.Outcome_OUTCOME_SUCCEEDED, "")
			c, err := catalog.ReadXML(strings.NewReader(contents(t, q.log(a, "out"))))
			if err != nil {
				t.Fatal(err)
			}
			pfn, err := c.PFN(catalog.Protocol, "/store/x y.root")
			if err != nil || contents(t, pfn) != "text" {
				t.Error(pfn, err)
			}
			if cached := strings.HasPrefix(pfn, "file:"+q.folder+"/cache/"); cached != (mode == CacheHost) {
				t.Error("not the file that comes first:", pfn)
			}
		})
	}
}
