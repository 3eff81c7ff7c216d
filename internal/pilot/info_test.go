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
			if err != nil || !strings.HasSuffix(pfn, "/store/x y.root") && pfn != stored {
				t.Error(pfn, err)
			}
			if cached := strings.HasPrefix(pfn, "file:"); cached != (mode == CacheHost) || !cached && pfn != stored {
				t.Error("not the file that comes first:", pfn)
			}
		})
	}
}

// What the catalogue says of a cached file is opened as a URL and as a path by programs that know nothing of
// how caches name files.
func TestProgramsOpenWhatTheCatalogueSays(t *testing.T) {
	q := newTaskQueue(t)
	cfg := q.config("p1")
	cfg.Cache = CacheConfig{Mode: CacheHost, Dir: q.folder + "/cache"}
	q.start(cfg)
	stored := writeFile(t, "text")
	for open, command := range map[string]string{
		"a path": `cat "${pfn#file:}"`,
		"curl":   `curl -fsS "$pfn"`,
		"Python": `python3 -c "import sys, urllib.request; print(end=urllib.request.urlopen(sys.argv[1]).read().decode())" "$pfn"`,
	} {
		a := shell(`pfn=$(sed -n 's/.*result="\([^"]*\)".*/\1/p' "$FAIRWAY_CATALOG" | head -1)
			[ "${pfn#file:}" != "$pfn" ] && [ "${pfn#file:}" -ef store/é/x+1.root ] && `+command, reads("store/é/x+1.root", 1, 4, stored))
		expect(t, q.run("p1", a), wire.Outcome_OUTCOME_SUCCEEDED, "")
		if got := contents(t, q.log(a, "out")); got != "text" {
			t.Errorf("%s reads %q", open, got)
		}
	}
}
