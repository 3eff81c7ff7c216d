package publish

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A place that cannot be written is refused before any pilot finds out, and nothing is made.
func TestPlacesThatCannotBeWritten(t *testing.T) {
	root := t.TempDir()
	if err := os.WriteFile(root+"/plain", nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("nowhere", root+"/dangling"); err != nil {
		t.Fatal(err)
	}
	for place, want := range map[string]string{
		"":                           "",
		"s3://bucket/x":              "",
		"file:" + root:               "",
		"file:" + root + "/a/b":      "",
		"file:" + root + "/plain":    root + "/plain is no folder",
		"file:" + root + "/plain/a":  "not a directory",
		"file:" + root + "/dangling": root + "/dangling is a link to nothing",
	} {
		switch err := CheckWritable(place); {
		case want == "" && err != nil, want != "" && err == nil:
			t.Errorf("%s: %v", place, err)
		case err != nil && !strings.Contains(err.Error(), want):
			t.Errorf("%s: %v, and not %q", place, err, want)
		}
	}
	if left, _ := filepath.Glob(root + "/*"); len(left) != 2 {
		t.Error(left)
	}
}
