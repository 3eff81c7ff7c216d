package server

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fairway/internal/wire"
	"fairway/test/files"
)

const listedFiles = `
workflow: listed
inputs:
  files: {url_list: list, match: "{x}", as: "in/{x}", close: file closed}
steps:
  copy:
    each: in/{x}
    writes: out/{x}
    command: cp
`

func copyListed(a *wire.Assignment, _ func(string) string) (map[string]string, int) {
	out := a.GetOutputs()[0].GetLfn()
	return map[string]string{out: filepath.Base(out)}, 0
}

func sitting(t *testing.T, status func(path string) int) string {
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(status(r.URL.Path))
	}))
	t.Cleanup(site.Close)
	return site.URL
}

// A line that leads nowhere ends the run and is told with its number; the other
// lines, the whole list or the run are not dropped for it.
func TestListedFilesAreNeverDroppedInSilence(t *testing.T) {
	site := sitting(t, func(path string) int {
		if path == "/there" {
			return http.StatusOK
		}
		return http.StatusNotFound
	})
	for _, c := range []struct {
		name, list string
		want       []string // of the one problem; none: the run succeeds with b alone
	}{
		{"a missing path", "b\nmissing/c\n", []string{"list:2: ", "missing/c"}},
		{"two URLs that are not there", "b\n" + site + "/x\n# c\n" + site + "/y\n" + site + "/there\n", []string{"list:2: " + site + "/x: the server answered 404", "list:4: ", "/y: the server answered 404"}},
		{"two names that are one", "b\nsub/b\n", []string{"list:2: ", "as the file of line 1"}},
		{"no lines", "# b\n\n", []string{"the input files ended without a file (list)"}},
		{"a list that is a folder", "/", []string{"list is a folder, not a regular file"}},
		{"a misspelt list", "", []string{"the input files ended without a file (list)"}},
		{"no end of the last line", "# c\n\nb", nil},
		{"a byte order mark", "\ufeffb\n", nil},
		{"paths that look like URLs", "100%#?b.txt\nx:b\n", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := files.Folder(t, map[string]string{"b": "b", "sub/b": "b", "100%#?b.txt": "c", "x:b": "d", "closed": ""})
			switch c.list {
			case "":
			case "/":
				if err := os.Mkdir(filepath.Join(root, "list"), 0o755); err != nil {
					t.Fatal(err)
				}
			default:
				files.Write(t, filepath.Join(root, "list"), c.list)
			}
			r := newRun(t, root, listedFiles, copyListed)
			outcome := r.run()
			problems := strings.Join(outcome.Problems, "\n")
			if outcome.Succeeded != (len(c.want) == 0) {
				t.Errorf("succeeded %v: %s", outcome.Succeeded, problems)
			}
			for _, want := range c.want {
				if !strings.Contains(problems, want) {
					t.Errorf("%q is not told: %s", want, problems)
				}
			}
			if len(c.want) == 0 {
				return
			}
			files.Write(t, filepath.Join(root, "mended"), "b\n")
			_ = os.Remove(filepath.Join(root, "list"))
			if err := os.Rename(filepath.Join(root, "mended"), filepath.Join(root, "list")); err != nil {
				t.Fatal(err)
			}
			r = newRun(t, root, listedFiles, copyListed)
			r.mustSucceed()
			if got := r.result("out/b"); got != "b" {
				t.Errorf("mended, it gives %q", got)
			}
		})
	}
}

// A new line of a list that had an end is taken, or told if it is wrong, and
// URLs that have gone since change nothing.
func TestListsAreReadAgain(t *testing.T) {
	gone := false
	site := sitting(t, func(string) int {
		if gone {
			return http.StatusNotFound
		}
		return http.StatusOK
	})
	root := files.Folder(t, map[string]string{"b": "b", "closed": "", "list": "b\n" + site + "/x\n"})
	newRun(t, root, listedFiles, copyListed).mustSucceed()
	gone = true
	r := newRun(t, root, listedFiles, copyListed)
	r.mustSucceed()
	if r.pilots.total() != 0 {
		t.Errorf("%d executions, want none", r.pilots.total())
	}
	files.Write(t, filepath.Join(root, "list"), "b\nmissing\n")
	if outcome := newRun(t, root, listedFiles, copyListed).run(); outcome.Succeeded ||
		!strings.Contains(strings.Join(outcome.Problems, ""), "list:2: ") {
		t.Errorf("succeeded %v, problems %q", outcome.Succeeded, outcome.Problems)
	}
}

// A file whose size no server tells is counted by a job of its own.
func TestFilesOfUnknownSizeAreSplit(t *testing.T) {
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.(http.Flusher).Flush() // so without a length
		_, _ = w.Write([]byte("12345"))
	}))
	defer site.Close()
	root := files.Folder(t, map[string]string{"closed": "", "list": site.URL + "/x\n"})
	r := newRun(t, root, strings.Replace(listedFiles, "writes: out/{x}", "split: {records: 2, of: bytes=2}\n    writes: "+
		"out/{x}.{chunk}", 1),
		func(a *wire.Assignment, _ func(string) string) (map[string]string, int) {
			return map[string]string{strings.Replace(a.GetOutputs()[0].GetLfn(), "*", "5", 1): ""}, 0
		})
	r.mustSucceed()
	if got := slices.Sorted(maps.Keys(r.pilots.executed)); !slices.Equal(got,
		[]string{"copy/x/1", "copy/x/2", "copy/x/records"}) {
		t.Errorf("executed %q", got)
	}
}

// Samples are called as people call them, and their chunks are theirs.
func TestResultsAreThoseOfTheirSample(t *testing.T) {
	root := files.Folder(t, map[string]string{"in/S1.txt": "ab", "in/S1_2.txt": "cd"})
	r := newRun(t, root, `
workflow: samples
inputs:
  raw: {files: "in/{sample}.txt", as: "in/{sample}.txt"}
steps:
  part: {each: "in/{sample}.txt", split: {records: 1, of: bytes=1}, writes: "p/{sample}_{chunk}.txt", command: part}
  all: {merge: "p/{sample}_{chunk}.txt", by: [sample], writes: "m/{sample}.txt", command: cat}
`, func(a *wire.Assignment, read func(string) string) (map[string]string, int) {
		text := ""
		for _, in := range a.GetInputs() {
			text += read(in.GetFile().GetLfn())
		}
		if at := len(a.GetName()) - 1; a.GetStep() == "part" {
			text = text[a.GetName()[at]-'1':][:1]
		}
		return map[string]string{a.GetOutputs()[0].GetLfn(): text}, 0
	})
	r.mustSucceed()
	if one, two := r.result("m/S1.txt"), r.result("m/S1_2.txt"); one != "ab" || two != "cd" {
		t.Errorf("results %q and %q", one, two)
	}
}
