package publish

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fairway/internal/catalog"
	"fairway/internal/server/folder"
	"fairway/internal/storage"
	"fairway/internal/store"
	"fairway/internal/taskqueue"
	"fairway/lib/sched"
)

// Pilots of a site store at its place, those of others where the run says, and what was stored at a place is
// found when no site has it any more.
func TestSitesStoreAtTheirPlaces(t *testing.T) {
	workflow, near, far := t.TempDir(), t.TempDir(), t.TempDir()
	state := filepath.Join(workflow, folder.StateFolder)
	if err := os.MkdirAll(state, 0o755); err != nil {
		t.Fatal(err)
	}
	records, err := store.OpenSQLite(filepath.Join(state, folder.StoreFile), store.ReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	defer records.Close()
	layout := folder.Layout{Workflow: workflow, State: state, ID: "aaaaaaaaaaaaaaaa"}
	storing := func(places map[string]string) *Storage {
		f := NewStorage(records, layout, elementsOf(layout.Roots()), nil, nil, sched.Default(), nil)
		if err := f.StoreAt(t.Context(), ""); err != nil {
			t.Fatal(err)
		}
		for _, site := range []string{"near", "far"} {
			if place := places[site]; place != "" {
				if err := f.StoreOf(t.Context(), site, place, nil); err != nil {
					t.Fatal(err)
				}
			}
		}
		return f
	}
	first, second := "file:"+near+"/fairway-aaaaaaaaaaaaaaaa/", "file:"+far+"/fairway-aaaaaaaaaaaaaaaa/"
	f := storing(map[string]string{"near": "file:" + near, "far": "file:" + far})
	for site, want := range map[string]string{"near": first, "far": second, "other": folder.StoragePrefix} {
		got := f.StoresOf(site)
		if got[0] != want || len(got) != 3 || !slices.Contains(got, first) || !slices.Contains(got, second) {
			t.Errorf("%s stores at %q", site, got)
		}
	}
	again := storing(map[string]string{"far": "file:" + near})
	if got := again.StoresOf("far"); got[0] != first || !slices.Contains(got, second) {
		t.Errorf("later it stores at %q", got)
	}
	for place, want := range map[string]string{
		"file:" + state + "/x": "which holds the state", "file:" + state + "/" + folder.StoreFile: "holds the state",
		"file:/proc/version": "is no folder",
	} {
		if err := again.StoreOf(t.Context(), "far", place, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", place, err)
		}
	}
}

// Each result at a site stands under the PFN that the catalogue gives its name, by which other programs open it,
// and moves to another when the catalogue changes.
func TestSitesStoreResultsByTheirNames(t *testing.T) {
	eachPlace(t, func(t *testing.T, place string) {
		s := newState(t, place)
		leads := func(rules string) {
			c, err := catalog.ReadXML(strings.NewReader(strings.ReplaceAll(rules, "PLACE", place)))
			if err != nil {
				t.Fatal(err)
			}
			s.catalog = func(name string) (string, error) { return c.PFN("direct", "/me"+name) }
		}
		leads(`<storage-mapping>
			<lfn-to-pfn protocol="direct" path-match="/me/(.*)\.root" result="PLACE/root/$1"/>
			<lfn-to-pfn protocol="direct" path-match="/me/(other.*)" result="http://elsewhere/$1"/>
			<lfn-to-pfn protocol="direct" path-match="/me/([^/]*)" result="PLACE/text/$1"/></storage-mapping>`)
		e := s.server()
		root, text := s.version("a/b.root", 1, "one"), s.version("c d", 1, "text")
		s.publish(e, root, text)
		opens := func(pfn, want string) {
			t.Helper()
			file, err := e.files.Open(t.Context(), storage.Join(place, escapedFor(place, pfn)))
			if err != nil {
				t.Error(err)
				return
			}
			defer file.Close()
			if got, err := io.ReadAll(file); err != nil || string(got) != want {
				t.Errorf("%s holds %q, %v", pfn, got, err)
			}
		}
		opens("root/a/b", "one")
		opens("text/c d", "text")
		for lfn, want := range map[string]string{"a/b.txt": "no rule matches", "other": "not where `catalog_outputs` leads"} {
			if n, err := e.publishAll(t.Context(), []taskqueue.StoredFile{s.version(lfn, 1, "x")}); n != 0 || err == nil ||
				!strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v", lfn, err)
			}
		}
		if err := e.endTurn(t.Context()); err != nil {
			t.Fatal(err)
		}
		leads(`<storage-mapping><lfn-to-pfn protocol="direct" path-match="/me/(.*)" result="PLACE/new/$1"/></storage-mapping>`)
		e = s.server()
		if !e.stands(t.Context(), &taskqueue.FileView{File: root.File, PFN: root.PFN}) {
			t.Error("it is not known where the result stands")
		}
		s.publish(e, s.version("a/b.root", 2, "two"))
		opens("new/a/b.root", "two")
		opens("text/c d", "text")
		if _, err := e.files.Stat(t.Context(), place+"/root/a/b"); !errors.Is(err, fs.ErrNotExist) {
			t.Error("it stands where the catalogue led before:", err)
		}
		if left, err := e.remove(t.Context(), "c d"); left != "" || err != nil {
			t.Error(left, err)
		}
	})
}

// Runs of a server that lasts may have results of the same names.
func TestSitesStoreEachRunInAFolder(t *testing.T) {
	place := "file:" + t.TempDir()
	s := newState(t, place)
	f := NewStorage(s.records, s.folders, elementsOf(s.folders.Roots()), nil, nil, sched.Default(), nil)
	beneath := func(name string) (string, error) { return place + name, nil }
	f.catalogues = []catalogued{{folder.StoragePrefix, place, beneath}}
	for run, want := range map[taskqueue.RunID]string{0: "/a", 7: "/own-7/a"} {
		r := f.NewResults(s.folders, run, nil, nil)
		if err := r.PublishAtSites(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := r.sitesOf("state:a.v1.a1")[0].name("a"); got != place+want {
			t.Errorf("the result of run %d is to be %s", run, got)
		}
		if len(r.sitesOf("file:/elsewhere/a")) > 0 {
			t.Error("what is stored elsewhere appears there")
		}
	}
}
