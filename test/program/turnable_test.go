package program

import (
	"path/filepath"
	"strings"
	"testing"

	"fairway/test/files"
)

// With another Go than the one that is known nothing is built.
func TestOtherGoIsNotTurned(t *testing.T) {
	source := files.Folder(t, map[string]string{"time.go": "package time\n\nfunc Now() Time { return now() }\n"})
	if _, err := turnable(source, t.TempDir()); err == nil ||
		!strings.Contains(err.Error(), filepath.Join(source, "time.go")) {
		t.Error(err)
	}
}
