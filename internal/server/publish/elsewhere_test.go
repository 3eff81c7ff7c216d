package publish

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"fairway/internal/fault"
	"fairway/internal/server/folder"
	"fairway/internal/storage"
	"fairway/internal/storage/elements"
	"fairway/internal/storage/storagetest"
	"fairway/internal/store"
	"fairway/internal/taskqueue"
	"fairway/lib/sched"
)

var places atomic.Int64

// eachPlace runs a test on an element of each kind, on real servers.
func eachPlace(t *testing.T, test func(t *testing.T, place string)) {
	t.Run("folder", func(t *testing.T) { test(t, "file:"+t.TempDir()) })
	t.Run("WebDAV", func(t *testing.T) { test(t, "dav://"+storagetest.WebDAV(t)+"/results") })
	t.Run("XRootD", func(t *testing.T) {
		address, _, _ := storagetest.XRootD(t)
		test(t, "root://"+address+"//store/results")
	})
	t.Run("S3", func(t *testing.T) {
		address, buckets := storagetest.S3(t)
		if err := os.Mkdir(buckets+"/bucket", 0o777); err != nil {
			t.Fatal(err)
		}
		for name, value := range map[string]string{
			"AWS_ENDPOINT_URL_S3":   "http://" + address,
			"AWS_REGION":            "us-east-1",
			"AWS_ACCESS_KEY_ID":     storagetest.AccessKey,
			"AWS_SECRET_ACCESS_KEY": storagetest.SecretKey,
		} {
			t.Setenv(name, value)
		}
		test(t, fmt.Sprintf("s3://bucket/%d", places.Add(1)))
	})
}

// stateAt is a state that publishes at a place, with its records.
type stateAt struct {
	t       *testing.T
	place   string
	folders folder.Layout
	records store.Store
	catalog func(name string) (string, error) // by which results have their names there
}

func newState(t *testing.T, place string) *stateAt {
	t.Helper()
	root := t.TempDir()
	at := filepath.Join(root, folder.StateFolder)
	folders := folder.Layout{Workflow: root, State: at, ID: "own", Storage: filepath.Join(at, "storage", "own")}
	if err := os.MkdirAll(folders.Storage, 0o755); err != nil {
		t.Fatal(err)
	}
	records, err := store.OpenSQLite(filepath.Join(at, folder.StoreFile), store.ReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = records.Close() })
	return &stateAt{t: t, place: place, folders: folders, records: records}
}

// server begins to publish, as a server that was started now.
func (s *stateAt) server() *destination {
	s.t.Helper()
	element := elements.New(s.folders.Roots(), sched.Default().Sleep)
	f := NewStorage(s.records, s.folders, element, nil, nil, sched.Default(), nil).NewResults(s.folders, 0, nil, nil)
	if s.catalog != nil {
		f.catalogues = []catalogued{{folder.StoragePrefix, s.place, s.catalog}}
		if err := f.PublishAtSites(context.Background()); err != nil {
			s.t.Fatal(err)
		}
		return f.sites[0]
	}
	if err := f.PublishAt(context.Background(), s.place); err != nil {
		s.t.Fatal(err)
	}
	return f.elsewhere
}

func (s *stateAt) version(lfn string, version taskqueue.Version, text string) taskqueue.StoredFile {
	s.t.Helper()
	return publication(s.t, &published{folders: s.folders}, lfn, version, text)
}

func (s *stateAt) publish(d *destination, batch ...taskqueue.StoredFile) {
	s.t.Helper()
	if n, err := d.publishAll(s.t.Context(), batch); n != len(batch) || err != nil {
		s.t.Fatalf("%d published, %v", n, err)
	}
}

func (s *stateAt) holds(d *destination, lfn, want string) {
	s.t.Helper()
	body, err := d.files.Open(s.t.Context(), d.name(lfn))
	if err != nil {
		s.t.Errorf("%s: %v", lfn, err)
		return
	}
	defer body.Close()
	if got, err := io.ReadAll(body); string(got) != want || err != nil {
		s.t.Errorf("%s holds %q and not %q, %v", lfn, got, want, err)
	}
}

// visible are the names at the place that do not begin with a dot.
func (s *stateAt) visible(d *destination) (names []string) {
	s.t.Helper()
	entries, err := d.files.List(s.t.Context(), s.place)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.t.Fatal(err)
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name, ".") {
			names = append(names, e.Name)
		}
	}
	return names
}

