package feed

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fairway/internal/flow/workflow"
	"fairway/test/files"
)

// Many files are described by several goroutines, and come in their order all the same. The first
// that cannot be described is told.
func TestManyFilesAreDescribedInTheirOrder(t *testing.T) {
	const many = 10 * minDescribed
	texts := map[string]string{"workflow.yaml": `workflow: w
inputs:
  all: {files: "in/{n}", as: "in/{n}"}
steps:
  a: {each: "in/{n}", writes: "out/{n}", command: cp "$in" "$out"}
`}
	for n := range many {
		texts[fmt.Sprintf("in/%04d", n)] = fmt.Sprint(n)
	}
	root := files.Folder(t, texts)
	work, err := workflow.Parse("workflow.yaml", []byte(texts["workflow.yaml"]))
	if err != nil {
		t.Fatal(err)
	}
	find := NewFinder(root, nil)
	found, left, err := find.Find(t.Context(), work.Inputs[0], nil)
	if err != nil || len(found) != many || len(left) != 0 {
		t.Fatalf("%d files, %v left, error %v", len(found), left, err)
	}
	seen := map[string]bool{}
	for n, file := range found {
		if want := fmt.Sprintf("in/%04d", n); file.LFN != want || seen[file.Identity] {
			t.Errorf("file %d is %s and should be %s", n, file.LFN, want)
		}
		seen[file.Identity] = true
	}
	for _, n := range []int{many / 2, many - 1} {
		path := filepath.Join(root, fmt.Sprintf("in/%04d", n))
		if err := errors.Join(os.Remove(path), os.Symlink("nowhere", path)); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err = find.Find(t.Context(), work.Inputs[0], nil); err == nil || errors.Is(err, fs.ErrNotExist) ||
		!strings.Contains(err.Error(), fmt.Sprintf("in/%04d", many/2)) {
		t.Error("the error is of another file:", err)
	}
}
