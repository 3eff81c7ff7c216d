package pilot

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"fairway/internal/catalog"
	"fairway/internal/storage"
	"fairway/internal/storage/web"
	"fairway/internal/wire"
	"fairway/test/files"
)

// webFiles is a web server with files in memory. POST replaces one; a path that begins with
// /broken answers 503 from its second request on.
type webFiles struct {
	*httptest.Server
	mu      sync.Mutex
	texts   map[string]string
	changed map[string]time.Time
	asked   map[string]int // GET and HEAD, by path
}

func newWebFiles(t *testing.T, texts map[string]string) *webFiles {
	w := &webFiles{texts: texts, changed: map[string]time.Time{}, asked: map[string]int{}}
	w.Server = httptest.NewServer(w)
	t.Cleanup(w.Close)
	return w
}

func (w *webFiles) ServeHTTP(answer http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	text, there := w.texts[r.URL.Path]
	changed := w.changed[r.URL.Path]
	if changed.IsZero() {
		changed = time.Unix(1_700_000_000, 0)
	}
	if r.Method == http.MethodPost {
		w.texts[r.URL.Path], w.changed[r.URL.Path] = "other", changed.Add(time.Hour)
	}
	w.asked[r.URL.Path]++
	broken := strings.HasPrefix(r.URL.Path, "/broken") && w.asked[r.URL.Path] > 1
	w.mu.Unlock()
	switch {
	case r.Method == http.MethodPost:
	case broken:
		answer.WriteHeader(http.StatusForbidden)
	case !there:
		answer.WriteHeader(http.StatusNotFound)
	default:
		http.ServeContent(answer, r, r.URL.Path, changed, strings.NewReader(text))
	}
}

// streamed has an attempt stream a file, which is in its variable in and in one of its own.
func streamed(t *testing.T, lfn, pfn string) func(*wire.Assignment) {
	t.Helper()
	return func(a *wire.Assignment) {
		if storage.IsLocal(pfn) {
			tagged(t, reads(lfn, 0, 0, pfn), pfn)(a)
		} else {
			e := web.New(web.Credentials{})
			defer e.Close()
			info, err := e.Stat(t.Context(), pfn)
			check(t, err)
			reads(lfn, 0, info.Size, pfn)(a)
			a.Inputs[len(a.Inputs)-1].File.Tag = storage.TagOf(pfn, info)
		}
		streams(a)
	}
}

// streams has the last input of an attempt be streamed.
func streams(a *wire.Assignment) {
	in := a.Inputs[len(a.Inputs)-1]
	in.Access = wire.Access_ACCESS_STREAM
	lfn := in.GetFile().GetLfn()
	payload(func(p *wire.Payload) {
		p.Environment = map[string]string{"in": lfn, "bam": lfn}
		p.InputVariables = []*wire.InputVariable{{Name: "in", Lfns: []string{lfn}}, {Name: "bam", Lfns: []string{lfn}}}
	})(a)
}

// A streamed input has no file in the sandbox: the command finds its URL in its variables, in
// the list of inputs and in the catalogue, which nobody else may read.
func TestStreamedInput(t *testing.T) {
	server := newWebFiles(t, map[string]string{"/a b%'.bam": "streamed"})
	for _, mode := range []CacheMode{CacheNone, CachePilot} {
		q := newTaskQueue(t)
		cfg := q.config("p1")
		cfg.Cache = CacheConfig{Mode: mode, Dir: q.folder + "/cache", MaxSpace: 1000}
		q.start(cfg)
		a := shell(`[ -z "$(find . ! -type d)" ]; [ "$in" = "$bam" ]; curl -fsS "$in" > out; stat -c %a "$FAIRWAY_INPUTS_FILE" "$FAIRWAY_CATALOG"; cat "$FAIRWAY_INPUTS_FILE" "$FAIRWAY_CATALOG"`,
			streamed(t, "raw/a b.bam", strings.Replace(server.URL, "http:", "dav:", 1)+"/a b%25'.bam"), writes("out"))
		r := q.run("p1", a)
		expect(t, r, wire.Outcome_OUTCOME_SUCCEEDED, "")
		if got := contents(t, r.GetOutputs()[0].GetPfn()); got != "streamed" {
			t.Error(got)
		}
		want := server.URL + "/a%20b%25%27.bam"
		said := strings.SplitN(contents(t, q.log(a, "out")), "\n", 4)
		if got := said[2]; said[0] != "600" || said[1] != "600" || strings.ReplaceAll(got, "'", "%27") != want {
			t.Errorf("%q, want %s", said, want)
		}
		c, err := catalog.ReadXML(strings.NewReader(said[3]))
		check(t, err)
		if pfn, err := c.PFN(catalog.Protocol, "raw/a b.bam"); err != nil || pfn != said[2] {
			t.Error(pfn, err)
		}
		if u := r.GetUsage(); u.GetBytesStaged() != 0 || u.GetBytesCached() != 0 || u.GetCacheMisses() != 0 ||
			len(r.GetNotes()) > 0 {
			t.Error(u, r.GetNotes())
		}
		r = q.run("p1", shell(`cat 'raw/a b.bam'`, streamed(t, "raw/a b.bam", server.URL+"/a%20b%25'.bam")))
		expect(t, r, wire.Outcome_OUTCOME_EXITED, "the input raw/a b.bam is streamed, so it may have no file in the "+
			"sandbox: use the variable that names it; it said: cat: ")
		q.change(func() {
			if cached := q.pilot("p1").cached; cached["raw/a b.bam@0"] {
				t.Error("it came into the cache", cached)
			}
		})
	}
}