// Versions come one after the other under a plain name, also by servers that follow
// each other; what was published is not sent again.
func TestVersionsFollowEachOtherElsewhere(t *testing.T) {
	eachPlace(t, func(t *testing.T, place string) {
		s := newState(t, place)
		first := s.server()
		v1, v2 := s.version("a/b", 1, "one"), s.version("a/b", 2, "two")
		s.publish(first, v1, s.version("c d", 1, "odd"))
		s.holds(first, "a/b", "one")
		s.publish(first, v2, v2)
		if err := first.endTurn(t.Context()); err != nil {
			t.Fatal(err)
		}
		second := s.server()
		s.holds(second, "a/b", "two")
		s.holds(second, "c d", "odd")
		if !second.stands(t.Context(), &taskqueue.FileView{File: v2.File, PFN: v2.PFN}) ||
			second.stands(t.Context(), &taskqueue.FileView{File: v1.File, PFN: v1.PFN}) {
			t.Error("the second server does not know what stands there")
		}
		s.publish(second, s.version("a/b", 3, "three"))
		s.holds(second, "a/b", "three")
		if err := second.endTurn(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := s.visible(second); len(got) != 2 {
			t.Error(got)
		}
		for _, lfn := range []string{"a/b", "c d"} {
			if left, err := second.remove(t.Context(), lfn); left != "" || err != nil {
				t.Error(left, err)
			}
		}
		if _, err := second.files.Stat(t.Context(), second.name("a/b")); !errors.Is(err, fs.ErrNotExist) {
			t.Error("it was removed:", err)
		}
	})
}

// A server that was frozen in the middle of a publication, and wakes up after another
// took over, cannot undo what was published since: neither right before the step that
// counts, nor when it begins once more, nor with a name that it comes to only then.
func TestFrozenPublisherUndoesNothing(t *testing.T) {
	eachPlace(t, func(t *testing.T, place string) {
		s := newState(t, place)
		frozen := s.server()
		s.publish(frozen, s.version("x", 1, "one"))
		late, new := s.version("x", 2, "late"), s.version("y", 1, "late")
		held := &holding{frozen.shelf, make(chan struct{}), make(chan struct{})}
		frozen.shelf = held.wrap()
		ended := make(chan error, 1)
		go func() {
			_, err := frozen.publishAll(t.Context(), []taskqueue.StoredFile{late})
			ended <- err
		}()
		<-held.reached
		next := s.server()
		s.publish(next, s.version("x", 3, "three"), s.version("x", 4, "four"), s.version("y", 2, "yes"))
		close(held.release)
		if err := <-ended; err == nil {
			t.Error("the frozen server published")
		}
		for _, again := range []taskqueue.StoredFile{late, new} {
			if n, err := frozen.publishAll(t.Context(), []taskqueue.StoredFile{again}); n != 0 || !errors.Is(err, ErrTakenOver) {
				t.Errorf("it published %s when it began once more: %v", again.File.LFN, err)
			}
		}
		s.holds(next, "x", "four")
		s.holds(next, "y", "yes")
		s.publish(next, s.version("x", 5, "five"))
		s.holds(next, "x", "five")
	})
}

// holding keeps a publication right before the step that counts.
type holding struct {
	storage.Element
	reached, release chan struct{}
}

func (h *holding) wait() {
	select {
	case <-h.release:
	default:
		close(h.reached)
		<-h.release
	}
}

func (h *holding) wrap() storage.Element {
	if renamer, ok := h.Element.(storage.Renamer); ok {
		return heldRenamer{h, renamer}
	}
	return heldConditional{h, h.Element.(storage.Conditional)}
}

type heldRenamer struct {
	*holding
	storage.Renamer
}

func (h heldRenamer) Rename(ctx context.Context, from, to string) error {
	h.wait()
	return h.Renamer.Rename(ctx, from, to)
}

type heldConditional struct {
	*holding
	storage.Conditional
}

func (h heldConditional) Replace(
	ctx context.Context, path, pfn, mark string, labels map[string]string,
) (string, error) {
	h.wait()
	return h.Conditional.Replace(ctx, path, pfn, mark, labels)
}

// What people have put under the name of a result, or written over it, stays; the
// same contents stand for the result, and stay too.
func TestForeignFilesElsewhereStay(t *testing.T) {
	eachPlace(t, func(t *testing.T, place string) {
		s := newState(t, place)
		d := s.server()
		for lfn, text := range map[string]string{"foreign": "mine", "same": "equal"} {
			if err := d.files.Put(t.Context(), storagetest.Local(t, text), d.name(lfn)); err != nil {
				t.Fatal(err)
			}
		}
		s.publish(d, s.version("same", 1, "equal"), s.version("changed", 1, "before"))
		if n, err := d.publishAll(t.Context(), []taskqueue.StoredFile{s.version("foreign", 1, "results")}); n != 0 ||
			err == nil || !strings.Contains(err.Error(), "move it away") {
			t.Errorf("%d, %v", n, err)
		}
		if err := d.files.Remove(t.Context(), d.name("changed")); err != nil {
			t.Fatal(err)
		}
		if err := d.files.Put(t.Context(), storagetest.Local(t, "by hand"), d.name("changed")); err != nil {
			t.Fatal(err)
		}
		if n, err := d.publishAll(t.Context(), []taskqueue.StoredFile{s.version("changed", 2, "after")}); n != 0 ||
			err == nil {
			t.Errorf("%d, %v", n, err)
		}
		if left, err := d.remove(t.Context(), "changed"); left == "" || err != nil {
			t.Errorf("removed: %q, %v", left, err)
		}
		if n, err := d.publishAll(t.Context(), []taskqueue.StoredFile{s.version("same", 2, "other")}); n != 0 ||
			!errors.Is(err, errForeign) {
			t.Errorf("%d, %v", n, err)
		}
		if left, err := d.remove(t.Context(), "same"); left == "" || err != nil {
			t.Errorf("removed: %q, %v", left, err)
		}
		for lfn, want := range map[string]string{"foreign": "mine", "same": "equal", "changed": "by hand"} {
			s.holds(d, lfn, want)
		}
	})
}

// A server that was killed between the step that counts and its record, or before
// that step, is followed by one that knows what it finds.
func TestKilledPublisherElsewhereIsGoneOnWith(t *testing.T) {
	eachPlace(t, func(t *testing.T, place string) {
		s := newState(t, place)
		d := s.server()
		s.publish(d, s.version("x", 1, "one"))
		for i, point := range []string{"before", "after"} {
			killed := s.server()
			v := s.version("x", taskqueue.Version(i+2), point)
			if point == "before" {
				disarm, err := fault.Arm("publish.elsewhere.before:error")
				if err != nil {
					t.Fatal(err)
				}
				_, failed := killed.publishAll(t.Context(), []taskqueue.StoredFile{v})
				disarm()
				if !errors.Is(failed, fault.ErrInjected) {
					t.Fatal(failed)
				}
			} else {
				keep, records := killed.persist, 0
				killed.persist = func(ctx context.Context, r ...taskqueue.Record) error {
					if r[0].Table == elsewhereTable {
						if records++; records == 2 {
							return errors.New("killed")
						}
					}
					return keep(ctx, r...)
				}
				if _, err := killed.publishAll(t.Context(), []taskqueue.StoredFile{v}); err == nil {
					t.Fatal("it went on")
				}
			}
			next := s.server()
			s.publish(next, v)
			s.holds(next, "x", point)
			s.publish(next, s.version("x", taskqueue.Version(i+10), "further"))
			s.holds(next, "x", "further")
		}
	})
}

// What keeps a server that was killed from publishing stays for as long as the state, and
// goes with it.
func TestFencesGoWithTheState(t *testing.T) {
	eachPlace(t, func(t *testing.T, place string) {
		s := newState(t, place)
		s.publish(s.server(), s.version("x", 1, "one")) // and is killed
		next := s.server()
		s.publish(next, s.version("x", 2, "two"))
		if err := next.endTurn(t.Context()); err != nil {
			t.Fatal(err)
		}
		work := next.under(next.workName())
		_, renames := next.shelf.(storage.Renamer)
		if fences, err := next.files.List(t.Context(), work); renames && (err != nil || len(fences) != 1) {
			t.Errorf("what keeps the killed server from publishing is %v, %v", fences, err)
		}
		if err := s.records.Close(); err != nil {
			t.Fatal(err)
		}
		other := s.folders
		other.ID = "other"
		for _, of := range []struct {
			folder.Layout
			goes bool
		}{{other, false}, {s.folders, renames}} {
			c := new(folder.Cleaned)
			if err := CleanFences(t.Context(), of.Layout, c); err != nil || len(c.Left) > 0 || (len(c.Removed) > 0) != of.goes {
				t.Errorf("%s: %+v, %v", of.ID, c, err)
			}
		}
		if left, err := next.files.List(t.Context(), work); len(left) > 0 || err == nil && renames {
			t.Errorf("left are %v, %v", left, err)
		}
		s.holds(next, "x", "two")
	})
}

// Files of a server that lets none be removed are told in one line, however many there are.
func TestManyFilesThatStayAreOneError(t *testing.T) {
	proxy := storagetest.Before(t, storagetest.WebDAV(t))
	element, at := elementsOf(storage.Roots{}), "dav://"+proxy.Address+"/d"
	for _, name := range []string{"a", "b", "sub/c", "sub/d", "sub/deep/e"} {
		if err := element.Put(t.Context(), storagetest.Local(t, "text"), at+"/"+name); err != nil {
			t.Fatal(err)
		}
	}
	proxy.Do(-1, func(w http.ResponseWriter, r *http.Request, pass http.Handler) {
		if r.Method == http.MethodDelete {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		pass.ServeHTTP(w, r)
	})
	_, err := clearStore(t.Context(), element, at, func(string) bool { return true })
	if err == nil || !strings.HasSuffix(err.Error(), "the server answered 405 Method Not Allowed, and 4 more") ||
		strings.Count(err.Error(), " 405 ") != 1 {
		t.Error(err)
	}
}

func TestPlacesThatPeopleMean(t *testing.T) {
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", "/home/me")
	for text, want := range map[string]string{
		"~/x": "file:/home/me/x", "~": "file:/home/me", "./~": "file:" + here + "/~", "a~": "file:" + here + "/a~",
		"~you/x":    "",
		"s3://b/p/": "s3://b/p", "out": "file:" + here + "/out", "/a/b": "file:/a/b",
		"davs://h/x?y": "", "https://u:secret@h/x": "", "srm://h/x": "", "file:/x": "",
	} {
		got, err := ParsePlace(text)
		if got != want || (err == nil) != (want != "") || err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %q, %v", text, got, err)
		}
	}
}
