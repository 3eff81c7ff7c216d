package server

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fairway/internal/server/folder"
	"fairway/internal/server/publish"
	"fairway/internal/wire"
	"fairway/test/files"
)

// storingAt is a run of two steps that stores its outputs at a path.
func storingAt(t *testing.T, root, path string) *testRun {
	t.Helper()
	place, err := publish.ParsePlace(path)
	if err != nil {
		t.Fatal(err)
	}
	r := newRun(t, root, twoSteps, twoStepsScript)
	r.config.Storage = place
	return r
}

func storedFiles(t *testing.T, place string) (found []string) {
	t.Helper()
	err := filepath.WalkDir(place, func(path string, entry os.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			found = append(found, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func cleanAll(t *testing.T) func(folder.Layout, *folder.Cleaned) error {
	return func(l folder.Layout, c *folder.Cleaned) error {
		return errors.Join(publish.Clean(t.Context(), l, c), publish.CleanStores(t.Context(), l, c))
	}
}

// A place for outputs may be reached by several names: what is stored by one is needed by
// whatever other the next run names it.
func TestStoredFilesSurviveAnotherNameOfTheirPlace(t *testing.T) {
	root, at := files.Folder(t, threeTexts), t.TempDir()
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(at, link); err != nil {
		t.Fatal(err)
	}
	storingAt(t, root, link).mustSucceed()
	before := storedFiles(t, at)
	again := storingAt(t, root, at)
	files.Write(t, root+"/in/d.txt", "four")
	again.mustSucceed()
	for _, file := range before {
		if strings.Contains(file, "joined") {
			continue // which was made again
		}
		if _, err := os.Stat(file); err != nil {
			t.Error(err)
		}
	}
	if n := again.pilots.total(); n != 2 {
		t.Errorf("%d jobs ran", n)
	}
}

// A place in the folder of the workflow moves along with it, for results too.
func TestPlacesInTheFolderMoveAlong(t *testing.T) {
	root := filepath.Join(t.TempDir(), "before")
	run := func(root string) *testRun {
		r := storingAt(t, root, filepath.Join(root, "data", "store"))
		r.config.Results = "file:" + filepath.Join(root, "data", "results")
		return r
	}
	if err := os.Rename(files.Folder(t, threeTexts), root); err != nil {
		t.Fatal(err)
	}
	run(root).mustSucceed()
	after := filepath.Join(filepath.Dir(root), "after")
	if err := os.Rename(root, after); err != nil {
		t.Fatal(err)
	}
	same := run(after)
	same.mustSucceed()
	if n := same.pilots.total(); n != 0 {
		t.Errorf("%d jobs ran again", n)
	}
	files.Write(t, after+"/in/a.txt", "other")
	changed := run(after)
	changed.mustSucceed()
	here := storingAt(t, after, filepath.Join(after, "data", "store"))
	here.mustSucceed()
	if got := files.Read(t, after+"/results/joined.txt"); !strings.HasPrefix(got, "OTHER") {
		t.Errorf("%q was published beside the workflow", got)
	}
	if n := changed.pilots.total(); n != 2 {
		t.Errorf("%d jobs ran for one changed input", n)
	}
	if got := files.Read(t, after+"/data/results/joined.txt"); !strings.HasPrefix(got, "OTHER") {
		t.Errorf("%q was published", got)
	}
	cleaned, err := folder.Clean(after, cleanAll(t))
	if err != nil || len(cleaned.Left) > 0 {
		t.Errorf("%+v, %v", cleaned, err)
	}
	if left := storedFiles(t, after+"/data"); len(left) > 0 {
		t.Error("left behind:", left)
	}
}

// Who moves a place together with the workflow's folder is told what to do.
func TestAPlaceThatWasMovedIsNamed(t *testing.T) {
	above := t.TempDir()
	root := filepath.Join(above, "before", "workflow")
	if err := os.MkdirAll(filepath.Dir(root), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(files.Folder(t, threeTexts), root); err != nil {
		t.Fatal(err)
	}
	storingAt(t, root, above+"/before/store").mustSucceed()
	if err := os.Rename(above+"/before", above+"/after"); err != nil {
		t.Fatal(err)
	}
	moved := storingAt(t, above+"/after/workflow", above+"/after/store")
	s, err := Open(t.Context(), moved.config)
	if err == nil {
		s.release()
		t.Fatal("it goes on without what is stored")
	}
	if want := "make " + above + "/before/store a link to " + above + "/after/store"; !strings.Contains(err.Error(),
		want) {
		t.Errorf("%v; want %q", err, want)
	}
}

// A server that refuses what is stored there is no place of the state: neither the next run
// nor clean asks it again.
func TestAPlaceOfNoUseIsForgotten(t *testing.T) {
	root := files.Folder(t, threeTexts)
	wrong := newRun(t, root, twoSteps, twoStepsScript)
	wrong.config.Storage = "dav://127.0.0.1:1/mistyped"
	s, err := Open(t.Context(), wrong.config)
	if err == nil {
		s.release()
		t.Fatal("nothing listens there")
	}
	if !strings.Contains(err.Error(), "nothing can be stored at dav://127.0.0.1:1/mistyped") {
		t.Error(err)
	}
	newRun(t, root, twoSteps, twoStepsScript).mustSucceed()
	cleaned, err := folder.Clean(root, cleanAll(t))
	if err != nil || len(cleaned.Left) > 0 {
		t.Errorf("%+v, %v", cleaned, err)
	}
}

// Where nothing can be published, no job has to compute before that is told.
func TestAPlaceOfResultsIsTriedFirst(t *testing.T) {
	wrong := newRun(t, files.Folder(t, threeTexts), twoSteps, twoStepsScript)
	wrong.config.Results = "dav://127.0.0.1:1/mistyped"
	s, err := Open(t.Context(), wrong.config)
	if err == nil {
		s.release()
		t.Fatal("nothing listens there")
	}
	if !strings.Contains(err.Error(), "--results: nothing can be published at dav://127.0.0.1:1/mistyped") {
		t.Error(err)
	}
}

// That a stored file is lost is told beside that an input has changed, by a dry run and by
// the run itself.
func TestALossBesideAChangeIsTold(t *testing.T) {
	root, at := files.Folder(t, threeTexts), t.TempDir()
	storingAt(t, root, at).mustSucceed()
	for _, file := range storedFiles(t, at) {
		if strings.Contains(file, "b.txt") {
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
		}
	}
	files.Write(t, root+"/in/a.txt", "other")
	again := storingAt(t, root, at)
	plan, err := DryRun(t.Context(), again.config)
	if err != nil {
		t.Fatal(err)
	}
	why := map[string]string{}
	for _, job := range plan.Jobs {
		if job.Runs {
			why[job.Name] = job.Why
		}
	}
	if len(why) != 3 || why["upper/b"] != fileLost || !strings.Contains(why["upper/a"], "changed") {
		t.Errorf("it would run %v", why)
	}
	outcome := again.mustSucceed()
	if n := again.pilots.total(); n != len(why) {
		t.Errorf("%d jobs ran, and %d would", n, len(why))
	}
	if !slices.ContainsFunc(outcome.Notes, func(note string) bool {
		return strings.Contains(note, "lost, and made again by job upper/b when it is needed: upper/b.txt")
	}) {
		t.Errorf("%q", outcome.Notes)
	}
}

// What is copied for publication is compared with its checksum, although no job reads it: a
// stored file that was damaged is made again, by the next run if jobs are done, and the
// person is told.
func TestADamagedResultIsMadeAgain(t *testing.T) {
	root, at := files.Folder(t, threeTexts), t.TempDir()
	r := storingAt(t, root, at)
	r.config.Results = "file:" + t.TempDir()
	damaged := false
	r.pilots.stored = func(a *wire.Assignment, pfn string) {
		if a.GetName() != "join" || damaged {
			return
		}
		damaged = true
		path := strings.TrimPrefix(pfn, "file:")
		if err := errors.Join(os.Chmod(path, 0o600), os.WriteFile(path, []byte("one TWO THREE "), 0o600)); err != nil {
			t.Error(err)
		}
	}
	outcome := r.run()
	if outcome.Succeeded || len(outcome.Problems) != 1 || !strings.Contains(outcome.Problems[0],
		"joined.txt is not published: "+at) || !strings.Contains(outcome.Problems[0], "has the checksum") {
		t.Errorf("%+v", outcome)
	}
	result := strings.TrimPrefix(r.config.Results, "file:") + "/joined.txt"
	if _, err := os.Stat(result); !errors.Is(err, fs.ErrNotExist) {
		t.Error("what is damaged is published:", err)
	}
	again := storingAt(t, root, at)
	again.config.Results = r.config.Results
	again.mustSucceed()
	if got := files.Read(t, result); got != "ONE TWO THREE " {
		t.Errorf("%q was published", got)
	}
	if n := again.pilots.total(); n != 1 {
		t.Errorf("%d jobs ran again", n)
	}
}