// What the cache of the host has is read from there.
func TestStreamedInputThatIsCached(t *testing.T) {
	server := newWebFiles(t, map[string]string{"/a": "cached"})
	q := newTaskQueue(t)
	cfg := q.config("p1")
	cfg.Cache = CacheConfig{Mode: CachePilot, Dir: q.folder + "/cache", MaxSpace: 1000}
	q.start(cfg)
	first := shell("cat raw/a", streamed(t, "raw/a", server.URL+"/a"))
	first.Inputs[0].Access = wire.Access_ACCESS_LINK
	expect(t, q.run("p1", first), wire.Outcome_OUTCOME_SUCCEEDED, "")
	asked := server.asked["/a"]
	r := q.run("p1", shell(`[ "$in" = raw/a ]; [ "$(cat "$in")" = cached ]`, func(a *wire.Assignment) {
		a.Inputs = first.GetInputs()
		streams(a)
	}))
	expect(t, r, wire.Outcome_OUTCOME_SUCCEEDED, "")
	if server.asked["/a"] != asked || r.GetUsage().GetCacheHits() != 1 {
		t.Error("the server was asked", server.asked["/a"]-asked, "times:", r.GetUsage())
	}
}

// A file that this node sees is read where it is, under its name in the sandbox.
func TestStreamedInputInPlace(t *testing.T) {
	q := newTaskQueue(t)
	q.start(q.config("p1"))
	path := writeFile(t, "in place")
	a := shell(`[ "$in" = raw/a ]; readlink raw/a; cat "$in"`, streamed(t, "raw/a", path))
	expect(t, q.run("p1", a), wire.Outcome_OUTCOME_SUCCEEDED, "")
	if got := contents(t, q.log(a, "out")); got != path+"\nin place" {
		t.Error(got)
	}
	// The sandbox of the next attempt is its own.
	expect(t, q.run("p1", shell(`[ -z "$(ls -A)" ]`)), wire.Outcome_OUTCOME_SUCCEEDED, "")
	for _, command := range []string{"echo more >> " + path, "cp raw/a x; mv x " + path, "rm " + path} {
		r := q.run("p1", shell(command+"; : > out", streamed(t, "raw/a", path), writes("out")))
		expect(t, r, wire.Outcome_OUTCOME_INPUT_CHANGED, path+" has changed since this run took it up")
		if len(r.GetOutputs()) > 0 {
			t.Error("outputs count of an attempt that has read a file that changed")
		}
	}
}

// What was not the same from before the command to its end fails the attempt, whatever the
// command has made of it.
func TestStreamedInputThatChanges(t *testing.T) {
	server := newWebFiles(t, map[string]string{"/before": "x", "/while": "x", "/broken": "x", "/gone": "x"})
	q := newTaskQueue(t)
	q.start(q.config("p1"))
	before := shell("echo ran", streamed(t, "raw/a", server.URL+"/before"))
	_, err := http.Post(server.URL+"/before", "", nil)
	check(t, err)
	expect(t, q.run("p1", before), wire.Outcome_OUTCOME_INPUT_CHANGED,
		server.URL+"/before has changed since this run took it up")
	if _, err := os.Stat(q.log(before, "out")); err == nil {
		t.Error("the command ran")
	}
	r := q.run("p1", shell(`curl -fsS "$in" > out; curl -fsS -X POST "$in"`, streamed(t, "raw/a", server.URL+"/while"), writes("out")))
	expect(t, r, wire.Outcome_OUTCOME_INPUT_CHANGED, "while it was streamed: "+server.URL+"/while has changed")
	if len(r.GetOutputs()) > 0 {
		t.Error("its outputs count")
	}
	// Where nobody can tell, the attempt is repeated.
	server.mu.Lock()
	server.asked["/broken"] = -1
	server.mu.Unlock()
	a := shell(`: > out`, streamed(t, "raw/a", server.URL+"/broken"), writes("out"))
	expect(t, q.run("p1", a), wire.Outcome_OUTCOME_STAGE_IN_FAILED,
		"whether the input raw/a stayed the same while it was streamed cannot be told")
	// The stored file of a job that is gone, or has another size, is lost.
	for path, why := range map[string]string{"/gone": "has 1 bytes and should have 2", "/none": "is not there"} {
		r := q.run("p1", shell("echo ran", reads("made", 1, 2, server.URL+path), func(a *wire.Assignment) {
			a.Inputs[0].Adler32 = 1
			streams(a)
		}))
		expect(t, r, wire.Outcome_OUTCOME_INPUT_LOST, why)
		if len(r.GetLost()) != 1 || r.GetLost()[0].GetPfn() != server.URL+path {
			t.Error(r.GetLost())
		}
	}
}

