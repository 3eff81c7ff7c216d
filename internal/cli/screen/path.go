package screen

import (
	"os"
	"path/filepath"
	"strings"
)

// DisplayPath is the shorter of a path and the way to it from here.
func DisplayPath(path string) string {
	here, err := os.Getwd()
	if err != nil {
		return path
	}
	relative, err := filepath.Rel(here, path)
	if err != nil || len(relative) >= len(path) || strings.HasPrefix(relative, "../..") {
		return path
	}
	return relative
}
