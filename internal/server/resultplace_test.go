package server

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fairway/internal/server/api"
	"fairway/internal/server/folder"
	"fairway/internal/server/publish"
	"fairway/internal/storage"
	"fairway/internal/storage/elements"
	"fairway/internal/storage/storagetest"
	"fairway/internal/wire"
	"fairway/lib/sched"
	"fairway/test/files"
)

// Results appear at the place that a person names and nowhere else; what a later run
// does not make goes, is told before by a dry run, and fairway clean removes the rest.
func TestResultsElsewhere(t *testing.T) {
	for name, placeOf := range map[string]func(t *testing.T) string{
		"a folder": func(t *testing.T) string { return t.TempDir() },
		"WebDAV":   func(t *testing.T) string { return "dav://" + storagetest.WebDAV(t) + "/results" },
	} {
		t.Run(name, func(t *testing.T) {
			place, err := publish.ParsePlace(placeOf(t))
			if err != nil {
				t.Fatal(err)
			}
			element := elements.New(storage.Roots{}, sched.Default().Sleep)
			holds := func(lfn, want string) {
				t.Helper()
				body, err := element.Open(t.Context(), place+"/"+lfn)
				if want == "" {
					if !errors.Is(err, fs.ErrNotExist) {
						t.Errorf("%s is there: %v", lfn, err)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				defer body.Close()
				if got, err := io.ReadAll(body); string(got) != want || err != nil {
					t.Errorf("%s holds %q, %v", lfn, got, err)
				}
			}
			root := files.Folder(t, threeTexts)
			run := func(workflow string) *testRun {
				r := newRun(t, root, workflow, twoStepsScript)
				r.config.Results = place
				return r
			}
			run(twoSteps).mustSucceed()
			holds("joined.txt", "ONE TWO THREE ")
			if _, err := os.Lstat(filepath.Join(root, folder.ResultsFolder)); !errors.Is(err, fs.ErrNotExist) {
				t.Error("there is a results folder, too:", err)
			}
			again := run(twoSteps)
			again.mustSucceed()
			if n := again.pilots.total(); n != 0 {
				t.Errorf("%d jobs ran again", n)
			}
			if c, err := api.Connect(context.Background(), root); err != nil {
				t.Error(err)
			} else {
				stream, err := c.Progress(context.Background(), &wire.ProgressRequest{})
				if err != nil || !stream.Receive() || !strings.HasSuffix(place, stream.Msg().GetSummary().GetResults()) {
					t.Errorf("the run says that its results are at %q, %v", stream.Msg().GetSummary().GetResults(), err)
				}
				_ = stream.Close()
				c.Close()
			}
			other := strings.Replace(twoSteps, "writes: joined.txt", "writes: other.txt", 1)
			next := run(other)
			plan, err := DryRun(t.Context(), next.config)
			if err != nil || !slices.Equal(plan.Removes, []string{"joined.txt"}) {
				t.Errorf("%+v, %v", plan, err)
			}
			next.mustSucceed()
			holds("other.txt", "ONE TWO THREE ")
			holds("joined.txt", "")
			cleaned, err := folder.Clean(root, func(l folder.Layout, c *folder.Cleaned) error {
				return publish.Clean(t.Context(), l, c)
			})
			if err != nil || len(cleaned.Left) > 0 {
				t.Errorf("%+v, %v", cleaned, err)
			}
			holds("other.txt", "")
			if left, err := element.List(t.Context(), place); err == nil && len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}
