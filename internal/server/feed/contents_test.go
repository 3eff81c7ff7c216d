package feed

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fairway/test/files"
)

// A large input is not read by the server.
func TestLargeInputsAreKnownByTheirStamps(t *testing.T) {
	root := t.TempDir()
	path := filepath.Join(root, "large")
	for _, size := range []int64{ComparedSize, ComparedSize + 1} {
		files.Write(t, path, "")
		if err := os.Truncate(path, size); err != nil {
			t.Fatal(err)
		}
		file, err := NewFinder(root, nil).existing("large", "folder:large")
		if err != nil || strings.HasPrefix(file.Identity, "sha256-") != (size <= ComparedSize) {
			t.Errorf("%d bytes: %+v, %v", size, file, err)
		}
	}
}
