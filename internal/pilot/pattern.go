package pilot

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"fairway/internal/wire"
)

// matches says whether a name matches a pattern, in which '*' stands for any
// characters but '/'.
func matches(pattern, name string) bool {
	head, rest, star := strings.Cut(pattern, "*")
	if !star {
		return pattern == name
	}
	if !strings.HasPrefix(name, head) {
		return false
	}
	name = name[len(head):]
	for {
		literal, more, another := strings.Cut(rest, "*")
		if !another {
			return len(name) >= len(rest) && strings.HasSuffix(name, rest) && !strings.Contains(name[:len(name)-len(rest)], "/")
		}
		at := strings.Index(name, literal)
		if at < 0 || strings.Contains(name[:at], "/") {
			return false
		}
		name, rest = name[at+len(literal):], more
	}
}

// literalFolder cuts a pattern before the first component with a '*', and
// leaves a name of a file in the folder that is left.
func literalFolder(pattern string) string {
	star := strings.IndexByte(pattern, '*')
	if star < 0 {
		return pattern
	}
	return pattern[:strings.LastIndexByte(pattern[:star], '/')+1] + "file"
}

// findMatches finds the regular files that match a pattern and are not taken.
// Symbolic links are not followed.
func findMatches(a *attempt, o *wire.OutputFile, taken map[string]bool) (found []written, err error) {
	pattern, err := a.pathOf(o.GetLfn())
	if err != nil {
		return nil, err
	}
	root := filepath.Dir(literalFolder(pattern))
	err = a.slot.walk(root, strings.Count(pattern, "/"), func(path string, e fs.DirEntry) error {
		if !e.Type().IsRegular() || taken[path] || !matches(pattern, path) {
			return nil
		}
		if !utf8.ValidString(path) {
			return fmt.Errorf("the name %q is not UTF-8, so it cannot be recorded", path)
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		taken[path] = true
		found = append(found, written{o, lfnOf(o.GetLfn(), path), path, info.Size()})
		return nil
	})
	slices.SortFunc(found, func(a, b written) int { return strings.Compare(a.lfn, b.lfn) })
	return found, err
}

// walk visits what is in a folder of the sandbox and, down to paths with so
// many slashes, in the folders below it.
func (s *slot) walk(folder string, slashes int, visit func(path string, e fs.DirEntry) error) error {
	entries, err := s.list(folder)
	if isMissing(err) {
		return nil
	}
	for _, e := range entries {
		path := filepath.Join(folder, e.Name())
		if e.IsDir() && strings.Count(path, "/") < slashes {
			err = errors.Join(err, s.walk(path, slashes, visit))
		} else {
			err = errors.Join(err, visit(path, e))
		}
	}
	return err
}

// list reads a folder; that of the sandbox is open anyway.
func (s *slot) list(folder string) ([]fs.DirEntry, error) {
	if folder != "." {
		return os.ReadDir(filepath.Join(s.folder, folder))
	}
	if _, err := s.dir.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	return s.dir.ReadDir(-1)
}

// lfnOf gives a match the slashes that the pattern began with.
func lfnOf(pattern, path string) string {
	return pattern[:len(pattern)-len(strings.TrimLeft(pattern, "/"))] + path
}