// What may be secret in a URL stands in nothing that Fairway writes.
func TestSecretsOfURLsAreNotTold(t *testing.T) {
	const secret = "c2VjcmV0IHNpZ25hdHVyZQ"
	server := newWebFiles(t, map[string]string{"/a": "x"})
	q := newTaskQueue(t)
	q.start(q.config("p1"))
	pfn := server.URL + "/a?X-Amz-Signature=" + secret
	for _, said := range []string{`"cannot open \"$in\": no such sample"`, `"signature ${in#*=} is wrong"`, `"${in%%TdXJl*} was cut"`} {
		r := q.run("p1", shell(`curl -fsS "$in" > /dev/null; echo `+said+` >&2; exit 3`, streamed(t, "raw/a", pfn)))
		if r.GetOutcome() != wire.Outcome_OUTCOME_EXITED || r.GetMessage() == "" || strings.Contains(fmt.Sprint(r),
			secret[:8]) && !strings.Contains(said, "cut") || strings.Contains(fmt.Sprint(r), secret) {
			t.Error(r)
		}
	}
	a := shell("true", streamed(t, "raw/a", pfn))
	a.Inputs[0].File.Tag++
	if r := q.run("p1", a); r.GetOutcome() != wire.Outcome_OUTCOME_INPUT_CHANGED ||
		strings.Contains(fmt.Sprint(r), secret) {
		t.Error(r)
	}
	if log := q.pilotLogs(); strings.Contains(log, secret) {
		t.Error(log)
	}
}

// A copy is the command's own: it may write to it, and nobody else sees that.
func TestCopiedInput(t *testing.T) {
	for _, mode := range []CacheMode{CacheNone, CachePilot} {
		q := newTaskQueue(t)
		cfg := q.config("p1")
		cfg.MilliCPUs = 1000
		cfg.Cache = CacheConfig{Mode: mode, Dir: q.folder + "/cache", MaxSpace: 1 << 20}
		q.start(cfg)
		path := writeFile(t, "own\n")
		check(t, os.Chmod(path, 0o444))
		own := func(a *wire.Assignment) { a.Inputs[len(a.Inputs)-1].Access = wire.Access_ACCESS_COPY }
		for range 2 {
			r := q.run("p1", shell(`[ "$(cat a)" = own ]; [ "$(stat -c %h%a a)" = 1644 ]; echo more >> a`, tagged(t, reads("a", 0, 4, path), path), own))
			expect(t, r, wire.Outcome_OUTCOME_SUCCEEDED, "")
			expect(t, q.run("p1", shell(`[ "$(cat a)" = own ]`, tagged(t, reads("a", 0, 4, path), path))), wire.Outcome_OUTCOME_SUCCEEDED, "")
		}
		if got := contents(t, path); got != "own\n" {
			t.Errorf("the file itself holds %q", got)
		}
		folder := q.run("p1", shell("mkdir d; echo own > d/f", writes("d/")))
		for range 2 {
			expect(t, q.run("p1", shell(`[ "$(cat d/f)" = own ]; echo more >> d/f; : > d/g`, made(folder), own)), wire.Outcome_OUTCOME_SUCCEEDED, "")
			expect(t, q.run("p1", shell(`[ "$(cat d/f)" = own ]; [ ! -e d/g ]`, made(folder))), wire.Outcome_OUTCOME_SUCCEEDED, "")
		}
	}
}

// What only the server sees is copied through it, and the attempt says so.
func TestStreamedInputThatIsFar(t *testing.T) {
	server := storage.Roots{State: t.TempDir(), Folder: t.TempDir()}
	n := newFarNode(t, server, storage.Roots{State: t.TempDir(), Folder: t.TempDir()}, t.TempDir())
	files.Write(t, filepath.Join(server.Folder, "a"), "far")
	r := n.does(shell(`[ "$in" = a ]; [ "$(cat "$in")" = far ]`, n.input("a", "folder:a"), streams))
	expect(t, r, wire.Outcome_OUTCOME_SUCCEEDED, "")
	if len(r.GetNotes()) != 1 ||
		!strings.Contains(r.GetNotes()[0], "the input a was copied, and not streamed: this node does not see its folder") {
		t.Error(r.GetNotes())
	}
}
