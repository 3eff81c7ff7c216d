package server

import (
	"path/filepath"
	"strings"
)

var globEscapes = strings.NewReplacer(`*`, `\*`, `?`, `\?`, `[`, `\[`, `\`, `\\`)

// Glob returns the paths that a glob of [filepath.Glob] matches, in no order.
// It is relative to a folder, whose own name stands for itself, unless it is
// absolute.
func Glob(folder, glob string) ([]string, error) {
	if !filepath.IsAbs(glob) {
		glob = filepath.Join(globEscapes.Replace(folder), glob)
	}
	return filepath.Glob(glob)
}
