package disk

import (
	"os"
	"path/filepath"
	"strings"
)

// WithEnding are the paths of what a folder holds under names with an ending, in their
// order; none where it cannot be listed. A path may hold any character: filepath.Glob
// takes a folder that a person named `run[1]` for another one.
func WithEnding(folder, ending string) (paths []string) {
	found, _ := os.ReadDir(folder)
	for _, f := range found {
		if strings.HasSuffix(f.Name(), ending) {
			paths = append(paths, filepath.Join(folder, f.Name()))
		}
	}
	return paths
}

// Beginning are the paths that begin with one, in their order; none where its folder cannot be listed.
func Beginning(path string) (paths []string) {
	found, _ := os.ReadDir(filepath.Dir(path))
	for _, f := range found {
		if strings.HasPrefix(f.Name(), filepath.Base(path)) {
			paths = append(paths, filepath.Join(filepath.Dir(path), f.Name()))
		}
	}
	return paths
}
