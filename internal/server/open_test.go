package server

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"fairway/internal/server/folder"
	"fairway/internal/wire"
	"fairway/test/files"
)

const listedPages = `
workflow: listed
inputs:
  pages: {url_list: list, match: "{x}", as: "pages/{x}", close: file list}
steps:
  copy:
    each: pages/{x}
    writes: copied/{x}
    command: cp
`

// A file of a URL list that changed at its server is told from what was read of
// it, like one on disk; one that is the same is not read again.
func TestURLsThatChanged(t *testing.T) {
	var served atomic.Int64
	pages := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		edition := served.Load()
		http.ServeContent(w, r, "page", time.Unix(1_700_000_000+edition, 0),
			strings.NewReader(fmt.Sprint("edition ", edition)))
	}))
	defer pages.Close()
	root := files.Folder(t, map[string]string{"local/page": "here"})
	for _, url := range []string{pages.URL + "/page", "local/page"} {
		if err := os.RemoveAll(filepath.Join(root, folder.StateFolder)); err != nil {
			t.Fatal(err)
		}
		files.Write(t, filepath.Join(root, "list"), url+"\n")
		run := func() int {
			r := newRun(t, root, listedPages, func(*wire.Assignment, func(string) string) (map[string]string, int) {
				return map[string]string{"copied/page": "copy"}, 0
			})
			r.mustSucceed()
			return r.pilots.total()
		}
		if first, same := run(), run(); first != 1 || same != 0 {
			t.Errorf("%s: executed %d times, and again %d times though it is the same", url, first, same)
		}
		served.Add(1)
		files.Write(t, filepath.Join(root, "local/page"), fmt.Sprint("changed there ", served.Load()))
		if run() != 1 {
			t.Errorf("%s: not run again though it changed", url)
		}
	}
}
