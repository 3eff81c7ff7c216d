package server

import (
	"errors"
	"io/fs"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fairway/internal/pilot"
	"fairway/internal/server/publish"
	"fairway/internal/storage"
	"fairway/internal/storage/elements"
	"fairway/internal/storage/storagetest"
	"fairway/lib/sched"
	"fairway/test/files"
)

// storedIn are the names of all files beneath a PFN that jobs wrote: they begin with no dot.
func storedIn(t *testing.T, e storage.Element, pfn string) (names []string) {
	t.Helper()
	entries, err := e.List(t.Context(), pfn)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if entry.Folder {
			names = append(names, storedIn(t, e, pfn+"/"+entry.Name)...)
		} else if !strings.HasPrefix(entry.Name, ".") {
			names = append(names, entry.Name)
		}
	}
	return names
}

// Pilots that share nothing with their server store what jobs write at the place that a
// person has named: by themselves where they reach it, and through their server where they
// do not. Nothing of it is stored in the folder of the state.
func TestFarPilotsStoreElsewhere(t *testing.T) {
	namespace, address := namespace(t)
	server := "dav://" + storagetest.WebDAV(t)
	unseen := t.TempDir()
	for name, one := range map[string]struct {
		place  string
		listen string
		pilots func(root, place string) Site
		ofSite bool // their site has it, and the run does not
	}{
		"a server that they reach": {
			server + "/near", "127.0.0.1:0",
			func(_, place string) Site { return apartPilots(t.TempDir(), place, 2, pilot.CacheHost, nil) }, false,
		},
		"the place of their site": {
			server + "/site", "127.0.0.1:0",
			func(string, string) Site { return apartPilots(t.TempDir(), "", 2, pilot.CacheHost, nil) }, true,
		},
		"a server that only their server reaches": {
			server + "/far", net.JoinHostPort(address, "0"),
			func(root, place string) Site { return apart(t, namespace, root, place) }, false,
		},
		"a folder that only their server sees": {
			unseen, net.JoinHostPort(address, "0"),
			func(_, place string) Site { return apart(t, namespace, unseen, place) }, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRun(t, files.Folder(t, threeTexts), strings.NewReplacer("tr a-z A-Z", "tr a-z A-Z < $in > $out", "cat $in",
				"cat $in > $out").Replace(twoSteps), nil)
			place, err := publish.ParsePlace(one.place)
			if err != nil {
				t.Fatal(err)
			}
			r.config.System, r.config.Listen, r.config.Storage = nil, one.listen, place
			r.config.Sites = []Site{one.pilots(r.folder, place)}
			if one.ofSite {
				r.config.Storage, r.config.Sites[0].Outputs = "", place
			}
			r.mustSucceed()
			if got := r.result("joined.txt"); got != "ONE TWO THREE " {
				t.Errorf("got %q", got)
			}
			e := elements.New(storage.Roots{}, sched.Default().Sleep)
			there := storedIn(t, e, place)
			if len(there) != 4 {
				t.Errorf("stored are %q", there)
			}
			if here, err := filepath.Glob(r.folder + "/.fairway/storage/*/[^.]*"); err != nil || len(here) > 0 {
				t.Errorf("in the state there are %q, %v", here, err)
			}
			r.mustSucceed()
			if again := storedIn(t, e, place); !slices.Equal(again, there) { // names bear attempts
				t.Errorf("another run had something to do: stored were %q and are %q", there, again)
			}
		})
	}
}
