package pilot

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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
	opened := func(open, lfn, stored string, size int64, command, want string) {
		a := shell(`pfn=$(sed -n 's/.*result="\([^"]*\)".*/\1/p' "$FAIRWAY_CATALOG" | head -1)
			[ "${pfn#file:}" != "$pfn" ] && [ "${pfn#file:}" -ef "`+lfn+`" ] && `+command, reads(lfn, 1, size, stored))
		if r := q.run("p1", a); r.GetOutcome() != wire.Outcome_OUTCOME_SUCCEEDED {
			t.Errorf("%s fails: %s", open, contents(t, q.log(a, "err")))
		} else if got := contents(t, q.log(a, "out")); got != want {
			t.Errorf("%s reads %q of %s", open, got, lfn)
		}
	}
	for open, command := range map[string]string{
		"a path": `cat "${pfn#file:}"`,
		"curl":   `curl -fsS "$pfn"`,
		"Python": `python3 -c "import sys, urllib.request; print(end=urllib.request.urlopen(sys.argv[1]).read().decode())" "$pfn"`,
	} {
		opened(open, "store/é/x+1.root", writeFile(t, "text"), 4, command, "text")
	}
	python := os.Getenv("FAIRWAY_TEST_ROOT")
	if python == "" {
		return // `make test-root` installs ROOT and uproot
	}
	tree := filepath.Join(t.TempDir(), "tree.root")
	made := exec.CommandContext(t.Context(), python, "-c",
		"import sys, uproot; uproot.recreate(sys.argv[1]).mktree('t', {'x': 'int32'}).extend({'x': [1, 2, 3]})", tree)
	if out, err := made.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	info, err := os.Stat(tree)
	if err != nil {
		t.Fatal(err)
	}
	for _, lfn := range []string{"store/é/x+1.root", "store/a b.root", "store/a%2Fb.root", "store/a:b.root", "1,2.root"} {
		for open, code := range map[string]string{
			"ROOT":   "f = ROOT.TFile.Open(sys.argv[1]); n = f.Get('t').GetEntries()",
			"uproot": "n = uproot.open(sys.argv[1])['t'].num_entries",
		} {
			command := fmt.Sprintf(`%s -W ignore -c "import sys, %s; %s; print(n, end='')" "$pfn"`, python, open, code)
			opened(open, lfn, tree, info.Size(), command, "3")
		}
	}
}

// The files that variables name are the command's own, also where it has none to be told of: with /dev/null a job
// of root that puts another file in the place of one would break the machine.
func TestCommandsAreGivenFilesOfTheirOwn(t *testing.T) {
	q := newTaskQueue(t)
	q.start(q.config("p1"))
	replaced := shell(`for f in "$FAIRWAY_REPORT" "$FAIRWAY_INPUTS_FILE" "$FAIRWAY_OUTPUTS_FILE"; do
		[ -f "$f" ] && [ ! -s "$f" ] || exit 3
		echo "records no 1" > new; mv new "$f"
	done`)
	expect(t, q.run("p1", replaced), wire.Outcome_OUTCOME_SUCCEEDED, "")
	expect(t, q.run("p1", shell(`cat "$FAIRWAY_REPORT" "$FAIRWAY_INPUTS_FILE" "$FAIRWAY_OUTPUTS_FILE" | wc -c | grep -qx 0`)),
		wire.Outcome_OUTCOME_SUCCEEDED, "")
	expect(t, q.run("p1", shell(`cat "$FAIRWAY_REPORT"; echo x > out; echo "records out 1" >> "$FAIRWAY_REPORT"`,
		writes("out"))), wire.Outcome_OUTCOME_SUCCEEDED, "")
}
