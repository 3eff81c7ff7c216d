package stage

import (
	"hash/adler32"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fairway/internal/catalog"
	"fairway/internal/logical"
	"fairway/internal/storage"
	"fairway/internal/storage/elements"
	"fairway/internal/wire"
)

// A catalogue of the site leads to the file of an input that the site has. What it does not lead to, or
// not to a file of that size, and what a job made, is read from where the run has it.
func TestTheCatalogueOfTheSiteLeadsToItsFiles(t *testing.T) {
	home, there := t.TempDir(), t.TempDir()
	rules, err := catalog.ReadXML(strings.NewReader(`<storage-mapping>
		<lfn-to-pfn protocol="direct" path-match="/store/(.*)" result="` + there + `/$1"/>
	</storage-mapping>`))
	if err != nil {
		t.Fatal(err)
	}
	past := time.Now().Add(-time.Hour)
	for _, c := range []struct {
		name, lfn, replica, want string
		version                  uint32
		cached, known            bool
	}{
		{"replica", "store/a", "HERE", "HERE", 0, false, false},
		{"replica through a cache", "store/a", "HERE", "HERE", 0, true, false},
		{"another size", "store/b", "HERE, but longer", "home", 0, false, false},
		{"missing", "store/c", "", "home", 0, false, false},
		{"no rule", "raw/d", "HERE", "home", 0, false, false},
		{"other bytes", "store/f", "HERE", "home", 0, false, true},
		{"other bytes through a cache", "store/f", "HERE", "home", 0, true, true},
		{"made by a job", "store/e", "HERE", "home", 1, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			ar := linkingArea(t)
			if c.cached {
				ar = sharingArea(t)
				ar.Sharing = nil
			}
			ar.Catalog = &SiteCatalog{rules, "direct"}
			ar.Roots.Site = true
			ar.Storage = elements.New(ar.Roots, ar.Sched.Sleep)
			path := filepath.Join(home, filepath.Base(c.lfn))
			writeText(t, path, "home")
			if c.replica != "" {
				replica := filepath.Join(there, filepath.Base(c.lfn))
				writeText(t, replica, c.replica)
				if err := os.Chtimes(replica, past, past); err != nil {
					t.Fatal(err)
				}
			}
			tag := storage.TagOf("file:"+path, storage.InfoOf(infoOf(t, path)))
			sum := uint32(0)
			if c.version > 0 {
				tag, sum = 1<<32+7, adler32.Checksum([]byte("home"))
			}
			var contents []byte
			if c.known {
				of, err := storage.ContentsOf(t.Context(), path, 4)
				if err != nil {
					t.Fatal(err)
				}
				k := logical.Known(c.lfn, of)
				contents = k[:]
			}
			a := &Execution{
				Ctx: t.Context(), Result: &wire.Result{Usage: &wire.Usage{}}, Slot: &Slot{Folder: t.TempDir()},
				Assignment: &wire.Assignment{},
			}
			in := NewInputs(ar, a)
			if err := in.add(newInput(&wire.InputFile{
				File: &wire.FileRef{Lfn: c.lfn, Version: c.version, Tag: tag}, Pfn: "file:" + path, Size: 4, Adler32: sum,
				Known: contents,
			})); err != nil {
				t.Fatal(err)
			}
			if got, err := os.ReadFile(filepath.Join(a.Slot.Folder, c.lfn)); string(got) != c.want {
				t.Errorf("it read %q, %v", got, err)
			}
		})
	}
}

// Nobody else's names lead to paths of a node.
func TestOnlyACatalogueLeadsToPathsOfASite(t *testing.T) {
	if path, err := (storage.Roots{}).Path("site:/etc/passwd"); err == nil {
		t.Errorf("it leads to %s", path)
	}
	if path, err := (storage.Roots{Site: true}).Path("site:/a/b"); path != "/a/b" || err != nil {
		t.Errorf("%s, %v", path, err)
	}
}

// A catalogue leads to URLs too, and to nothing for what it does not name. A pilot without a cache reads
// what it leads to.
func TestWhereACatalogueLeads(t *testing.T) {
	there := t.TempDir()
	rules, err := catalog.ReadXML(strings.NewReader(`<storage-mapping>
		<lfn-to-pfn protocol="direct" path-match="/web/(.*)" result="https://se/$1"/>
		<lfn-to-pfn protocol="direct" path-match="/store/(.*)" result="` + there + `/$1"/>
	</storage-mapping>`))
	if err != nil {
		t.Fatal(err)
	}
	c := &SiteCatalog{rules, "direct"}
	for lfn, want := range map[string]string{
		"web/a": "https://se/a", "/web/a": "https://se/a", "store/a": "site:" + there + "/a", "raw/a": "",
	} {
		if pfn, ok := c.pfn(lfn); pfn != want || ok != (want != "") {
			t.Errorf("%s: %s, %v", lfn, pfn, ok)
		}
	}
	ar := linkingArea(t)
	ar.Catalog, ar.Cache, ar.Roots.Site = c, nil, true
	ar.Storage = elements.New(ar.Roots, ar.Sched.Sleep)
	writeText(t, filepath.Join(there, "a"), "text")
	i := newInput(&wire.InputFile{File: &wire.FileRef{Lfn: "store/a", Tag: 1}, Pfn: "file:/nowhere", Size: 4})
	if ar.atSite(t.Context(), i); i.pfn != "site:"+there+"/a" || i.home != "file:/nowhere" {
		t.Errorf("it is read from %s", i.pfn)
	}
}
