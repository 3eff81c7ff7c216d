package served

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fairway/internal/storage"
)

// marked is a node whose folder has a mark.
func marked(t *testing.T) *node {
	n := newNode(t, nil)
	mark, err := NewMark(storage.Roots{State: n.folder}, "state:", ".")
	if err != nil {
		t.Fatal(err)
	}
	n.config.Marks = []Mark{mark}
	n.restart()
	return n.listen(t)
}

func prove(t *testing.T, n *node, roots storage.Roots) Reach {
	t.Helper()
	e := New(dialing(t, "launch", nil), n.url, atOnce)
	marks, err := e.Marks(t.Context())
	if err != nil || len(marks) != 1 || marks[0].Text != n.config.Marks[0].Text {
		t.Fatalf("%+v, %v", marks, err)
	}
	r, err := e.Prove(t.Context(), roots, marks[0])
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// A folder is shared only if both ends see what the other one has written.
func TestWhatIsShared(t *testing.T) {
	n := marked(t)
	text, err := os.ReadFile(filepath.Join(n.folder, storage.MarkName))
	if err != nil {
		t.Fatal(err)
	}
	another, copied, truncated := t.TempDir(), t.TempDir(), t.TempDir()
	for _, folder := range []string{copied, truncated} {
		if err := os.WriteFile(filepath.Join(folder, storage.MarkName), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chtimes(
		filepath.Join(truncated, storage.MarkName), time.Now(), n.config.Marks[0].Info.ModTime.Truncate(time.Second),
	); err != nil {
		t.Fatal(err)
	}
	for name, one := range map[string]struct {
		folder string
		want   Reach
	}{
		"the same folder":         {n.folder, Reach{Reads: true, Writes: true, Exact: true}},
		"a copy of it":            {copied, Reach{Reads: true}},
		"one without nanoseconds": {truncated, Reach{Reads: true}},
		"another one":             {another, Reach{}},
		"one that is not there":   {filepath.Join(another, "no"), Reach{}},
		"none that it was given":  {"", Reach{}},
	} {
		if got := prove(t, n, storage.Roots{State: one.folder}); got != one.want {
			t.Errorf("%s: %+v, want %+v", name, got, one.want)
		}
		if left, _ := os.ReadDir(one.folder); one.folder != "" && len(left) > 1 {
			t.Errorf("%s: left behind: %v", name, left)
		}
	}
}

// The question whether something is seen tells nothing of other files.
func TestSeenTellsOfMarksOnly(t *testing.T) {
	n := marked(t)
	n.store(t, "secret", "guess")
	n.store(t, storage.MarkName+"-ABCDEFGH", "right")
	for _, one := range []struct {
		pfn, ending, text string
		want              int
	}{
		{"state:" + storage.MarkName, "-ABCDEFGH", "right", http.StatusNoContent},
		{"state:" + storage.MarkName, "-ABCDEFGH", "righ", http.StatusNotFound},
		{"state:" + storage.MarkName, "-ABCDEFG2", "right", http.StatusNotFound},
		{"state:" + storage.MarkName, "/../secret", "guess", http.StatusBadRequest},
		{"state:secret", "-ABCDEFGH", "guess", http.StatusBadRequest},
		{"folder:", "-ABCDEFGH", "right", http.StatusBadRequest},
	} {
		status, _ := n.raw(t, "launch", http.MethodPost, seenPath+"?pfn="+one.pfn,
			map[string]string{endingHeader: one.ending}, strings.NewReader(one.text))
		if status != one.want {
			t.Errorf("%+v: %d", one, status)
		}
	}
}
