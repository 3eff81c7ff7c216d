package publish

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fairway/internal/server/folder"
	"fairway/internal/store"
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
	storage := func(places map[string]string) *Storage {
		f := NewStorage(records, layout, elementsOf(layout.Roots()), nil, nil, sched.Default(), nil)
		if err := f.StoreAt(t.Context(), ""); err != nil {
			t.Fatal(err)
		}
		for _, site := range []string{"near", "far"} {
			if place := places[site]; place != "" {
				if err := f.StoreOf(t.Context(), site, place); err != nil {
					t.Fatal(err)
				}
			}
		}
		return f
	}
	first, second := "file:"+near+"/fairway-aaaaaaaaaaaaaaaa/", "file:"+far+"/fairway-aaaaaaaaaaaaaaaa/"
	f := storage(map[string]string{"near": "file:" + near, "far": "file:" + far})
	for site, want := range map[string]string{"near": first, "far": second, "other": folder.StoragePrefix} {
		got := f.StoresOf(site)
		if got[0] != want || len(got) != 3 || !slices.Contains(got, first) || !slices.Contains(got, second) {
			t.Errorf("%s stores at %q", site, got)
		}
	}
	again := storage(map[string]string{"far": "file:" + near})
	if got := again.StoresOf("far"); got[0] != first || !slices.Contains(got, second) {
		t.Errorf("later it stores at %q", got)
	}
	for place, want := range map[string]string{
		"file:" + state + "/x": "which holds the state", "file:" + state + "/" + folder.StoreFile: "holds the state",
		"file:/proc/version": "is no folder",
	} {
		if err := again.StoreOf(t.Context(), "far", place); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", place, err)
		}
	}
}
